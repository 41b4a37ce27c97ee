"""Modules of which it is known, by construction, which laws they keep: right ones and wrong variants of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from wonderland.laws import Example

HOLDS, BROKEN, NOT_APPLICABLE = "holds", "broken", "not applicable"


@dataclass(frozen=True)
class Truth:
    """A module, an example, and the outcome of laws on it."""

    name: str
    build: Callable[[], nn.Module]
    example: Example
    outcomes: dict[str, str]


class Apply(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any], **attributes: Any):
        super().__init__()
        self.function = function
        for name, value in attributes.items():
            setattr(self, name, value)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


class Masked(nn.Module):
    """A function of an input and a padding mask as a module."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.randn(4, 4))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.function(x @ self.weight if not x.isnan().any() else _clean(x, mask) @ self.weight, mask)


def _clean(x: Tensor, mask: Tensor | None) -> Tensor:
    return x if mask is None else x.masked_fill(~mask.bool().unsqueeze(-1), 0)


class Convolution(nn.Module):
    """A convolution over time with given padding on both sides."""

    def __init__(self, width: int, left: int, right: int, *, dilation: int = 1, groups: int = 1):
        super().__init__()
        self.inner = nn.Conv1d(4, 4, width, dilation=dilation, groups=groups)
        self.sides = left, right
        self.receptive_field = (left, right)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(F.pad(x.mT, self.sides)).mT


class Attention(nn.Module):
    """Attention with one head; `visible(i, j, t)` says which keys j a query i sees, `rotate` changes queries and keys."""

    def __init__(self, visible: Callable[..., Tensor], positions: Callable[[Tensor], Tensor] | None = None):
        super().__init__()
        self.qkv, self.visible, self.positions = nn.Linear(4, 12), visible, positions

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x if mask is None else _clean(x, mask)
        t = x.shape[1]
        if self.positions is not None:
            x = x + self.positions(torch.arange(t, dtype=x.dtype)).unsqueeze(-1)
        q, k, v = self.qkv(x).chunk(3, -1)
        i, j = torch.arange(t).view(-1, 1), torch.arange(t)
        seen = self.visible(i, j, t)
        seen = seen if mask is None else seen & mask.unsqueeze(1)
        scores = (q @ k.mT / 2).masked_fill(~seen, -1e30)
        return scores.softmax(-1) @ v


class Recurrent(nn.Module):
    def __init__(self, kind: type, *, bidirectional: bool = False):
        super().__init__()
        self.inner = kind(4, 4, batch_first=True, bidirectional=bidirectional)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)[0]


class Normed(nn.Module):
    """Normalisation over chosen axes, by the statistics of the input itself."""

    def __init__(self, axes: tuple[int, ...]):
        super().__init__()
        self.axes = axes

    def forward(self, x: Tensor) -> Tensor:
        return (x - x.mean(self.axes, keepdim=True)) / (x.var(self.axes, keepdim=True, unbiased=False) + 1e-5).sqrt()


class AlwaysTraining(nn.Module):
    """Batch norm that keeps to the statistics of the batch in evaluation mode too."""

    def __init__(self):
        super().__init__()
        self.inner = nn.BatchNorm1d(4, track_running_stats=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x.mT).mT


class Evaluated(nn.Module):
    """Batch norm with running statistics."""

    def __init__(self):
        super().__init__()
        self.inner = nn.BatchNorm1d(4)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x.mT).mT


class _Backward(torch.autograd.Function):
    """tanh, with a backward pass that somebody wrote by hand."""

    @staticmethod
    def forward(ctx, x, change):
        ctx.save_for_backward(x)
        ctx.change = change
        return x.tanh()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return ctx.change(g * (1 - x.tanh().square())), None


class Tanh(nn.Module):
    """tanh whose gradients are changed."""

    def __init__(self, change: Callable[[Tensor], Tensor] = lambda g: g):
        super().__init__()
        self.change = change

    def forward(self, x: Tensor) -> Tensor:
        return _Backward.apply(x, self.change)


