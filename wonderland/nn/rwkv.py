"""RWKV: attention replaced by an average that fades, and tokens that look one step back."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.load import load_published
from wonderland.nn.mixer import Mixer, lengths
from wonderland.nn.mlp import width_of
from wonderland.nn.past import latest
from wonderland.nn.state import Layout, Slot, State
from wonderland.ops import steps
from wonderland.ops.squared_relu import squared_relu
from wonderland.ops.wkv import EMPTY, wkv


def shifted(x: Tensor, last: Tensor | None) -> Tensor:
    """Each token's predecessor; `last` (b, 1, dim) stands before the first, or 0."""
    before = torch.zeros_like(x[:, :1]) if last is None else last
    return before if x.shape[1] == 1 else torch.cat([before, x[:, :-1]], 1)


def _blend(dim: int) -> nn.Parameter:
    return nn.Parameter(torch.linspace(0, 1, dim))


@part
class RWKVChannel(Mixer):
    r"""Channel mixing of RWKV: a gated two-layer network with a squared rectifier that sees one token back.

    .. math::
        y_i = \sigma(W_r \tilde x^r_i) \odot W_v \max(0, W_k \tilde x^k_i)^2, \qquad
        \tilde x^\cdot_i = \mu^\cdot \odot x_i + (1 - \mu^\cdot) \odot x_{i-1}

    The hidden layer has `hidden` units, `expand` times dim unless given.
    Shapes: x (b, t, dim) -> (b, t, dim); state: the last input (b, 1, dim). Book: Alice 13.4.2. Paper: Peng et al., 2023.

    >>> RWKVChannel(dim=16)(torch.randn(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    VECTORS = ("mix_receptance", "mix_key")
    PUBLISHED: ClassVar = {
        "time_mix_key": "mix_key", "time_mix_receptance": "mix_receptance", "key.weight": "key.weight",
        "value.weight": "value.weight", "receptance.weight": "receptance.weight",
    }  # fmt: skip
    receptive_field = (1, 0)

    def __init__(self, dim: int, *, expand: int = 4, hidden: int | None = None):
        super().__init__()
        if min(dim, expand) < 1:
            raise WonderlandError(f"RWKVChannel cannot be built with dim={dim}, expand={expand}: each is at least 1.")
        self.dim, width = dim, width_of(hidden, expand * dim, "RWKVChannel")
        self.mix_key, self.mix_receptance = _blend(dim), _blend(dim)
        self.key = nn.Linear(dim, width, bias=False)
        self.value = nn.Linear(width, dim, bias=False)
        self.receptance = nn.Linear(dim, dim, bias=False)

    def load_published(self, weights: Mapping[str, Tensor]) -> None:
        """Take over weights of the published module, as `transformers` names them."""
        load_published(self, self.PUBLISHED, weights)

    def laws(self):
        from wonderland import laws

        return (*super().laws(), laws.strict_causality, laws.shift_equivariance, laws.locality)

    def layout(self) -> Layout:
        return (Slot((1, self.dim)),)

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        last = None if state is None else state[0]
        before = shifted(x, last)
        hidden = squared_relu(self.key(torch.lerp(before, x, self.mix_key)))
        gate = torch.sigmoid(self.receptance(torch.lerp(before, x, self.mix_receptance)))
        y = gate * self.value(hidden)
        return y, (latest(x, last, mask, 1),)

    def plan_own(self, program: steps.Program, state: State, seen: Tensor) -> State | None:
        weights = program.weights(self, ("receptance", "key", "value"), self.VECTORS)
        before = program.state(state)
        if weights is None or before is None:
            return None
        after = torch.empty_like(before[0])
        program.add(steps.RWKV_CHANNEL, (weights[1].shape[0],), (*weights, *before), (after,))
        return (after,)


@part
class RWKV(Mixer):
    r"""Time mixing: a receptance opens or closes an average of past values, whose weights fade at a rate of each channel.

    .. math::
        r, k, v = W_r \tilde x^r, W_k \tilde x^k, W_v \tilde x^v, \qquad
        \tilde x^\cdot_i = \mu^\cdot \odot x_i + (1 - \mu^\cdot) \odot x_{i-1}

    .. math::
        y_i = W_o \Big( \sigma(r_i) \odot
        \frac{\sum_{j<i} e^{k_j - (i-1-j) w} v_j + e^{k_i + u} v_i}{\sum_{j<i} e^{k_j - (i-1-j) w} + e^{k_i + u}} \Big),
        \qquad w = e^{\text{decay}}

    `count="book"` decays once more, :math:`(i - j) w`, as the book prints it; the default is the published form, whose
    weights load.

    Shapes: x (b, t, dim) -> (b, t, dim); state: the last input (b, 1, dim), two sums (b, 2, dim) and their scale (b, dim),
    constant in t. Book: Alice 13.4.2. Paper: Peng et al., 2023.

    >>> mixer = RWKV(dim=16)
    >>> mixer(torch.randn(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    companion = RWKVChannel
    VECTORS = ("mix_receptance", "mix_key", "mix_value", "decay", "bonus")
    PUBLISHED: ClassVar = {
        "time_decay": "decay", "time_first": "bonus", "time_mix_key": "mix_key", "time_mix_value": "mix_value",
        "time_mix_receptance": "mix_receptance", "key.weight": "key.weight", "value.weight": "value.weight",
        "receptance.weight": "receptance.weight", "output.weight": "output.weight",
    }  # fmt: skip

    def __init__(self, dim: int, *, count: str = "paper"):
        super().__init__()
        if dim < 1 or count not in ("paper", "book"):
            raise WonderlandError(
                f"RWKV cannot be built with dim={dim}, count={count!r}: dim is at least 1, count is 'paper' or 'book'."
            )
        self.dim, self.count = dim, count
        self.mix_key, self.mix_value, self.mix_receptance = _blend(dim), _blend(dim), _blend(dim)
        self.key, self.value = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.receptance, self.output = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        # From channels that remember almost everything to channels that forget within a few tokens.
        self.decay = nn.Parameter(-5 + 8 * torch.linspace(0, 1, dim).pow(1.5))
        self.bonus = nn.Parameter(torch.full((dim,), 0.3).log() + 0.5 * ((torch.arange(dim) + 1) % 3 - 1))

    def load_published(self, weights: Mapping[str, Tensor]) -> None:
        """Take over weights of the published module, as `transformers` names them."""
        load_published(self, self.PUBLISHED, weights)

    def laws(self):
        from wonderland import laws

        return (*super().laws(), laws.strict_causality)

    def layout(self) -> Layout:
        return Slot((1, self.dim)), Slot((2, self.dim)), Slot((self.dim,), fill=EMPTY)

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        last, average = (None, None) if state is None else (state[0], state[1:])
        real = None if mask is None else lengths(mask)
        before = shifted(x, last)
        r = self.receptance(torch.lerp(before, x, self.mix_receptance))
        k = self.key(torch.lerp(before, x, self.mix_key))
        v = self.value(torch.lerp(before, x, self.mix_value))
        decay = -torch.exp(self.decay)
        bonus = self.bonus if self.count == "paper" else self.bonus - decay
        y, average = wkv(k, v, decay, bonus, state=average, lengths=real)
        y = self.output(torch.sigmoid(r) * y)
        return y, (latest(x, last, mask, 1), *average)

    def kernel_multiply_adds(self, t: int) -> int:
        """Products of one step outside its projections: two sums that fade, and two weights."""
        return 8 * self.dim

    def plan_own(self, program: steps.Program, state: State, seen: Tensor) -> State | None:
        weights = program.weights(self, ("receptance", "key", "value", "output"), self.VECTORS)
        before = program.state(state)
        if weights is None or before is None:
            return None
        after = tuple(torch.empty_like(part) for part in before)
        program.add(steps.RWKV_TIME, (int(self.count == "book"),), (*weights, *before), after)
        return after
