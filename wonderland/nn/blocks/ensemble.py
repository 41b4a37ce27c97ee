"""Ensembles: several small networks computed as one, with a leading ensemble axis in every weight."""

import math
from collections.abc import Sequence
from itertools import accumulate

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.arguments import Checked, at_least_one


@part
class MemberLinear(Checked, nn.Module):
    r"""A linear layer for each of m members, as one batched product.

    .. math:: y_m = x_m W_m + b_m

    Shapes: x (m, b, i) -> (m, b, o), or (k, b, i) -> (k, b, o) for k of the `members` only.

    >>> MemberLinear(members=3, inputs=4, outputs=2)(torch.randn(3, 5, 4)).shape
    torch.Size([3, 5, 2])
    """

    def __init__(self, members: int, inputs: int, outputs: int):
        super().__init__()
        at_least_one("MemberLinear", members=members, outputs=outputs)
        if inputs < 0:
            raise WonderlandError(f"MemberLinear cannot be built with inputs={inputs}: it is a whole number from 0.")
        bound = 1 / math.sqrt(max(1, inputs))
        self.weight = nn.Parameter(torch.empty(members, inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(members, 1, outputs).uniform_(-bound, bound))

    def forward(self, x: Float[Tensor, "k b i"], members: Int[Tensor, "k"] | None = None) -> Float[Tensor, "k b o"]:
        if members is None:
            return torch.baddbmm(self.bias, x, self.weight)
        return torch.baddbmm(self.bias[members], x, self.weight[members])


@part
class MemberDropout(Checked, nn.Module):
    r"""Dropout with a probability for each member, drawn a byte an element.

    .. math:: y = x \cdot \frac{\mathbb{1}[u \ge p_m]}{1 - p_m}, \qquad u \sim \{0, \dots, 255\} / 256

    Probabilities are rounded to 1/256. A 64-bit draw serves eight elements, which on a CPU is several times faster than
    a Bernoulli draw for each. Does nothing in evaluation.

    Shapes: x (m, b, d) -> (m, b, d).
    """

    threshold: Tensor
    gain: Tensor

    def __init__(self, probabilities: Sequence[float]):
        super().__init__()
        if not all(0 <= probability < 1 for probability in probabilities):
            raise WonderlandError(f"Dropout probabilities lie between 0 and 1, unlike {list(probabilities)}.")
        self.active = any(probabilities)
        threshold = (torch.tensor(list(probabilities), dtype=torch.float32) * 256).round().view(-1, 1, 1)
        self.register_buffer("threshold", threshold.to(torch.uint8))
        self.register_buffer("gain", 256 / (256 - threshold))

    def forward(self, x: Float[Tensor, "k b d"], members: Int[Tensor, "k"] | None = None) -> Float[Tensor, "k b d"]:
        if not self.training or not self.active:
            return x
        threshold, gain = (part if members is None else part[members] for part in (self.threshold, self.gain))
        count = x.numel()
        draws = torch.empty((count + 7) // 8, dtype=torch.int64, device=x.device).random_(-(2**63), None)
        kept = draws.view(torch.uint8)[:count].view(x.shape) >= threshold
        return x * kept.to(x.dtype).mul_(gain)


@part
class PeriodicNumbers(Checked, nn.Module):
    r"""Each number as itself and as a few learned mixtures of cosines of it, so that a network can bend sharply in it.

    .. math:: e(z) = \bigl(s z,\; W^\top \cos(2 \pi f z + c) + b\bigr)

    with frequencies f drawn from a normal distribution of width sigma: small ones begin smooth, large ones wiggly.
    Shapes: z (m, b, p) -> (m, b, p * dim), the plain numbers first.
    Papers: Gorishniy et al., 2022; Holzmueller et al., 2024.

    >>> PeriodicNumbers(numbers=3, dim=4, sigmas=[0.1, 0.7])(torch.randn(2, 5, 3)).shape
    torch.Size([2, 5, 12])
    """

    no_decay = frozenset({"scale", "phase", "bias"})

    def __init__(self, numbers: int, dim: int, sigmas: Sequence[float], *, frequencies: int = 16):
        super().__init__()
        at_least_one("PeriodicNumbers", members=len(sigmas), numbers=numbers, dim=dim, frequencies=frequencies)
        members = len(sigmas)
        self.members, self.numbers = members, numbers
        width = torch.tensor(list(sigmas), dtype=torch.float32).view(members, 1, 1, 1)
        bound = 1 / math.sqrt(frequencies)
        self.scale = nn.Parameter(torch.ones(members, 1, numbers))
        self.frequency = nn.Parameter(torch.randn(members, numbers, 1, frequencies) * width)
        self.phase = nn.Parameter(torch.empty(members, numbers, 1, frequencies).uniform_(-math.pi, math.pi))
        self.weight = nn.Parameter(torch.empty(members, numbers, frequencies, dim - 1).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(members, numbers, 1, dim - 1).uniform_(-bound, bound))

    def forward(self, z: Float[Tensor, "k b p"], members: Int[Tensor, "k"] | None = None) -> Float[Tensor, "k b e"]:
        parts = (self.scale, self.frequency, self.phase, self.weight, self.bias)
        scale, frequency, phase, weight, bias = parts if members is None else (part[members] for part in parts)
        waves = torch.cos(2 * math.pi * frequency * z.transpose(1, 2).unsqueeze(-1) + phase)
        mixed = torch.baddbmm(bias.flatten(0, 1), waves.flatten(0, 1), weight.flatten(0, 1))
        mixed = mixed.unflatten(0, (len(scale), self.numbers)).transpose(1, 2).flatten(2)
        return torch.cat([z * scale, mixed], -1)


@part
class MemberEmbeddings(Checked, nn.Module):
    """A vector for each level of each category, for each member.

    Shapes: codes (m, b, q) -> (m, b, q * dim). Code 0 is the unknown level.

    >>> MemberEmbeddings(members=2, levels=[3, 5], dim=4)(torch.zeros(2, 6, 2)).shape
    torch.Size([2, 6, 8])
    """

    no_decay = frozenset({"weight"})
    start: Tensor

    def __init__(self, members: int, levels: Sequence[int], dim: int):
        super().__init__()
        at_least_one("MemberEmbeddings", members=members, columns=len(levels), levels=min(levels, default=1), dim=dim)
        total = sum(levels)
        first = torch.tensor([0, *accumulate(levels)][: len(levels)])
        self.register_buffer(
            "start", first[None, None] + total * torch.arange(members)[:, None, None], persistent=False
        )
        self.weight = nn.Parameter(0.5 * torch.randn(members * total, dim))

    def forward(self, codes: Float[Tensor, "m b q"]) -> Float[Tensor, "m b e"]:
        return F.embedding(codes.long() + self.start, self.weight).flatten(2)
