"""Convolution over time: each output looks at a few tokens near it, through the same weights everywhere."""

from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.left_context import next_context
from wonderland.nn.contract.state import State
from wonderland.nn.mixers.windowed import Windowed, convolve
from wonderland.ops.short_convolution import WIDEST, short_convolution


@part
class CausalConvolution(Windowed):
    r"""A convolution that looks back, padded with zeros on the left.

    .. math:: y_i = b + \sum_{j=0}^{w-1} W_j\, x_{i - (w - 1 - j) r}

    for a width w and a dilation r: tokens i, i - r, ..., i - (w - 1) r. A stack whose dilations double sees exponentially
    far. With causal=False the window is centred on the token, and the width odd.

    Shapes: x (b, t, dim) -> (b, t, dim); state: the last tokens (b, (width - 1) dilation, dim), constant in t.
    groups: features are cut into as many sets that do not see each other; depthwise=True gives each feature a kernel of its
    own. `weight` and `bias` have the shapes of torch.nn.Conv1d.
    Book: Alice 8.3, and 8.2 for dilation. Paper: Waibel et al., 1989; van den Oord et al., 2016.

    >>> import torch
    >>> mixer = CausalConvolution(dim=4, width=3, dilation=2)
    >>> mixer.receptive_field
    (4, 0)
    >>> mixer(torch.randn(2, 7, 4)).shape
    torch.Size([2, 7, 4])
    """

    def __init__(
        self,
        dim: int,
        *,
        width: int = 4,
        dilation: int = 1,
        groups: int = 1,
        depthwise: bool = False,
        bias: bool = True,
        causal: bool = True,
    ):
        super().__init__(dim, width=width, dilation=dilation, causal=causal)
        groups = dim if depthwise else groups
        if groups < 1 or dim % groups:
            raise WonderlandError(f"CausalConvolution cuts {dim} features into equal groups, so not into {groups}.")
        fresh = nn.Conv1d(dim, dim, width, groups=groups, bias=bias)
        self.weight, self.bias, self.groups = fresh.weight, fresh.bias, groups

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        if not self.causal or self.groups < self.dim or self.dilation > 1 or self.width > WIDEST:
            return super().mix(x, state, seen, mask)
        past = None if state is None else state[0]
        y = short_convolution(x, self.weight[:, 0], self.bias, tail=past)
        return y, (next_context(x, past, mask, self.width - 1),)

    def convolve(self, full: Tensor) -> Tensor:
        return convolve(full, self.weight, self.bias, self.dilation, self.groups)
