"""Drift on a stream: has the mean of what arrives changed, and since when?"""

import math
from collections import deque

from wonderland.core import WonderlandError


def _number(value: float) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise WonderlandError(f"A stream takes finite numbers, not {value}.")
    return number


class PageHinkley:
    r"""The Page-Hinkley test: an alarm when values have lain above (or below) their running mean for long enough.

    .. math:: m_t = \alpha\, m_{t-1} + (x_t - \bar x_t - \delta), \qquad \text{alarm when } m_t - \min_{s \le t} m_s > \lambda

    `direction` is "up", "down" or "both". After an alarm it starts afresh. Papers: Page, 1954; Hinkley, 1971.

    >>> test = PageHinkley(threshold=5.0)
    >>> [t for t in range(200) if test.update(0.0 if t < 100 else 1.0)][0]
    105
    """

    def __init__(
        self,
        *,
        threshold: float = 50.0,
        delta: float = 0.005,
        alpha: float = 0.9999,
        least: int = 30,
        direction: str = "both",
    ):
        if direction not in ("up", "down", "both"):
            raise WonderlandError(f"`direction` is 'up', 'down' or 'both', not {direction!r}.")
        if not threshold > 0:
            raise WonderlandError(f"`threshold` has to be above 0, not {threshold}.")
        self.threshold, self.delta, self.alpha, self.least, self.direction = threshold, delta, alpha, least, direction
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.count, self.mean = 0, 0.0
        self.up = self.down = 0.0
        self.lowest, self.highest = math.inf, -math.inf

    def update(self, value: float) -> bool:
        """Take a value; true when the mean has changed."""
        number = _number(value)
        self.count += 1
        self.mean += (number - self.mean) / self.count
        apart = number - self.mean
        self.up = self.alpha * self.up + apart - self.delta
        self.down = self.alpha * self.down + apart + self.delta
        self.lowest, self.highest = min(self.lowest, self.up), max(self.highest, self.down)
        if self.count < self.least:
            return False
        risen = self.up - self.lowest > self.threshold and self.direction != "down"
        fallen = self.highest - self.down > self.threshold and self.direction != "up"
        if risen or fallen:
            self.reset()
        return risen or fallen


class Adwin:
    r"""ADWIN: a window that shrinks when two parts of it differ in their means more than chance allows.

    .. math:: |\bar x_0 - \bar x_1| > \sqrt{\tfrac2m \sigma^2 \log \tfrac{2 \ln n}{\delta}}
              + \tfrac{2}{3m} \log \tfrac{2 \ln n}{\delta}, \qquad \tfrac1m = \tfrac1{n_0} + \tfrac1{n_1}

    The window is kept as buckets of 1, 2, 4, ... values, at most `buckets` of each size, so memory and time grow with the
    logarithm of its length. For values in [0, 1], such as errors of a classifier, false alarms come at a rate of about
    `delta` or less. Paper: Bifet and Gavaldà, 2007.

    >>> window = Adwin()
    >>> alarms = [t for t in range(2000) if window.update(0.0 if t < 1000 else 1.0)]
    >>> 1000 <= alarms[0] < 1064
    True
    """

    def __init__(self, delta: float = 0.002, *, buckets: int = 5, every: int = 32, least: int = 5, grace: int = 10):
        if not 0 < delta < 1:
            raise WonderlandError(f"`delta` has to lie strictly between 0 and 1, not at {delta}.")
        self.delta, self.buckets, self.every, self.least, self.grace = delta, buckets, every, least, grace
        self.rows: list[deque[tuple[float, float]]] = [
            deque()
        ]  # (sum, variance times count), newest first; row i: 2^i values
        self.width, self.total, self.spread, self.steps = 0, 0.0, 0.0, 0

    @property
    def mean(self) -> float:
        """The mean of the window; not a number when it is empty."""
        return self.total / self.width if self.width else math.nan

    def update(self, value: float) -> bool:
        """Take a value; true when the window was cut because the mean has changed."""
        number = _number(value)
        self.steps += 1
        if self.width:
            self.spread += self.width * (number - self.mean) ** 2 / (self.width + 1)
        self.rows[0].appendleft((number, 0.0))
        self.width += 1
        self.total += number
        self._compress()
        return self.steps % self.every == 0 and self._shrink()

    def _compress(self) -> None:
        for level, row in enumerate(self.rows):
            if len(row) <= self.buckets:
                break
            if level + 1 == len(self.rows):
                self.rows.append(deque())
            size = 2**level
            (second, wide2), (first, wide1) = row.pop(), row.pop()
            apart = (first - second) / size
            self.rows[level + 1].appendleft((first + second, wide1 + wide2 + size * apart * apart / 2))

    def _shrink(self) -> bool:
        """Drop old buckets while some split of the window is too uneven; was one dropped?"""
        changed = False
        while self.width > self.grace and self._uneven():
            self._drop()
            changed = True
        return changed

    def _uneven(self) -> bool:
        """Do the means of some older and newer part differ too much?"""
        n0, s0 = 0, 0.0
        limit = math.log(2 * math.log(self.width) / self.delta)
        variance = self.spread / self.width
        for level in range(len(self.rows) - 1, -1, -1):
            size = 2**level
            for amount, _ in reversed(self.rows[level]):
                n0, s0 = n0 + size, s0 + amount
                n1 = self.width - n0
                if n1 < self.least:
                    return False
                if n0 < self.least:
                    continue
                inverse = 1 / (n0 - self.least + 1) + 1 / (n1 - self.least + 1)
                reach = math.sqrt(2 * inverse * variance * limit) + 2 / 3 * limit * inverse
                if abs(s0 / n0 - (self.total - s0) / n1) > reach:
                    return True
        return False

    def _drop(self) -> None:
        level = len(self.rows) - 1
        while not self.rows[level]:
            level -= 1
        size = 2**level
        amount, wide = self.rows[level].pop()
        self.width -= size
        self.total -= amount
        apart = amount / size - self.total / self.width
        self.spread = max(0.0, self.spread - wide - size * self.width * apart * apart / (size + self.width))
        while len(self.rows) > 1 and not self.rows[-1]:
            self.rows.pop()
