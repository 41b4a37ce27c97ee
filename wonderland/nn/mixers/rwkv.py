"""RWKV: an exponentially decaying average in the place of attention, and tokens mixed with the one before."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.arguments import at_least_one
from wonderland.nn.contract.left_context import next_context
from wonderland.nn.contract.load import load_published
from wonderland.nn.contract.mixer import Mixer, lengths
from wonderland.nn.contract.state import Layout, Slot, State
from wonderland.ops.blend import blend
from wonderland.ops.squared_relu import squared_relu
from wonderland.ops.steps import EMPTY
from wonderland.ops.wkv import wkv


def _shares(dim: int) -> nn.Parameter:
    return nn.Parameter(torch.linspace(0, 1, dim))


@part
class RWKVChannel(Mixer):
    r"""Channel mixing of RWKV: a gated two-layer network with a squared rectifier that sees one token back.

    .. math::
        y_i = \sigma(W_r \tilde x^r_i) \odot W_v \max(0, W_k \tilde x^k_i)^2, \qquad
        \tilde x^\cdot_i = \mu^\cdot \odot x_i + (1 - \mu^\cdot) \odot x_{i-1}

    The hidden layer has `hidden` units, `expand` times dim unless said otherwise.

    Shapes: x (b, t, dim) -> (b, t, dim); state: the last input (b, 1, dim). Book: Alice 13.4.2. Paper: Peng et al., 2023.

    >>> RWKVChannel(dim=16)(torch.randn(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    PUBLISHED: ClassVar = {
        "time_mix_key": "mix_key", "time_mix_receptance": "mix_receptance", "key.weight": "key.weight",
        "value.weight": "value.weight", "receptance.weight": "receptance.weight",
    }  # fmt: skip
    receptive_field = (1, 0)

    def __init__(self, dim: int, *, expand: int = 4, hidden: int | None = None):
        super().__init__()
        if min(dim, expand) < 1:
            raise WonderlandError(f"RWKVChannel cannot be built with dim={dim}, expand={expand}: each is at least 1.")
        at_least_one("RWKVChannel", hidden=hidden)
        self.dim = dim
        hidden = expand * dim if hidden is None else hidden
        self.mix_key, self.mix_receptance = _shares(dim), _shares(dim)
        self.key = nn.Linear(dim, hidden, bias=False)
        self.value = nn.Linear(hidden, dim, bias=False)
        self.receptance = nn.Linear(dim, dim, bias=False)

    def load_published(self, weights: Mapping[str, Tensor]) -> None:
        """Load the weights of the published module, as `transformers` names them."""
        load_published(self, self.PUBLISHED, weights)

    def laws(self):
        from wonderland import laws

        return (*super().laws(), laws.strict_causality, laws.shift_equivariance, laws.locality)

    def layout(self) -> Layout:
        return (Slot((1, self.dim)),)

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        last = None if state is None else state[0]
        for_key, for_receptance = blend(x, last, self.mix_key, self.mix_receptance)
        y = torch.sigmoid(self.receptance(for_receptance)) * self.value(squared_relu(self.key(for_key)))
        return y, (next_context(x, last, mask, 1),)


@part
class RWKV(Mixer):
    r"""Time mixing: an average of earlier values, with weights that decay at a rate of each channel, times a gate.

    .. math::
        r, k, v = W_r \tilde x^r, W_k \tilde x^k, W_v \tilde x^v, \qquad
        \tilde x^\cdot_i = \mu^\cdot \odot x_i + (1 - \mu^\cdot) \odot x_{i-1}

    .. math::
        y_i = W_o \Big( \sigma(r_i) \odot
        \frac{\sum_{j<i} e^{k_j - (i-1-j) w} v_j + e^{k_i + u} v_i}{\sum_{j<i} e^{k_j - (i-1-j) w} + e^{k_i + u}} \Big),
        \qquad w = e^{\text{decay}}

    `count="book"` decays once more, :math:`(i - j) w`, as the book prints it; the default is the published form, whose
    weights load. `inner` is the number of averages, dim unless given.

    Shapes: x (b, t, dim) -> (b, t, dim); state: the last input (b, 1, dim), two sums (b, 2, inner) and their scale
    (b, inner), constant in t. Book: Alice 13.4.2. Paper: Peng et al., 2023.

    >>> mixer = RWKV(dim=16)
    >>> mixer(torch.randn(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    companion = RWKVChannel
    PUBLISHED: ClassVar = {
        "time_decay": "decay", "time_first": "bonus", "time_mix_key": "mix_key", "time_mix_value": "mix_value",
        "time_mix_receptance": "mix_receptance", "key.weight": "key.weight", "value.weight": "value.weight",
        "receptance.weight": "receptance.weight", "output.weight": "output.weight",
    }  # fmt: skip

    def __init__(self, dim: int, *, inner: int | None = None, count: str = "paper"):
        super().__init__()
        at_least_one("RWKV", inner=inner)
        if dim < 1 or count not in ("paper", "book"):
            raise WonderlandError(
                f"RWKV cannot be built with dim={dim}, count={count!r}: dim is at least 1, count is 'paper' or 'book'."
            )
        self.dim, self.count, self.inner = dim, count, dim if inner is None else inner
        self.mix_key, self.mix_value, self.mix_receptance = _shares(dim), _shares(dim), _shares(dim)
        inner = self.inner
        self.key, self.value = nn.Linear(dim, inner, bias=False), nn.Linear(dim, inner, bias=False)
        self.receptance, self.output = nn.Linear(dim, inner, bias=False), nn.Linear(inner, dim, bias=False)
        # From channels that remember almost everything to channels that forget within a few tokens.
        self.decay = nn.Parameter(-5 + 8 * torch.linspace(0, 1, inner).pow(1.5))
        self.bonus = nn.Parameter(torch.full((inner,), 0.3).log() + 0.5 * ((torch.arange(inner) + 1) % 3 - 1))

    def load_published(self, weights: Mapping[str, Tensor]) -> None:
        """Load the weights of the published module, as `transformers` names them."""
        load_published(self, self.PUBLISHED, weights)

    def laws(self):
        from wonderland import laws

        return (*super().laws(), laws.strict_causality)

    def layout(self) -> Layout:
        return Slot((1, self.dim)), Slot((2, self.inner)), Slot((self.inner,), fill=EMPTY)

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        last, average = (None, None) if state is None else (state[0], state[1:])
        real = None if mask is None else lengths(mask)
        shares = self.mix_receptance, self.mix_key, self.mix_value
        for_receptance, for_key, for_value = blend(x, last, *shares)
        r, k, v = self.receptance(for_receptance), self.key(for_key), self.value(for_value)
        decay = -torch.exp(self.decay)
        bonus = self.bonus if self.count == "paper" else self.bonus - decay
        y, average = wkv(k, v, decay, bonus, state=average, lengths=real)
        y = self.output(torch.sigmoid(r) * y)
        return y, (next_context(x, last, mask, 1), *average)

    def kernel_multiply_adds(self, t: int) -> int:
        """Products of one step outside its projections: two decaying sums and two weights."""
        return 8 * self.inner
