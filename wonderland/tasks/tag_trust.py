"""Trust of tagging: a temperature of the chain, scores of spans as chances, and sets of tags that miss few."""

from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError
from wonderland.tasks.detection_trust import THRESHOLDS, promised
from wonderland.tasks.task import Trust
from wonderland.trust import check_level


class TagTrust(Trust):
    r"""A temperature of all scores of the chain, and the chance that a span is right from its score.

    .. math:: p = \sigma(a \log\tfrac{s}{1-s} + b)

    The score s of a span is the smallest probability among its words. `risks` (k,) are the mean shares of words (those outside
    of spans aside, where tags mark spans) of `rows` calibration sentences whose true tag has a probability below each of `THRESHOLDS`.
    """

    def __init__(self, temperature: float, slope: float, offset: float, risks: list[float], rows: int, level: float):
        self.temperature, self.slope, self.offset = temperature, slope, offset
        self.risks, self.rows, self.level = risks, rows, level

    def chance(self, scores: ndarray) -> ndarray:
        """Calibrated scores of spans."""
        clipped = np.clip(np.asarray(scores, np.float64), 1e-6, 1 - 1e-6)
        return 1 / (1 + np.exp(-(self.slope * np.log(clipped / (1 - clipped)) + self.offset)))

    def promised(self, level: float) -> float | None:
        """The threshold at which at most 1 - level of the words of a sentence are missed on average; None where none is low enough."""
        return promised(self.risks, self.rows, level)

    def threshold(self, level: float) -> float:
        """The probability from which on a tag is in the set of a word."""
        promised = self.promised(level)
        return float(THRESHOLDS[0]) if promised is None else promised

    def to_json(self) -> dict[str, Any]:
        return {"temperature": self.temperature, "slope": self.slope, "offset": self.offset, "risks": self.risks,
                "sentences": self.rows, "level": self.level}  # fmt: skip

    @staticmethod
    def from_json(saved: Any) -> "TagTrust":
        """Read back from `to_json`; damaged content is refused."""
        try:
            risks, rows = [float(value) for value in saved["risks"]], saved["sentences"]
            temperature, slope, offset = (float(saved[name]) for name in ("temperature", "slope", "offset"))
            fine = (
                len(risks) == len(THRESHOLDS) and all(0 <= value <= 1 for value in risks) and 1e-3 < temperature < 1e3
            )
            fine = fine and 0 <= slope < 1e6 and abs(offset) < 1e6
            if not fine or not isinstance(rows, int) or isinstance(rows, bool) or not 0 <= rows < 1 << 40:
                raise ValueError
            return TagTrust(temperature, slope, offset, risks, rows, check_level(float(saved["level"])))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise WonderlandError("trust.json does not hold scores of tags: it is damaged or not ours.") from error


def missed_tags(probabilities: ndarray, counted: ndarray) -> ndarray | None:
    """The share of counted words whose true tag has a probability below each threshold (k,); None where none count.

    Shapes: probabilities of the true tags (t,), counted (t,).

    >>> float(missed_tags(np.array([0.9, 0.005]), np.array([True, True]))[0])
    0.5
    """
    if not counted.any():
        return None
    return (probabilities[counted, None] < THRESHOLDS).mean(0)