def _spoil_last(amount: float) -> Callable[[Tensor], Tensor]:
    def change(g: Tensor) -> Tensor:
        g = g.clone()
        g[..., -1, :] = g[..., -1, :] * (1 + amount)
        return g

    return change


class Gate(nn.Module):
    """A parameter whose gradient is cut; declared or not."""

    def __init__(self, *, declared: bool):
        super().__init__()
        self.gate = nn.Parameter(torch.randn(4))
        if declared:
            self.exempt = ("gate",)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate.detach()


class Rounded(nn.Module):
    """Rounding with a straight-through gradient; declared or not."""

    def __init__(self, *, declared: bool):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        if declared:
            self.exempt = ("input", "linear.weight", "linear.bias")

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        return y + (y.round() - y).detach()


class Graph(nn.Module):
    """A graph convolution with a dense adjacency matrix."""

    def __init__(self, mix: Callable[[Tensor, Tensor], Tensor]):
        super().__init__()
        self.linear, self.mix = nn.Linear(4, 4), mix

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        return self.linear(self.mix(adjacency, x)).tanh()


class Image(nn.Module):
    """A convolution over images with a kernel that may be made symmetric under quarter turns."""

    def __init__(self, width: int, *, symmetric: bool = False, **options: Any):
        super().__init__()
        self.inner = nn.Conv2d(3, 3, width, padding=width // 2, **options)
        self.receptive_field = (width // 2, width // 2)
        if symmetric:
            with torch.no_grad():
                weight = self.inner.weight
                weight.copy_(sum(torch.rot90(weight, k, (2, 3)) for k in range(4)) / 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


def _running_sum(x: Tensor) -> Tensor:
    return x.cumsum(1)


def _running_mean(x: Tensor) -> Tensor:
    return x.cumsum(1) / torch.arange(1, x.shape[1] + 1, dtype=x.dtype).view(1, -1, 1)


def _fourier(reach: int) -> Callable[[Tensor], Tensor]:
    """A long convolution by FFT; padded to `reach` times the length (1 wraps around)."""

    def run(x: Tensor) -> Tensor:
        t = x.shape[1]
        kernel = 0.7 ** torch.arange(t, dtype=x.dtype)
        product = torch.fft.rfft(x, reach * t, dim=1) * torch.fft.rfft(kernel, reach * t).unsqueeze(-1)
        return torch.fft.irfft(product, reach * t, dim=1)[:, :t]

    return run


def _mean_pool(count: Callable[[Tensor, Tensor | None], Any], *, clean: bool = True) -> Callable[..., Tensor]:
    def run(x: Tensor, mask: Tensor | None) -> Tensor:
        x = _clean(x, mask) if clean else x
        return x + x.sum(1, keepdim=True) / count(x, mask)

    return run


def _max_pool(x: Tensor, mask: Tensor | None, *, filler: float) -> Tensor:
    hidden = x if mask is None else x.masked_fill(~mask.unsqueeze(-1), filler)
    return _clean(x, mask) + hidden.amax(1, keepdim=True)


def _real(x: Tensor, mask: Tensor | None) -> Any:
    return x.shape[1] if mask is None else mask.sum(1).view(-1, 1, 1)


def _centred(x: Tensor) -> Tensor:
    return x - x.mean(-2, keepdim=True)


def _directions(x: Tensor) -> Tensor:
    difference = x.unsqueeze(-2) - x.unsqueeze(-3)
    return (difference / (1 + difference.square().sum(-1, keepdim=True))).sum(-2)


SEQUENCE = Example.floats(3, 7, 4)
LONG = Example.floats(2, 130, 4)
POINTS = Example.floats(2, 6, 3, axes=("batch", "node", "space"))
IMAGE = Example.floats(2, 3, 8, 8)
_adjacency = torch.rand(5, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
NODES = Example((torch.randn(5, 4, dtype=torch.float64), _adjacency), axes=("node",))
BATCHED_NODES = Example(
    (torch.randn(2, 5, 4, dtype=torch.float64), _adjacency.expand(2, 5, 5).contiguous()), axes=("batch", "node")
)
TOKENS = Example.tokens(3, 7, vocab=11)


def _past(i, j, t):
    return j <= i


def _positions_from_end(p: Tensor) -> Tensor:
    return torch.sin(len(p) - 1 - p)


class Language(nn.Module):
    """Tokens to outputs through a mixer."""

    def __init__(self, mixer: nn.Module):
        super().__init__()
        self.table, self.mixer = nn.Embedding(11, 4), mixer

    def forward(self, tokens: Tensor) -> Tensor:
        return self.mixer(self.table(tokens))


def _truth(name: str, build: Callable[[], nn.Module], example: Example, **outcomes: str) -> Truth:
    return Truth(name, build, example, outcomes)


def _function(function: Callable[..., Any], **attributes: Any) -> Callable[[], nn.Module]:
    return lambda: Apply(function, **attributes)


TRUTHS = [
    # Causality over time.
    _truth("causal convolution", lambda: Convolution(3, 2, 0), SEQUENCE, causality=HOLDS, strict_causality=HOLDS, locality=HOLDS, shift_equivariance=HOLDS, gradients=HOLDS, permutation_equivariance=BROKEN),
    _truth("centred convolution", lambda: Convolution(3, 1, 1), SEQUENCE, causality=BROKEN, locality=HOLDS, shift_equivariance=HOLDS),
    _truth("convolution that looks ahead", lambda: Convolution(3, 0, 2), SEQUENCE, causality=BROKEN, locality=HOLDS),
    _truth("causal convolution, off by one", lambda: Convolution(4, 2, 1), SEQUENCE, causality=BROKEN),
    _truth("dilated causal convolution", lambda: Convolution(3, 4, 0, dilation=2), SEQUENCE, causality=HOLDS, shift_equivariance=HOLDS),
    _truth("depthwise causal convolution", lambda: Convolution(3, 2, 0, groups=4), SEQUENCE, causality=HOLDS, locality=HOLDS),
    _truth("convolution wider than it says", lambda: Apply(Convolution(5, 4, 0), receptive_field=(3, 0)), SEQUENCE, causality=HOLDS, locality=BROKEN),
    _truth("causal convolution of long inputs", lambda: Convolution(3, 2, 0), LONG, causality=HOLDS, gradients=HOLDS),
    _truth("LSTM", lambda: Recurrent(nn.LSTM), SEQUENCE, causality=HOLDS, batch_independence=HOLDS, gradients=HOLDS, permutation_equivariance=BROKEN),
    _truth("GRU in both directions", lambda: Recurrent(nn.GRU, bidirectional=True), SEQUENCE, causality=BROKEN, batch_independence=HOLDS),
    _truth("running sum", _function(_running_sum), SEQUENCE, causality=HOLDS, shift_equivariance=HOLDS, gradients=HOLDS),
    _truth("running mean", _function(_running_mean), SEQUENCE, causality=HOLDS, shift_equivariance=BROKEN),
    _truth("running sum over the length", _function(lambda x: x.cumsum(1) / x.shape[1]), SEQUENCE, causality=BROKEN, strict_causality=HOLDS),
    _truth("running sum over the root of the length", _function(lambda x: x.cumsum(1) / x.shape[1] ** 0.5), LONG, causality=BROKEN),
    _truth("sum of the future", _function(lambda x: x.flip(1).cumsum(1).flip(1)), SEQUENCE, causality=BROKEN),
    _truth("future that leaks a billionth", _function(lambda x: x + 1e-9 * x.roll(-1, 1)), SEQUENCE, causality=BROKEN),
    _truth("future in a detached path", _function(lambda x: x + x.roll(-1, 1).detach()), SEQUENCE, causality=BROKEN),
    _truth("long convolution by FFT", _function(_fourier(2)), SEQUENCE, causality=HOLDS, strict_causality=BROKEN),
    _truth("long convolution that wraps around", _function(_fourier(1)), SEQUENCE, causality=BROKEN),
    _truth("positions from the start", _function(lambda x: x + torch.arange(x.shape[1]).view(1, -1, 1)), SEQUENCE, causality=HOLDS, permutation_equivariance=BROKEN),
    _truth("positions from the end", _function(lambda x: x + torch.arange(x.shape[1] - 1, -1, -1).view(1, -1, 1)), SEQUENCE, causality=BROKEN),
    _truth("positions relative to the length", _function(lambda x: x + torch.linspace(0, 1, x.shape[1]).view(1, -1, 1)), SEQUENCE, causality=BROKEN),
    # Attention.
    _truth("causal attention", lambda: Attention(_past), SEQUENCE, causality=HOLDS, batch_independence=HOLDS, padding_invariance=HOLDS, gradients=HOLDS),
    _truth("attention to all", lambda: Attention(lambda i, j, t: j > -1 + 0 * i), SEQUENCE, causality=BROKEN, permutation_equivariance=HOLDS, padding_invariance=HOLDS),
    _truth("attention with the mask transposed", lambda: Attention(lambda i, j, t: j >= i), SEQUENCE, causality=BROKEN),
    _truth("attention one step too far", lambda: Attention(lambda i, j, t: j <= i + 1), SEQUENCE, causality=BROKEN),
    _truth("attention that misses itself but at the start", lambda: Attention(lambda i, j, t: (j < i) | ((i == 0) & (j == 0))), SEQUENCE, causality=HOLDS),
    _truth("attention in a window", lambda: Apply(Attention(lambda i, j, t: (j <= i) & (j > i - 3)), receptive_field=(2, 0)), SEQUENCE, causality=HOLDS, locality=HOLDS),
    _truth("attention in a window too wide", lambda: Apply(Attention(lambda i, j, t: (j <= i) & (j > i - 4)), receptive_field=(2, 0)), SEQUENCE, causality=HOLDS, locality=BROKEN),
    _truth("attention in blocks", lambda: Attention(lambda i, j, t: i // 2 >= j // 2), SEQUENCE, causality=BROKEN),
    _truth("causal attention aligned to the end", lambda: Attention(lambda i, j, t: j <= i, _positions_from_end), SEQUENCE, causality=BROKEN),
    _truth("causal attention with a last token that sees nothing else", lambda: Attention(lambda i, j, t: (j <= i) & ((i < t - 1) | (j == i))), SEQUENCE, causality=BROKEN),
    _truth("causal language model", lambda: Language(Attention(_past)), TOKENS, causality=HOLDS, batch_independence=HOLDS),
    _truth("language model with a leak", lambda: Language(Attention(lambda i, j, t: (j <= i) | ((i == 2) & (j == 5)))), TOKENS, causality=BROKEN),
    _truth("language model over its length", lambda: Language(Apply(lambda x: x.cumsum(1) / x.shape[1])), TOKENS, causality=BROKEN),
    # Rows of a batch.
    _truth("layer norm", lambda: nn.LayerNorm(4), SEQUENCE, causality=HOLDS, batch_independence=HOLDS, scale_invariance=HOLDS, gradients=HOLDS),
    _truth("batch norm in training", AlwaysTraining, SEQUENCE, causality=BROKEN, batch_independence=BROKEN),
    _truth("batch norm in evaluation", Evaluated, SEQUENCE, causality=HOLDS, batch_independence=HOLDS),
    _truth("norm over the batch", lambda: Normed((0,)), SEQUENCE, causality=HOLDS, batch_independence=BROKEN),
    _truth("norm over time", lambda: Normed((1,)), SEQUENCE, causality=BROKEN, batch_independence=HOLDS, permutation_equivariance=HOLDS),
    _truth("softmax over the batch", _function(lambda x: x.softmax(0)), SEQUENCE, batch_independence=BROKEN),
    _truth("softmax over features", _function(lambda x: x.softmax(-1)), SEQUENCE, batch_independence=HOLDS, causality=HOLDS),
    _truth("attention over the batch", _function(lambda x: ((x.transpose(0, 1) @ x.transpose(0, 1).mT).softmax(-1) @ x.transpose(0, 1)).transpose(0, 1)), SEQUENCE, batch_independence=BROKEN, causality=HOLDS),
    # Padding.
    _truth("mean of real tokens", lambda: Masked(_mean_pool(_real)), SEQUENCE, padding_invariance=HOLDS),
    _truth("mean that counts padding", lambda: Masked(_mean_pool(lambda x, mask: x.shape[1])), SEQUENCE, padding_invariance=BROKEN),
    _truth("mean over the longest of the batch", lambda: Masked(_mean_pool(lambda x, mask: x.shape[1] if mask is None else mask.sum(1).max())), SEQUENCE, padding_invariance=BROKEN),
    _truth("maximum of real tokens", lambda: Masked(lambda x, mask: _max_pool(x, mask, filler=-1e30)), SEQUENCE, padding_invariance=HOLDS),
    _truth("maximum over padding of zeros", lambda: Masked(lambda x, mask: _max_pool(x - 9, mask, filler=0.0)), SEQUENCE, padding_invariance=BROKEN),
    _truth("mask read the other way round", lambda: Masked(lambda x, mask: _mean_pool(_real)(x, None if mask is None else mask.flip(1))), SEQUENCE, padding_invariance=BROKEN),
    _truth("mask that is ignored", lambda: Masked(lambda x, mask: x + x.nan_to_num().mean(1, keepdim=True)), SEQUENCE, padding_invariance=BROKEN),
    _truth("convolution that reads padding", lambda: Masked(lambda x, mask: F.conv1d(F.pad(x.mT, (1, 1)), torch.ones(4, 1, 3, dtype=x.dtype), groups=4).mT), Example.floats(3, 7, 4, mask="mask"), padding_invariance=BROKEN),
    _truth("mean of real tokens, float mask", lambda: Masked(lambda x, mask: _mean_pool(lambda x, m: x.shape[1] if m is None else m.sum(1).view(-1, 1, 1))(x, mask)), Example((torch.randn(3, 7, 4),), {"mask": torch.ones(3, 7)}), padding_invariance=HOLDS),
    _truth("mean of real tokens, integer mask", lambda: Masked(_mean_pool(_real)), Example((torch.randn(3, 7, 4),), {"mask": torch.ones(3, 7, dtype=torch.long)}), padding_invariance=HOLDS),
    _truth("mean that counts padding, integer mask", lambda: Masked(_mean_pool(lambda x, mask: x.shape[1])), Example((torch.randn(3, 7, 4),), {"mask": torch.ones(3, 7, dtype=torch.long)}), padding_invariance=BROKEN),
    # Backward passes.
    _truth("right backward", Tanh, SEQUENCE, gradients=HOLDS, causality=HOLDS),
    _truth("right backward of long inputs", Tanh, LONG, gradients=HOLDS),
    _truth("backward off by 9e-5", lambda: Tanh(lambda g: g * (1 + 9e-5)), SEQUENCE, gradients=BROKEN),
    _truth("backward off by 9e-5, long inputs", lambda: Tanh(lambda g: g * (1 - 9e-5)), LONG, gradients=BROKEN),
    _truth("backward off by 1e-5", lambda: Tanh(lambda g: g * (1 + 1e-5)), LONG, gradients=BROKEN),
    _truth("backward off by 1e-9, which is rounding", lambda: Tanh(lambda g: g * (1 + 1e-9)), SEQUENCE, gradients=HOLDS),
    _truth("backward wrong at the last position", lambda: Tanh(_spoil_last(0.01)), LONG, gradients=BROKEN),
    _truth("backward of half the size", lambda: Tanh(lambda g: g / 2), SEQUENCE, gradients=BROKEN),
    _truth("backward with a clipped gradient", lambda: Tanh(lambda g: g.clamp(-0.1, 0.1)), SEQUENCE, gradients=BROKEN),
    _truth("backward that mixes rows", lambda: Tanh(lambda g: g.flip(0)), SEQUENCE, gradients=BROKEN),
    _truth("detached gate", lambda: Gate(declared=False), SEQUENCE, gradients=BROKEN),
    _truth("detached gate, declared", lambda: Gate(declared=True), SEQUENCE, gradients=HOLDS),
    _truth("straight-through rounding", lambda: Rounded(declared=False), SEQUENCE, gradients=BROKEN),
    _truth("straight-through rounding, declared", lambda: Rounded(declared=True), SEQUENCE, gradients=NOT_APPLICABLE),
    _truth("kinks everywhere", lambda: nn.Sequential(nn.Linear(4, 300), nn.ReLU(), nn.Linear(300, 4)), LONG, gradients=HOLDS, causality=HOLDS),
    _truth("float32 inside", _function(lambda x: x.float().sin().to(x)), SEQUENCE, gradients=NOT_APPLICABLE),
    # Images.
    _truth("convolution of images", lambda: Image(3), IMAGE, locality=HOLDS, shift_equivariance=HOLDS, rotation_equivariance=BROKEN, causality=NOT_APPLICABLE, batch_independence=HOLDS),
    _truth("convolution of images, wider than it says", lambda: Apply(Image(5), receptive_field=(1, 1)), IMAGE, locality=BROKEN),
    _truth("symmetric kernel", lambda: Image(3, symmetric=True), IMAGE, rotation_equivariance=HOLDS, locality=HOLDS),
    _truth("circular convolution", lambda: Image(3, padding_mode="circular"), IMAGE, locality=BROKEN),
    _truth("average over the image", _function(lambda x: x - x.mean((2, 3), keepdim=True), receptive_field=(1, 1)), IMAGE, locality=BROKEN, rotation_equivariance=HOLDS),
    _truth("columns that are marked", _function(lambda x: x * torch.arange(x.shape[3])), IMAGE, shift_equivariance=BROKEN, rotation_equivariance=BROKEN),
    _truth("rows of one kernel", lambda: nn.Conv2d(3, 3, (1, 3), padding=(0, 1)), Example.floats(2, 3, 8, 8, field={"height": (0, 0), "width": (1, 1)}), locality=HOLDS),
    _truth("rows of a kernel that also looks up", lambda: nn.Conv2d(3, 3, (3, 3), padding=1), Example.floats(2, 3, 8, 8, field={"height": (0, 0), "width": (1, 1)}), locality=BROKEN),
    _truth("pooled image", _function(lambda x: x.mean((2, 3))), IMAGE, rotation_equivariance=HOLDS),
    # Sets, nodes and points.
    _truth("sum of a set", _function(lambda x: x.exp().sum(1)), SEQUENCE, permutation_invariance=HOLDS),
    _truth("last of a set", _function(lambda x: x[:, -1]), SEQUENCE, permutation_invariance=BROKEN),
    _truth("graph convolution", lambda: Graph(lambda a, x: a @ x), NODES, permutation_equivariance=HOLDS),
    _truth("graph convolution of a batch", lambda: Graph(lambda a, x: a @ x), BATCHED_NODES, permutation_equivariance=HOLDS, batch_independence=HOLDS),
    _truth("graph convolution that reads the order of nodes", lambda: Graph(lambda a, x: a.tril() @ x), NODES, permutation_equivariance=BROKEN),
    _truth("graph convolution over a fixed chain", lambda: Graph(lambda a, x: a @ x + x.roll(1, -2)), BATCHED_NODES, permutation_equivariance=BROKEN),
    _truth("centred points", _function(_centred), POINTS, rotation_equivariance=HOLDS, permutation_equivariance=HOLDS),
    _truth("forces between points", _function(_directions), POINTS, rotation_equivariance=HOLDS, permutation_equivariance=HOLDS),
    _truth("distances of points", _function(lambda x: (x.unsqueeze(2) - x.unsqueeze(1)).square().sum(-1).sum(-1)), POINTS, rotation_equivariance=HOLDS),
    _truth("points through a matrix", lambda: nn.Linear(3, 3, bias=False), POINTS, rotation_equivariance=BROKEN),
    _truth("points shifted along one axis", _function(lambda x: x + torch.tensor([1.0, 0.0, 0.0])), POINTS, rotation_equivariance=BROKEN),
    _truth("points through tanh", _function(lambda x: x.tanh()), POINTS, rotation_equivariance=BROKEN),
    _truth("cross product, which turns with rotations", _function(lambda x: torch.linalg.cross(x, x.roll(1, 1))), POINTS, rotation_equivariance=HOLDS),
]  # fmt: skip
