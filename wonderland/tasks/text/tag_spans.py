"""Spans in sequences of tags (IOB1, BIO, BIOES, BILOU), and their precision, recall and F1 as CoNLL counts them."""

import re
from collections.abc import Sequence
from typing import Any

from wonderland.core import WonderlandError

_TAG = re.compile(r"([BIESLUM])[-_](.+)", re.DOTALL)
_BEGINS, _ENDS = "BSU", "ESLU"

Span = tuple[int, int, str]


def marks_spans(classes: Sequence[str]) -> bool:
    """Whether tags mark spans: "O", and names after B-, I- or another sign of their place.

    >>> marks_spans(["O", "B-PER", "I-PER"]), marks_spans(["NN", "VB"])
    (True, False)
    """
    others = [name for name in classes if name != "O"]
    return (
        len(others) > 0
        and len(others) < len(classes) + ("O" not in classes)
        and all(_TAG.fullmatch(name) for name in others)
    )


def spans_of(tags: Sequence[str]) -> list[Span]:
    """The spans of a sequence of tags: first word, one past the last, and name.

    A span begins at B, S or U, and at any other tag whose name differs from that of the word before or that follows an end.

    >>> spans_of(["B-PER", "I-PER", "O", "I-LOC", "B-LOC"])
    [(0, 2, 'PER'), (3, 4, 'LOC'), (4, 5, 'LOC')]
    """
    spans: list[Span] = []
    first, name, before = -1, "", "O"
    for place, tag in enumerate([*tags, "O"]):
        match = _TAG.fullmatch(tag)
        sign, own = (match[1], match[2]) if match else ("O", "")
        begins = sign != "O" and (first < 0 or sign in _BEGINS or before in _ENDS or own != name)
        if first >= 0 and (sign == "O" or begins):
            spans.append((first, place, name))
            first = -1
        if begins:
            first, name = place, own
        before = sign
    return spans


def span_scores(true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Precision, recall and F1 of spans with the same ends and the same name, over all sentences and for each name.

    >>> span_scores([["B-PER", "I-PER", "O"]], [["B-PER", "O", "O"]])["f1"]
    0.0
    """
    if len(true) != len(predicted) or any(len(a) != len(b) for a, b in zip(true, predicted, strict=True)):
        raise WonderlandError("True and predicted tags must be of the same sentences, with one tag for each word.")
    counts: dict[str, list[int]] = {}
    for own, guess in zip(true, predicted, strict=True):
        real, predicted_spans = set(spans_of(own)), set(spans_of(guess))
        for place, spans in enumerate((real, predicted_spans, real & predicted_spans)):
            for span in spans:
                counts.setdefault(span[2], [0, 0, 0])[place] += 1
    total = [sum(count[i] for count in counts.values()) for i in range(3)]
    each = {name: dict(zip(("precision", "recall", "f1"), _rates(*count), strict=True)) | {"spans": count[0]}
            for name, count in sorted(counts.items())}  # fmt: skip
    precision, recall, f1 = _rates(*total)
    return {"precision": precision, "recall": recall, "f1": f1, "spans": total[0], "by_name": each}


def _rates(real: int, predicted: int, both: int) -> tuple[float, float, float]:
    precision, recall = both / predicted if predicted else 0.0, both / real if real else 0.0
    return precision, recall, 2 * both / (real + predicted) if real + predicted else 0.0
