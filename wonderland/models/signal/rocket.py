"""Rocket: thousands of fixed convolutions, what is said of each output, and a linear model fitted in closed form."""

import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import WonderlandError, part, uniform
from wonderland.models.signal.signal_model import SignalModel
from wonderland.ops.over_time import is_exporting
from wonderland.solvers.ridge_loo import ridge_loo

WIDTH, PATTERNS = 9, 84  # of a kernel; how many there are with three weights of 2 and six of -1
POOLS, FORMS = 3, 2  # numbers for each output; the signal, and its differences
MOST_DILATIONS, BIAS_ROWS = 32, 16
BITS = 15  # of the largest value of a signal
CHUNK = 1 << 23  # outputs of convolutions that are held at once
SCALES = tuple(2.0**k for k in range(-2, 7))  # of scores, as logits


@part
class Rocket(SignalModel):
    r"""Convolutions with all 84 kernels of nine weights -1 and 2 that add up to 0, at many dilations, of a signal and of its differences.

    Each output, less a bias b that is a quantile of such outputs on training signals, gives three numbers over the steps of the
    signal: the share above 0, the mean of what is above 0, and where that lies. Features are standardised, and a ridge regression
    whose penalty is chosen by leaving rows out gives one score for each class, or the value.

    .. math:: z = \Big( \tfrac{1}{T} \sum_t [c_t > b], \quad \tfrac{\sum_t (c_t - b)_+}{\sum_t [c_t > b]}, \quad
        \tfrac{\sum_t t\,[c_t > b]}{T \sum_t [c_t > b]} \Big)

    With several channels, each kernel at each dilation adds up the outputs of a random few of them. `members` linear models are
    fitted to rows of their own on the same features. Shapes: x (b, t, channels) -> (b, outputs), or (members, b, outputs) with several;
    x (members, b, t, channels) gives each member signals of its own. Papers: Dempster et al., 2021 (MiniRocket); Tan et al., 2022
    (MultiRocket).

    >>> model = Rocket(2, channels=1, length=30, kernels=84)
    >>> model.fit_rows(torch.randn(8, 30, 1), torch.arange(8) % 2)
    >>> model(torch.randn(3, 30, 1)).shape
    torch.Size([3, 2])
    """

    closed_form = True
    biases: Tensor
    mean: Tensor
    deviation: Tensor
    weight: Tensor
    intercept: Tensor

    def __init__(
        self,
        outputs: int,
        channels: int = 1,
        length: int = 100,
        *,
        kernels: int = 24 * PATTERNS,
        members: int = 1,
        seed: int = 0,
    ):
        super().__init__(outputs, channels)
        if length < 2 or not PATTERNS <= kernels <= 1 << 20 or members < 1:
            raise WonderlandError(
                f"Rocket needs signals of at least 2 steps, {PATTERNS} kernels or more, and a member, not length={length}, kernels={kernels}, "
                f"members={members}."
            )
        self.length, self.members, self.seed = length, members, seed
        self.plans = [_dilations(length - difference, kernels // PATTERNS) for difference in range(FORMS)]
        each = [sum(count for _, count in plan) * PATTERNS for plan in self.plans]
        features = POOLS * sum(each)
        self.register_buffer("biases", torch.zeros(sum(each)))
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("deviation", torch.ones(features))
        self.register_buffer("weight", torch.zeros(members, features, outputs))
        self.register_buffer("intercept", torch.zeros(members, outputs))

    def weights(self, form: int, place: int) -> Tensor:
        """The kernels at one dilation, zero for channels that they do not read: (84, channels, 9)."""
        kernels = np.full((PATTERNS, WIDTH), -1.0, np.float32)
        for row, places in enumerate(itertools.combinations(range(WIDTH), 3)):
            kernels[row, list(places)] = 2.0
        draws = uniform(self.seed, 1 + form, np.arange(PATTERNS) + PATTERNS * place, 1 + self.channels)
        counts = np.floor(2 ** (draws[:, 0] * math.log2(min(self.channels, WIDTH) + 1))).astype(int)
        ranks = draws[:, 1:].argsort(1, kind="stable").argsort(1, kind="stable")
        read = ranks < np.maximum(counts, 1)[:, None]
        return torch.from_numpy(kernels[:, None] * read[:, :, None])

    def outputs_of(self, x: Tensor, form: int, place: int, dilation: int) -> Tensor:
        """Convolutions of signals without NaN (b, channels, t), with zeros around: (b, 84, t)."""
        kernels = self.weights(form, place).to(x)
        return F.conv1d(x, kernels, dilation=dilation, padding=dilation * (WIDTH // 2))

    def forms(self, x: Tensor) -> list[tuple[Tensor, Tensor]]:
        """The signal and its differences (b, channels, t), and which steps are real (b, t)."""
        x, mask = self.real(x)
        x = rounded(x).transpose(1, 2)
        return [(x, mask), ((x[..., 1:] - x[..., :-1]) * mask[:, None, 1:], mask[:, 1:])]

    @torch.no_grad()
    def transform(self, x: Tensor) -> Tensor:
        """The features of signals, before they are standardised. Shapes: (b, t, channels) -> (b, features)."""
        if is_exporting():
            return self._transform(x)
        size = max(1, CHUNK // (PATTERNS * max(1, x.shape[1])))
        return torch.cat([self._transform(piece) for piece in x.split(size)])

    def _transform(self, x: Tensor) -> Tensor:
        pieces, first = [], 0
        for form, (signal, mask) in enumerate(self.forms(x)):
            whole, lengths = not is_exporting() and bool(mask.all()), mask.sum(1, keepdim=True).clamp_min(1)
            for place, (dilation, count) in enumerate(self.plans[form]):
                h = self.outputs_of(signal, form, place, dilation)
                h = h if whole else h.masked_fill_(~mask[:, None], -torch.inf)
                biases = self.biases[first : first + count * PATTERNS].view(count, PATTERNS)
                first += count * PATTERNS
                if is_exporting():  # one operator for all of them, so that the program stays short
                    pieces.append(pooled_together(h, biases, lengths))
                else:
                    pieces += [pooled(h, bias, lengths) for bias in biases]
        return torch.cat(pieces, 1)

    def fit_biases(self, x: Tensor) -> None:
        """Biases as quantiles of the outputs on some of the signals."""
        rows = torch.from_numpy((uniform(self.seed, 0, np.arange(BIAS_ROWS), 1)[:, 0] * len(x)).astype(np.int64))
        biases, number = [], 0
        for form, (signal, mask) in enumerate(self.forms(x[rows])):
            for place, (dilation, count) in enumerate(self.plans[form]):
                h = self.outputs_of(signal, form, place, dilation)
                for _ in range(count):
                    kernel = torch.arange(PATTERNS)
                    row = (kernel + number) % BIAS_ROWS
                    lengths = mask[row].sum(1).clamp_min(1)
                    levels = ((number * PATTERNS + kernel + 1) * ((math.sqrt(5) - 1) / 2)) % 1
                    ordered = torch.where(mask[row], h[row, kernel], torch.inf).sort(1).values
                    biases.append(ordered.gather(1, (levels * lengths).long()[:, None])[:, 0])
                    number += 1
        self.biases = torch.cat(biases).nan_to_num(0.0, 0.0, 0.0)

    @torch.no_grad()
    def fit_rows(self, x: Tensor, y: Tensor, weight: Tensor | None = None) -> None:
        """Fit biases, and the linear model of each member, to signals x (n, t, c) or (members, n, t, c); y holds codes or values."""
        x = x if x.dim() == 4 else x[None]
        y = y if y.dim() == 2 else y[None]
        distinct, place = _distinct(x.flatten(0, 1))
        self.fit_biases(distinct)
        z = self.transform(distinct)
        self.mean, self.deviation = z.mean(0), z.std(0, correction=0).clamp_min(1e-6)
        z = (z - self.mean) / self.deviation
        place = place.unflatten(0, x.shape[:2])
        fits, classes = [], not y.is_floating_point()
        for rows, answers in zip(place, y, strict=True):
            target = 2 * F.one_hot(answers, self.outputs).double() - 1 if classes else answers.double()[:, None]
            fits.append(ridge_loo(z[rows], target))
        scale = (
            _logit_scale([(fit.left_out, answers[fit.rows]) for fit, answers in zip(fits, y, strict=True)])
            if classes
            else 1.0
        )
        self.weight = (scale * torch.stack([fit.weight for fit in fits])).to(z)
        self.intercept = (scale * torch.stack([fit.intercept for fit in fits])).to(z)

    def features(self, x: Tensor) -> Tensor:
        return (self.transform(x) - self.mean) / self.deviation

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() == 4:
            distinct, place = _distinct(x.flatten(0, 1))
            z = self.features(distinct)[place].unflatten(0, x.shape[:2])
            return torch.baddbmm(self.intercept[:, None], z, self.weight)
        z = self.features(x)
        if self.members == 1:
            return z @ self.weight[0] + self.intercept[0]
        return torch.einsum("bf,mfo->mbo", z, self.weight) + self.intercept[:, None]


def rounded(x: Tensor) -> Tensor:
    """Signals (b, t, c) as multiples of a power of two, the largest value of a row with 15 bits.

    Sums of the few of them that a kernel reads are then exact in any order, and whether an output is above a bias does not depend on the
    library that computes it.
    """
    powers = torch.tensor([2.0**k for k in range(-100, 100)], device=x.device, dtype=x.dtype)
    above = (x.detach().abs().amax((1, 2), keepdim=True) > powers).sum(2, keepdim=True)
    unit = powers[(above - BITS).clamp(min=0)]
    return (x / unit).round() * unit


def pooled(h: Tensor, bias: Tensor, lengths: Tensor) -> Tensor:
    """What is said of each output (b, k, t), -inf after the end of a signal, above its bias (k,): (b, POOLS k)."""
    above = (h > bias[:, None]).to(h)
    steps = torch.stack([torch.ones(h.shape[2]), torch.arange(h.shape[2])], 1).to(h)
    counts, places = (above @ steps).unbind(2)
    positive = counts.clamp_min(1)
    level = (h - bias[:, None]).clamp_min_(0).sum(2) / positive
    return torch.cat([counts / lengths, level, places / positive / lengths], 1)


def pooled_together(h: Tensor, biases: Tensor, lengths: Tensor) -> Tensor:
    """`pooled` for each row of biases (c, k), side by side: (b, c POOLS k)."""
    over = h[:, None] - biases[:, :, None]
    above = (over > 0).to(h)
    counts, positive = above.sum(3), above.sum(3).clamp_min(1)
    places = (above * torch.arange(h.shape[2]).to(h)).sum(3)
    lengths = lengths[:, None]
    return torch.cat([counts / lengths, over.clamp_min(0).sum(3) / positive, places / positive / lengths], 2).flatten(1)


def _dilations(length: int, count: int) -> list[tuple[int, int]]:
    """Dilations from 1 to where a kernel spans the signal, evenly on a logarithmic scale, and how many biases each gets."""
    widest = max(0.0, math.log2(max(1, (length - 1) / (WIDTH - 1))))
    ladder = np.floor(2 ** np.linspace(0, widest, min(count, MOST_DILATIONS))).astype(int)
    values, each = np.unique(ladder, return_counts=True)
    shares = np.floor(each * count / each.sum()).astype(int)
    shares[0] += count - shares.sum()
    return [(int(dilation), int(share)) for dilation, share in zip(values, shares, strict=True) if share]


def _distinct(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rows without repetitions, and where each row is among them: folds share most of their rows."""
    keys: dict[bytes, int] = {}
    array = np.ascontiguousarray(x.numpy())
    place = np.array([keys.setdefault(row.tobytes(), len(keys)) for row in array])
    first = np.unique(place, return_index=True)[1]
    return x[torch.from_numpy(first)], torch.from_numpy(place)


def _logit_scale(fits: list[tuple[Tensor, Tensor]]) -> float:
    """The scale of scores that gives rows left out the smallest log loss."""
    losses = [sum(float(F.cross_entropy(scale * scores, y, reduction="sum")) for scores, y in fits) for scale in SCALES]
    return SCALES[int(np.argmin(losses))]
