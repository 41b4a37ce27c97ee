"""Modules of other designs whose laws are known by construction: mixers, gates, caches, convolutions of torch, poolings."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.laws.known_truth import BROKEN, HOLDS, IMAGE, SEQUENCE, Truth
from wonderland.laws import LAWS, Example


class TimeMixing(nn.Module):
    """A matrix over positions, as MLP-mixers have; `lower` keeps its lower triangle."""

    def __init__(self, lower: bool):
        super().__init__()
        self.weight, self.lower = nn.Parameter(torch.randn(64, 64) / 8), lower

    def forward(self, x: Tensor) -> Tensor:
        t = x.shape[1]
        weight = self.weight[:t, :t]
        return (weight.tril() if self.lower else weight) @ x


class Encoder(nn.Module):
    """A transformer layer of torch, with a mask or without."""

    def __init__(self, causal: bool):
        super().__init__()
        self.layer, self.causal = nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True), causal

    def forward(self, x: Tensor) -> Tensor:
        t = x.shape[1]
        mask = torch.triu(torch.ones(t, t, dtype=torch.bool), 1) if self.causal else None
        return self.layer(x, src_mask=mask, is_causal=False)


class TimeFirst(nn.Module):
    """A GRU of torch that reads the batch as time."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.gru(x)[0]


class Shifted(nn.Module):
    """Token shift: each position sees itself and its neighbour on one side."""

    def __init__(self, by: int):
        super().__init__()
        self.inner, self.by = nn.Linear(8, 4), by
        self.receptive_field = (1, 0) if by > 0 else (0, 1)

    def forward(self, x: Tensor) -> Tensor:
        beside = F.pad(x, (0, 0, self.by, -self.by))
        return self.inner(torch.cat([x, beside], -1)).tanh()


class Pyramid(nn.Module):
    """Down and up again by two: a position sees its partner."""

    def __init__(self, causal: bool):
        super().__init__()
        self.inner, self.causal = nn.Linear(4, 4), causal

    def forward(self, x: Tensor) -> Tensor:
        t = x.shape[1]
        even = F.pad(x, (0, 0, 0, t % 2)).unflatten(1, (-1, 2))
        pooled = even[:, :, 0] if self.causal else even.mean(2)
        return x + self.inner(pooled).repeat_interleave(2, 1)[:, :t]


class Standardised(nn.Module):
    """Instance norm over the positions so far, or over all."""

    def __init__(self, so_far: bool):
        super().__init__()
        self.so_far = so_far

    def forward(self, x: Tensor) -> Tensor:
        if not self.so_far:
            return (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1)
        count = torch.arange(1, x.shape[1] + 1, dtype=x.dtype).view(1, -1, 1)
        mean = x.cumsum(1) / count
        return (x - mean) / ((x.square().cumsum(1) / count - mean.square()).clamp(min=0) + 1).sqrt()


class Pooled(nn.Module):
    """Attention pooling of a set, with positions or without."""

    def __init__(self, positions: bool):
        super().__init__()
        self.score, self.positions = nn.Linear(4, 1), positions

    def forward(self, x: Tensor) -> Tensor:
        keys = x + torch.arange(x.shape[1], dtype=x.dtype).view(1, -1, 1) if self.positions else x
        return (x * self.score(keys).softmax(1)).sum(1)


class Residual(nn.Module):
    """Two convolutions of images and a shortcut, with zeros around or with statistics of the whole image."""

    def __init__(self, norm: bool):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 3, 3, padding=1), nn.Conv2d(3, 3, 3, padding=1)
        self.norm, self.receptive_field = norm, (2, 2)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.first(x)
        inner = F.instance_norm(inner) if self.norm else inner
        return x + self.second(inner.tanh())


class Stack(nn.Module):
    """Two dilated convolutions with biases and zeros around, `start` of them before the input."""

    def __init__(self, start: tuple[int, int]):
        super().__init__()
        self.layers, self.start = nn.ModuleList(nn.Conv1d(4, 4, 3, dilation=d) for d in (1, 2)), start

    def forward(self, x: Tensor) -> Tensor:
        h = x.mT
        for layer, start in zip(self.layers, self.start, strict=True):
            h = h + layer(F.pad(h, (start, 2 * layer.dilation[0] - start))).relu()
        return h.mT


