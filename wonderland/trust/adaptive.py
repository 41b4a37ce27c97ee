"""Intervals on a stream: the level is steered by what was missed, so that coverage holds whatever the data do."""

import math
from collections import deque
from typing import Any

from wonderland.core import WonderlandError
from wonderland.trust.conformal import check_level
from wonderland.trust.conformal_quantile import conformal_quantile


class AdaptiveConformal:
    r"""Adaptive conformal inference over a window of past scores.

    .. math:: \alpha_{t+1} = \alpha_t + \gamma (\alpha - \mathrm{err}_t)

    with :math:`\mathrm{err}_t = 1` where the truth lay outside. Over T steps the share of misses is within
    :math:`(\max(\alpha_1, 1 - \alpha_1) + \gamma) / (\gamma T)` of :math:`\alpha`, for any sequence at all.
    `score` is any number that says how badly an answer fits, such as :math:`|y - \hat y|`.
    Paper: Gibbs and Candès, 2021.

    >>> stream = AdaptiveConformal(0.9)
    >>> for _ in range(50):
    ...     limit = stream.limit()
    ...     _ = stream.update(1.0)
    >>> stream.limit()
    1.0
    """

    def __init__(self, level: float = 0.9, *, rate: float = 0.01, window: int | None = 500):
        self.level = check_level(level)
        if not (math.isfinite(rate) and rate >= 0):
            raise WonderlandError(f"`rate` has to be 0 or more, not {rate}.")
        if window is not None and window < 1:
            raise WonderlandError(f"`window` has to be at least 1, not {window}.")
        self.rate, self.alpha = float(rate), 1 - self.level
        self.scores: deque[float] = deque(maxlen=window)
        self.steps = self.misses = 0

    def limit(self) -> float:
        """The largest score that is inside now: infinite when all is, minus infinity when nothing is."""
        if 1 - self.alpha >= 1:  # also for a share that rounding hides beside 1
            return math.inf
        if 1 - self.alpha <= 0:
            return -math.inf
        return conformal_quantile(list(self.scores), 1 - self.alpha) if self.scores else math.inf

    def update(self, score: float) -> bool:
        """Tell what the truth scored, and learn whether it was inside."""
        value = float(score)
        if not math.isfinite(value):
            raise WonderlandError(f"A score has to be a finite number, not {score}.")
        inside = value <= self.limit()
        self.alpha += self.rate * ((1 - self.level) - (not inside))
        self.scores.append(value)
        self.steps += 1
        self.misses += not inside
        return inside

    @property
    def coverage(self) -> float:
        """The share of truths that were inside so far; not a number before the first."""
        return 1 - self.misses / self.steps if self.steps else math.nan

    def interval(self, prediction: float) -> tuple[float, float]:
        """The interval for scores that are absolute errors."""
        limit = max(0.0, self.limit()) if self.limit() > -math.inf else 0.0
        return prediction - limit, prediction + limit

    def to_json(self) -> dict[str, Any]:
        """The whole state, to go on from later."""
        return {
            "level": self.level, "rate": self.rate, "alpha": self.alpha, "window": self.scores.maxlen,
            "scores": list(self.scores), "steps": self.steps, "misses": self.misses,
        }  # fmt: skip

    @staticmethod
    def from_json(value: Any) -> "AdaptiveConformal":
        """From `to_json`; anything else is refused."""
        try:
            stream = AdaptiveConformal(value["level"], rate=value["rate"], window=value["window"])
            stream.alpha = float(value["alpha"])
            stream.scores.extend(float(score) for score in value["scores"])
            stream.steps, stream.misses = int(value["steps"]), int(value["misses"])
        except (TypeError, KeyError, ValueError) as error:
            raise WonderlandError("The state of the stream cannot be read: the file is damaged.") from error
        return stream
