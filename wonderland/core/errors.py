"""The error class shown to users, hints for misspelt names, and imports of optional packages."""

import importlib
from collections.abc import Iterable
from types import ModuleType


class WonderlandError(ValueError):
    """Bad input. The message says in a sentence what was wrong, where, and what to do.

    The command line prints the message without a traceback and exits with code 2. A message is one line without control
    characters, whatever the names of files, columns and classes in it hold.
    """

    def __init__(self, *message: object):
        super().__init__(*(printable(part) if isinstance(part, str) else part for part in message))


def printable(text: str, keep: str = "") -> str:
    """Text without characters that could take over a terminal or cannot be written to it: escapes, bells, changes of
    direction, and bytes of file names that are not UTF-8. Line breaks become an arrow; those in `keep` stay.

    >>> printable("a\\x1b[2Jb\\n\\udce9")
    'a\ufffd[2Jb↵\ufffd'
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in keep else "↵" if c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def visible(text: str) -> str:
    """Text that can be encoded: bytes of a file name that are not UTF-8, and halves of surrogate pairs, are written out.

    >>> visible("caf\\udce9.png")
    'caf\\\\xe9.png'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        try:
            return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        except UnicodeEncodeError:
            return text.encode("utf-8", "backslashreplace").decode()
    return text


def nearest(name: str, choices: Iterable[str]) -> str:
    """A "Did you mean" hint for an unknown name: up to three close choices, or an empty string.

    >>> nearest("specis", ["species", "island"])
    " Did you mean 'species'?"
    >>> nearest("zzz", ["species", "island"])
    ''
    """
    import difflib  # a sixth of the time that importing this package takes, and only mistakes need it

    choices = [str(choice) for choice in choices]
    folded = {choice.casefold(): choice for choice in choices}
    close = difflib.get_close_matches(str(name).casefold(), list(folded), n=3, cutoff=0.6)
    if not close:
        return ""
    return " Did you mean " + " or ".join(repr(folded[match]) for match in close) + "?"


def need(module: str, *, extra: str, why: str) -> ModuleType:
    """Import an optional package; if it is missing, the error says which extra installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise WonderlandError(f"{package} is needed {why}: pip install 'wonderland[{extra}]'.") from error
