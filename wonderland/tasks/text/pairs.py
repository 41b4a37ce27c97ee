"""Texts beside what they should be: one reference each or several, checked once for all metrics."""

from collections.abc import Sequence
from typing import Any

from wonderland.core import WonderlandError


def paired(predicted: Any, references: Any, name: str) -> list[tuple[str, list[str]]]:
    """Each text with its references, of which there is at least one; what does not fit meets a sentence.

    >>> paired(["a b"], [["a", "b"]], "bleu")
    [('a b', ['a', 'b'])]
    """
    for what, given in (("texts", predicted), ("references", references)):
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise WonderlandError(f"{name} takes a list of {what}, not a {type(given).__name__}: write [text] for one.")
    if len(predicted) != len(references):
        raise WonderlandError(
            f"{name} got {len(predicted)} texts and references for {len(references)}: give references for each text."
        )
    if not predicted:
        raise WonderlandError(f"{name} got no text to judge.")
    return [
        (_text(text, row, name), several(reference, row, name))
        for row, (text, reference) in enumerate(zip(predicted, references, strict=True))
    ]


def several(reference: Any, row: int, name: str) -> list[str]:
    """One reference or several as a list."""
    found = [reference] if isinstance(reference, str) else list(reference or [])
    if not found:
        raise WonderlandError(f"{name} got no reference for text {row}: leave the text out, or give at least one.")
    return [_text(text, row, name) for text in found]


def _text(text: Any, row: int, name: str) -> str:
    if not isinstance(text, str):
        raise WonderlandError(f"{name} compares strings, and at {row} there is a {type(text).__name__}.")
    return text
