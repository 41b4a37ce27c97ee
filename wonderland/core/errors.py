"""The error class shown to users, hints for misspelt names, and imports of optional packages."""

import difflib
import importlib
from collections.abc import Iterable
from types import ModuleType


class WonderlandError(ValueError):
    """Bad input. The message says in a sentence what was wrong, where, and what to do.

    The command line prints the message without a traceback and exits with code 2.
    """


def nearest(name: str, choices: Iterable[str]) -> str:
    """A "Did you mean" hint for an unknown name: up to three close choices, or an empty string.

    >>> nearest("specis", ["species", "island"])
    " Did you mean 'species'?"
    >>> nearest("zzz", ["species", "island"])
    ''
    """
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
