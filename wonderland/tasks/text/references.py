"""Checks of predicted texts and their references."""

from collections.abc import Sequence
from typing import Any

from wonderland.core import WonderlandError


def check_references(predicted: Any, references: Any, name: str) -> list[tuple[str, list[str]]]:
    """Each text with its list of references, which has at least one.

    >>> check_references(["a b"], [["a", "b"]], "bleu")
    [('a b', ['a', 'b'])]
    """
    for argument, value in (("texts", predicted), ("references", references)):
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise WonderlandError(
                f"{name} takes a list of {argument}, not a {type(value).__name__}: write [text] for a single one."
            )
    if len(predicted) != len(references):
        raise WonderlandError(
            f"{name} got {len(predicted)} texts and references for {len(references)}: give references for each text."
        )
    if not predicted:
        raise WonderlandError(f"{name} got no texts.")
    return [
        (_text(text, row, name), reference_list(reference, row, name))
        for row, (text, reference) in enumerate(zip(predicted, references, strict=True))
    ]


def reference_list(reference: Any, row: int, name: str) -> list[str]:
    """One reference or several as a list."""
    texts = [reference] if isinstance(reference, str) else list(reference or [])
    if not texts:
        raise WonderlandError(f"{name} got no reference for text {row}: remove the text, or give at least one.")
    return [_text(text, row, name) for text in texts]


def _text(text: Any, row: int, name: str) -> str:
    if not isinstance(text, str):
        raise WonderlandError(f"{name} compares strings, and text {row} is a {type(text).__name__}.")
    return text
