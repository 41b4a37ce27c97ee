"""Trust of answers: a temperature, a threshold for no answer, and sets of answers that hold a right one."""

from typing import Any

from wonderland.core import WonderlandError
from wonderland.tasks.detection_trust import THRESHOLDS, promised
from wonderland.tasks.task import Trust
from wonderland.trust import check_level


class AnswerTrust(Trust):
    """A temperature of all scores; `absent` is the probability of no answer from which on none is given.

    `risks` (k,) are the shares of `rows` calibration questions whose answer has a probability below each of `THRESHOLDS`.
    """

    def __init__(self, temperature: float, absent: float, risks: list[float], rows: int, level: float):
        self.temperature, self.absent, self.risks, self.rows, self.level = temperature, absent, risks, rows, level

    def promised(self, level: float) -> float | None:
        """The threshold at which at most 1 - level of the answers are missed; None where none is low enough."""
        return promised(self.risks, self.rows, level)

    def threshold(self, level: float) -> float:
        """The probability from which on an answer is in the set."""
        promised = self.promised(level)
        return float(THRESHOLDS[0]) if promised is None else promised

    def to_json(self) -> dict[str, Any]:
        return {
            "temperature": self.temperature,
            "absent": self.absent,
            "risks": self.risks,
            "questions": self.rows,
            "level": self.level,
        }

    @staticmethod
    def from_json(saved: Any) -> "AnswerTrust":
        """Read back from `to_json`; damaged content is refused."""
        try:
            risks, rows = [float(value) for value in saved["risks"]], saved["questions"]
            temperature, absent = float(saved["temperature"]), float(saved["absent"])
            fine = len(risks) == len(THRESHOLDS) and all(0 <= value <= 1 for value in risks)
            if not fine or not 1e-3 < temperature < 1e3 or not 0 <= absent <= 1:
                raise ValueError
            if not isinstance(rows, int) or isinstance(rows, bool) or not 0 <= rows < 1 << 40:
                raise ValueError
            return AnswerTrust(temperature, absent, risks, rows, check_level(float(saved["level"])))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise WonderlandError("trust.json does not hold scores of answers: it is damaged or not ours.") from error
