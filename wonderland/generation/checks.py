"""Checks of arguments that several functions of generation share."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

from wonderland.core import WonderlandError


def integer(value: Any, subject: str, least: int | None = 1) -> int:
    """An integer, of numpy too, of at least `least`; otherwise an error that begins with `subject`.

    >>> integer(3, "beams is")
    3
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or (least is not None and value < least):
        start = "" if least is None else f" from {least}"
        raise WonderlandError(f"{subject} a whole number{start}, not {value!r}.")
    return int(value)


def token_count(count: Any) -> int:
    """The number of tokens to generate."""
    return integer(count, "count, the number of tokens to generate, is")


def check_pieces(pieces: Sequence[bytes] | None, vocab: int | None) -> None:
    """Refuse pieces that are not one for each token; None is not checked."""
    if pieces is not None and vocab is not None and len(pieces) != vocab:
        raise WonderlandError(f"There are {len(pieces)} pieces and the model has {vocab} tokens: give one for each.")
