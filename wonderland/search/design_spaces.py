"""Design spaces: populations of networks drawn from rules, and what the distribution of their errors says about the rules."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from wonderland.core import WonderlandError, mix

SPACES = "ABCDE"
DEPTHS, WIDEST, GROUPS, BOTTLENECKS = (1, 6), 128, (1, 2, 4, 8, 16), (1, 2, 4)
TRIES = 10_000


@dataclass(frozen=True)
class Design:
    """The arguments of an `AnyNet` that differ within a design space: one number for each stage."""

    depths: tuple[int, ...]
    dims: tuple[int, ...]
    group_widths: tuple[int, ...]
    bottlenecks: tuple[int, ...]

    def operations(self, *, size: int, stem: int, channels: int = 3) -> float:
        """Multiplications and additions of the convolutions of the forward pass, for a square image with so many pixels a side."""
        size = -(-size // 2)
        total, before = 2.0 * 9 * channels * stem * size**2, stem
        for depth, dim, group, narrow in zip(self.depths, self.dims, self.group_widths, self.bottlenecks, strict=True):
            width = max(1, dim // narrow)
            for block in range(depth):
                after = -(-size // 2) if block == 0 else size
                total += 2.0 * before * width * size**2 + 2.0 * 9 * width * min(group, width) * after**2
                total += 2.0 * width * dim * after**2 + (2.0 * before * dim * after**2 if block == 0 else 0.0)
                before, size = dim, after
        return total


def anynet_design(
    space: str, number: int, *, seed: int = 0, stages: int = 4, widest: int = WIDEST, depths: tuple[int, int] = DEPTHS,
    accept: Callable[[Design], bool] = lambda design: True,
) -> Design:  # fmt: skip
    """The design with this number from AnyNet A to E, a function of (seed, number).

    A draws depth, width, group width and bottleneck ratio of each stage; B shares the ratio, C the group width too, D orders the widths, E the
    depths (but for the last stage). Designs that `accept` refuses, such as those beyond a budget of operations, are drawn again.
    Book: D2L 8.8. Paper: Radosavovic et al., 2020.

    >>> design = anynet_design("E", 0)
    >>> sorted(design.dims) == list(design.dims), len(set(design.group_widths))
    (True, 1)
    """
    if space not in SPACES or len(space) != 1:
        raise WonderlandError(f"There is no design space {space!r}. Known are A, B, C, D and E.")
    draw = np.random.Generator(np.random.Philox(mix(seed, number, ord(space))))
    for _ in range(TRIES):
        shared_ratio, shared_group = space >= "B", space >= "C"
        ratios = [int(draw.choice(BOTTLENECKS))] * stages if shared_ratio else draw.choice(BOTTLENECKS, stages).tolist()
        groups = [int(draw.choice(GROUPS))] * stages if shared_group else draw.choice(GROUPS, stages).tolist()
        deep = draw.integers(depths[0], depths[1] + 1, stages).tolist()
        unit = [group * ratio for group, ratio in zip(groups, ratios, strict=True)]
        wide = [int(u * draw.integers(1, max(2, widest // u + 1))) for u in unit]
        if space >= "D":
            wide.sort()
        if space >= "E":
            deep[:-1] = sorted(deep[:-1])
        design = Design(tuple(deep), tuple(wide), tuple(groups), tuple(ratios))
        if accept(design):
            return design
    raise WonderlandError(f"Of {TRIES:,} designs of space {space} none was accepted: widen what is accepted.")


def distribution(errors: Sequence[float], thresholds: Sequence[float]) -> np.ndarray:
    r"""The empirical distribution function of errors.

    .. math:: F(e) = \frac{1}{n} \sum_i \mathbf{1}[e_i \le e]

    Shapes: (n,), (k,) -> (k,). Book: D2L 8.8.2.

    >>> distribution([0.1, 0.3, 0.2], [0.05, 0.2, 1.0]).round(3).tolist()
    [0.0, 0.667, 1.0]
    """
    known = np.sort(_finite(errors))
    return np.searchsorted(known, np.asarray(thresholds, float), side="right") / len(known)


def distribution_band(
    errors: Sequence[float], thresholds: Sequence[float], *, level: float = 0.9, draws: int = 1000, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """The band between which the distribution function lies in `level` of the samples drawn from the errors with replacement.

    Shapes: (n,), (k,) -> (k,), (k,).
    """
    known = np.asarray(_finite(errors))
    draw = np.random.Generator(np.random.Philox(seed))
    curves = [distribution(draw.choice(known, len(known)).tolist(), thresholds) for _ in range(draws)]
    low, high = np.quantile(np.stack(curves), [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


@dataclass(frozen=True)
class SpaceComparison:
    """How often a network of the first space has a smaller error than one of the second, with an interval."""

    share: float
    interval: tuple[float, float]

    @property
    def verdict(self) -> str:
        """In a word: better, worse or alike."""
        low, high = self.interval
        return "better" if low > 0.5 else "worse" if high < 0.5 else "alike"


def compare_spaces(
    first: Sequence[float], second: Sequence[float], *, level: float = 0.9, draws: int = 1000, seed: int = 0
) -> SpaceComparison:
    r"""Compare two design spaces by the errors of networks drawn from them.

    .. math:: P(e_1 < e_2) + \tfrac{1}{2} P(e_1 = e_2)

    The interval is that of a bootstrap over both samples.

    >>> compare_spaces([0.1, 0.2, 0.15], [0.5, 0.6, 0.7]).verdict
    'better'
    """
    a, b = np.asarray(_finite(first)), np.asarray(_finite(second))
    draw = np.random.Generator(np.random.Philox(seed))
    shares = [_wins(draw.choice(a, len(a)), draw.choice(b, len(b))) for _ in range(draws)]
    low, high = np.quantile(shares, [(1 - level) / 2, (1 + level) / 2])
    return SpaceComparison(_wins(a, b), (float(low), float(high)))


def _wins(a: np.ndarray, b: np.ndarray) -> float:
    difference = a[:, None] - b[None, :]
    return float((difference < 0).mean() + 0.5 * (difference == 0).mean())


def _finite(errors: Sequence[float]) -> list[float]:
    """The errors, where those that are not finite count as infinitely large."""
    if not len(errors):
        raise WonderlandError("A design space is judged by the errors of at least one network.")
    return [float(error) if np.isfinite(error) else float("inf") for error in errors]
