r"""Schedules: the factor of the peak learning rate as a pure function of (step, steps)."""

import functools
import inspect
import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from wonderland.core import Part, WonderlandError, part

Schedule = Callable[[int, int], float]
Function = TypeVar("Function", bound=Callable[..., float])


def schedule(function: Function) -> Function:
    """Put a function of (step, steps, *, options) among the parts: its spec builds a schedule with the options filled in.

    >>> from wonderland.core import parse_spec
    >>> parse_spec("cosine(floor=0.1)").build()(10, 10)
    0.1
    """

    def from_spec(**options: Any) -> Schedule:
        filled = functools.partial(function, **options) if options else function
        filled(0, 1)  # options out of range are refused here, and not in the first step of a training
        return filled

    signature = inspect.signature(function)
    options = [each for each in signature.parameters.values() if each.kind is inspect.Parameter.KEYWORD_ONLY]
    setattr(from_spec, "__signature__", signature.replace(parameters=options))  # noqa: B010
    setattr(function, "from_spec", from_spec)  # noqa: B010
    return part(function)


@schedule
def constant(step: int, steps: int) -> float:
    """Always the peak learning rate."""
    return 1.0


@schedule
def warmup_cosine(step: int, steps: int, *, warmup: float = 0.05, floor: float = 0.0) -> float:
    r"""Linear warmup, then half a cosine down to the floor.

    .. math::
        f(s) = \frac{s + 1}{w}\ (s < w), \qquad
        f(s) = f_0 + \frac{1 - f_0}{2}\Bigl(1 + \cos \pi \frac{s - w}{S - w}\Bigr)

    Book: D2L 12.11. Paper: Loshchilov and Hutter, 2017.

    >>> [round(warmup_cosine(step, 10, warmup=0.2), 3) for step in (0, 1, 2, 6, 10)]
    [0.5, 1.0, 1.0, 0.5, 0.0]
    """
    _check_fraction("warmup_cosine", "warmup", warmup)
    _check_fraction("warmup_cosine", "floor", floor)
    rise = max(1, round(warmup * steps))
    if step < rise:
        return (step + 1) / rise
    done = (step - rise) / max(1, steps - rise)
    return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


@schedule
def piecewise(
    step: int, steps: int, *, at: Sequence[float] = (0.5, 0.75), factors: Sequence[float] = (0.1, 0.01)
) -> float:
    r"""Piecewise constant: from each fraction `at` of the steps on, the corresponding entry of `factors`. Book: D2L 12.4.

    >>> [piecewise(step, 8) for step in (0, 4, 6)]
    [1.0, 0.1, 0.01]
    """
    if (
        not isinstance(at, Sequence)
        or not isinstance(factors, Sequence)
        or len(at) != len(factors)
        or not all(_number(value) for value in (*at, *factors))
        or list(at) != sorted(at)
    ):
        raise WonderlandError(f"piecewise: at must be increasing and as long as factors, not {at!r} and {factors!r}.")
    for fraction in at:
        _check_fraction("piecewise", "at", fraction)
    return [1.0, *factors][bisect_right([fraction * steps for fraction in at], step)]


@schedule
def exponential(step: int, steps: int, *, rate: float = 0.01) -> float:
    r""":math:`f(s) = e^{-\lambda s}`. Book: D2L 12.4.

    >>> round(exponential(100, 1000), 4)
    0.3679
    """
    _check_not_negative("exponential", "rate", rate)
    return math.exp(-rate * step)


@schedule
def polynomial(step: int, steps: int, *, power: float = 0.5, beta: float = 0.1) -> float:
    r""":math:`f(s) = (\beta s + 1)^{-\alpha}`, with `power` for alpha. Book: D2L 12.4.

    >>> round(polynomial(30, 100), 3)
    0.5
    """
    _check_not_negative("polynomial", "power", power)
    _check_not_negative("polynomial", "beta", beta)
    return (beta * step + 1) ** -power


@schedule
def square_root(step: int, steps: int) -> float:
    r""":math:`f(s) = (s + 1)^{-1/2}`. Book: D2L 12.11.

    >>> square_root(3, 100)
    0.5
    """
    return (step + 1) ** -0.5


@schedule
def factor(step: int, steps: int, *, alpha: float = 0.99, floor: float = 0.0) -> float:
    r"""Multiplied by `alpha` at each step: :math:`f(s) = \max(f_0, \alpha^s)`. Book: D2L 12.11.

    >>> factor(2, 100, alpha=0.5), factor(9, 100, alpha=0.5, floor=0.1)
    (0.25, 0.1)
    """
    _check_fraction("factor", "alpha", alpha)
    _check_fraction("factor", "floor", floor)
    return max(floor, alpha**step)


@schedule
def multi_step(step: int, steps: int, *, at: Sequence[int] = (), alpha: float = 0.1) -> float:
    r"""Multiplied by `alpha` at each of the steps `at`: :math:`f(s) = \alpha^{|\{m \le s\}|}`. Book: D2L 12.11.

    >>> [multi_step(step, 40, at=(15, 30), alpha=0.5) for step in (14, 15, 30)]
    [1.0, 0.5, 0.25]
    """
    _check_fraction("multi_step", "alpha", alpha)
    if not isinstance(at, Sequence) or not all(_number(mark) for mark in at):
        raise WonderlandError(f"multi_step: at must be a list of steps such as (100, 200), not {at!r}.")
    return float(alpha ** sum(mark <= step for mark in at))