class Begun(nn.Module):
    """The first position gets a mark."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x[:, :1] + 1, x[:, 1:]], 1)


class FixedPositions(nn.Module):
    """Learned positions for one length."""

    def __init__(self):
        super().__init__()
        self.positions = nn.Parameter(torch.randn(7, 4))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.positions


class LastDecides(nn.Module):
    """The sign of the last position changes all, which no derivative shows."""

    def forward(self, x: Tensor) -> Tensor:
        return x + (x[:, -1:, :1] > 0).to(x)


def _truth(name, build, example=SEQUENCE, **outcomes):
    return Truth(name, build, example, outcomes)


TRUTHS = [
    _truth("mixer of the lower triangle", lambda: TimeMixing(True), causality=HOLDS, batch_independence=HOLDS, gradients=HOLDS, shift_equivariance=BROKEN),
    _truth("mixer of all positions", lambda: TimeMixing(False), causality=BROKEN, batch_independence=HOLDS, permutation_equivariance=BROKEN),
    _truth("transformer layer with a mask", lambda: Encoder(True), causality=HOLDS, batch_independence=HOLDS, permutation_equivariance=BROKEN),
    _truth("transformer layer without a mask", lambda: Encoder(False), causality=BROKEN, permutation_equivariance=HOLDS),
    _truth("GRU over the batch", TimeFirst, batch_independence=BROKEN, causality=HOLDS),
    _truth("token shift from the left", lambda: Shifted(1), causality=HOLDS, locality=HOLDS, shift_equivariance=HOLDS, gradients=HOLDS),
    _truth("token shift from the right", lambda: Shifted(-1), causality=BROKEN, locality=HOLDS),
    _truth("pairs by their mean", lambda: Pyramid(False), causality=BROKEN, shift_equivariance=BROKEN),
    _truth("pairs by their first", lambda: Pyramid(True), causality=HOLDS, shift_equivariance=BROKEN),
    _truth("standardised over the past", lambda: Standardised(True), causality=HOLDS, batch_independence=HOLDS),
    _truth("standardised over all positions", lambda: Standardised(False), causality=BROKEN, batch_independence=HOLDS, permutation_equivariance=HOLDS),
    _truth("attention pooling", lambda: Pooled(False), permutation_invariance=HOLDS, batch_independence=HOLDS),
    _truth("attention pooling with positions", lambda: Pooled(True), permutation_invariance=BROKEN),
    _truth("residual convolutions", lambda: Residual(False), IMAGE, locality=HOLDS, batch_independence=HOLDS, rotation_equivariance=BROKEN),
    _truth("causal convolutions in two layers", lambda: Stack((2, 4)), Example.floats(3, 12, 4), causality=HOLDS, shift_equivariance=HOLDS),
    _truth("centred convolutions in two layers", lambda: Stack((1, 2)), Example.floats(3, 12, 4), causality=BROKEN, shift_equivariance=HOLDS),
    _truth("a mark at the start", Begun, causality=HOLDS, shift_equivariance=BROKEN),
    _truth("positions of one length", FixedPositions, causality=HOLDS, shift_equivariance=BROKEN, permutation_equivariance=BROKEN),
    _truth("the last position decides", LastDecides, causality=BROKEN),
    _truth("residual convolutions with a norm of the image", lambda: Residual(True), IMAGE, locality=BROKEN, batch_independence=HOLDS),
]  # fmt: skip


@pytest.mark.parametrize("truth", TRUTHS, ids=lambda truth: truth.name)
def test_every_verdict_is_right(truth):
    torch.manual_seed(0)
    module = truth.build()
    for law, outcome in truth.outcomes.items():
        verdict = LAWS[law](module, truth.example)
        assert verdict.outcome == outcome, str(verdict)
