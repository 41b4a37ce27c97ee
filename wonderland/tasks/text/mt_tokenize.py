"""Tokenization of text for the metrics of machine translation."""

import re
from collections.abc import Callable

from wonderland.core import WonderlandError, nearest

# ASCII punctuation except apostrophe, comma, dash and dot, which may belong to a word or a number; and the space.
_PUNCTUATION = re.compile(r"([ !\"#$%&()*+/:;<=>?@\[\\\]^_`{|}~])")
_AFTER_NO_DIGIT = re.compile(r"([^0-9])([.,])")
_BEFORE_NO_DIGIT = re.compile(r"([.,])([^0-9])")
_DASH = re.compile(r"([0-9])(-)")
_ESCAPES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))


def mt_tokenize(text: str, method: str = "13a") -> list[str]:
    """The tokens of a text.

    "13a" is the tokenization of mteval-v13a, the default of sacreBLEU: punctuation marks are tokens, dots and commas too unless
    within a number. "characters": each character except spaces; "spaces": split at spaces.

    >>> mt_tokenize("It costs 1,000.50 (or so), he said.")
    ['It', 'costs', '1,000.50', '(', 'or', 'so', ')', ',', 'he', 'said', '.']
    """
    return tokenizer(method)(text)


def tokenizer(method: str) -> Callable[[str], list[str]]:
    """The tokenization of this name."""
    if method not in _METHODS:
        raise WonderlandError(
            f"There is no tokenization {method!r}.{nearest(str(method), _METHODS)} The choices are {', '.join(_METHODS)}."
        )
    return _METHODS[method]


def _mteval_13a(text: str) -> list[str]:
    text = text.rstrip().replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for escape, character in _ESCAPES:
        text = text.replace(escape, character)
    text = _PUNCTUATION.sub(r" \1 ", f" {text} ")
    text = _BEFORE_NO_DIGIT.sub(r" \1 \2", _AFTER_NO_DIGIT.sub(r"\1 \2 ", text))
    return _DASH.sub(r"\1 \2 ", text).split()


_METHODS: dict[str, Callable[[str], list[str]]] = {
    "13a": _mteval_13a,
    "characters": lambda text: list("".join(text.split())),
    "spaces": str.split,
}
