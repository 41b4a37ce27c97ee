"""Text to words, as the campaigns of machine translation agreed on, so that scores can be compared."""

import re
from collections.abc import Callable

from wonderland.core import WonderlandError, nearest

# All signs of ASCII but the apostrophe, comma, dash and dot, which may belong to a word or a number; and the space.
_SIGN = re.compile(r"([ !\"#$%&()*+/:;<=>?@\[\\\]^_`{|}~])")
_AFTER_NO_DIGIT = re.compile(r"([^0-9])([.,])")
_BEFORE_NO_DIGIT = re.compile(r"([.,])([^0-9])")
_DASH = re.compile(r"([0-9])(-)")
_ESCAPES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))


def cut(text: str, how: str = "13a") -> list[str]:
    """The words of a text.

    "13a" is the rule of mteval-v13a, which sacreBLEU uses: signs stand alone, dots and commas too unless within a number.
    "characters": each character but spaces; "spaces": what spaces separate.

    >>> cut("It costs 1,000.50 (or so), he said.")
    ['It', 'costs', '1,000.50', '(', 'or', 'so', ')', ',', 'he', 'said', '.']
    """
    return cutter(how)(text)


def cutter(how: str) -> Callable[[str], list[str]]:
    """The function behind a name."""
    if how not in _WAYS:
        raise WonderlandError(
            f"There is no way to cut a text called {how!r}.{nearest(str(how), _WAYS)} The choices are {', '.join(_WAYS)}."
        )
    return _WAYS[how]


def _thirteen(text: str) -> list[str]:
    text = text.rstrip().replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for escape, sign in _ESCAPES:
        text = text.replace(escape, sign)
    text = _SIGN.sub(r" \1 ", f" {text} ")
    text = _BEFORE_NO_DIGIT.sub(r" \1 \2", _AFTER_NO_DIGIT.sub(r"\1 \2 ", text))
    return _DASH.sub(r"\1 \2 ", text).split()


_WAYS: dict[str, Callable[[str], list[str]]] = {
    "13a": _thirteen,
    "characters": lambda text: list("".join(text.split())),
    "spaces": str.split,
}