@schedule
def cosine(step: int, steps: int, *, floor: float = 0.0) -> float:
    r"""Half a cosine: :math:`f(s) = f_0 + \frac{1 - f_0}{2}(1 + \cos \pi s / S)`, then the floor. Book: D2L 12.11.

    >>> [round(cosine(step, 10, floor=0.1), 3) for step in (0, 5, 10, 20)]
    [1.0, 0.55, 0.1, 0.1]
    """
    _check_fraction("cosine", "floor", floor)
    return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * min(1.0, step / max(1, steps))))


@schedule
def one_cycle(step: int, steps: int, *, rise: float = 0.3, start: float = 1 / 25, end: float = 1 / 25e4) -> float:
    r"""One cycle of half cosines: from `start` to 1 over the fraction `rise` of the steps, then down to `end`.

    Paper: Smith and Topin, 2018; the phases are those of torch's OneCycleLR.

    >>> [round(one_cycle(step, 11, rise=0.5, start=0.1, end=0.0), 3) for step in (0, 5, 10)]
    [0.1, 0.98, 0.0]
    """
    for name, value in (("rise", rise), ("start", start), ("end", end)):
        _check_fraction("one_cycle", name, value)
    top, last = rise * steps - 1, steps - 1
    if step <= top and top > 0:
        low, high, done = start, 1.0, step / top
    else:
        low, high, done = 1.0, end, min(1.0, (step - max(top, 0)) / max(1e-9, last - max(top, 0)))
    return high + (low - high) * 0.5 * (1 + math.cos(math.pi * done))


@part
class Plateau(Part):
    """Lower the learning rate when a metric stops falling; the metric is given to `report`.

    Args:
        alpha: factor of the learning rate each time.
        patience: how many reports without improvement are tolerated.
        threshold: the relative improvement on the best value that counts.
        floor: smallest factor.

    >>> schedule = Plateau(alpha=0.5, patience=1)
    >>> for loss in (1.0, 0.9, 0.9, 0.9):
    ...     schedule.report(loss)
    >>> schedule(4, 10)
    0.5
    """

    def __init__(self, *, alpha: float = 0.1, patience: int = 10, threshold: float = 1e-4, floor: float = 0.0):
        for name, value in (("alpha", alpha), ("threshold", threshold), ("floor", floor)):
            _check_fraction("Plateau", name, value)
        _check_not_negative("Plateau", "patience", patience)
        self.alpha, self.patience, self.threshold, self.floor = alpha, patience, threshold, floor
        self.best, self.bad, self.factor = math.inf, 0, 1.0

    def report(self, measure: float) -> None:
        """Report the metric: smaller is better, NaN is no improvement."""
        target = self.best - abs(self.best) * self.threshold if math.isfinite(self.best) else self.best
        better = measure < target
        self.best, self.bad = (measure, 0) if better else (self.best, self.bad + 1)
        if self.bad > self.patience:
            self.factor, self.bad = max(self.floor, self.factor * self.alpha), 0

    def __call__(self, step: int, steps: int) -> float:
        return self.factor

    def state_dict(self) -> dict[str, float | None]:
        """Best metric (None before the first report), reports without improvement, current factor."""
        return {"best": None if self.best == math.inf else self.best, "bad": self.bad, "factor": self.factor}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue from a saved state."""
        self.best = math.inf if saved["best"] is None else saved["best"]
        self.bad, self.factor = int(saved["bad"]), saved["factor"]


def plot(schedule: Schedule, steps: int, *, width: int = 420, height: int = 160) -> str:
    """A schedule as an SVG line chart.

    >>> plot(cosine, 100).startswith("<svg")
    True
    """
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise WonderlandError(f"plot: steps must be a whole number of at least 1, not {steps!r}.")
    marks = sorted({round(i * (steps - 1) / 400) for i in range(401)})
    values = [schedule(step, steps) for step in marks]
    top = max(*values, 1e-12) if len(values) > 1 else max(values[0], 1e-12)
    points = " ".join(
        f"{40 + (width - 50) * step / max(1, steps - 1):.1f},{10 + (height - 35) * (1 - value / top):.1f}"
        for step, value in zip(marks, values, strict=True)
    )
    text = 'font-family="sans-serif" font-size="11" fill="#59636e"'
    base = height - 25
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">'
        f"<title>factor of the learning rate over {steps} steps</title>"
        f'<path d="M40 10V{base}H{width - 10}" fill="none" stroke="#59636e"/>'
        f'<polyline points="{points}" fill="none" stroke="#1f5fa8" stroke-width="1.8"/>'
        f'<text x="34" y="14" text-anchor="end" {text}>{top:.3g}</text><text x="34" y="{base}" text-anchor="end" {text}>0</text>'
        f'<text x="{width - 10}" y="{height - 8}" text-anchor="end" {text}>step {steps - 1}</text></svg>'
    )


def _check_fraction(owner: str, name: str, value: float) -> None:
    if not _number(value) or not 0 <= value <= 1:
        raise WonderlandError(f"{owner}: {name} must be between 0 and 1, not {value!r}.")


def _check_not_negative(owner: str, name: str, value: float) -> None:
    if not _number(value) or not 0 <= value < math.inf:
        raise WonderlandError(f"{owner}: {name} must be a finite number of at least 0, not {value!r}.")


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
