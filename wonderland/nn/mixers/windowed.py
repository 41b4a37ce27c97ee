"""What convolutions over time share: a window of tokens, and the last of them as the state."""

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.nn.contract.left_context import last_context, prepend_context
from wonderland.nn.contract.mixer import Mixer
from wonderland.nn.contract.state import Layout, Slot, State


class Windowed(Mixer):
    """A mixer whose outputs look at `width` tokens, `dilation` apart: the last of them in place, or all centred.

    A subclass writes `convolve`, from (b, reach + t, dim) to (b, t, dim), where reach = (width - 1) dilation.
    """

    def __init__(self, dim: int, *, width: int, dilation: int, causal: bool):
        super().__init__()
        name = type(self).__name__
        if width < 1 or dilation < 1:
            raise WonderlandError(f"{name} needs a width and a dilation of at least 1, not {width} and {dilation}.")
        if not causal and width % 2 == 0:
            raise WonderlandError(f"{name} with causal=False centres its window, so its width is odd, not {width}.")
        self.dim, self.causal = dim, causal
        self.width, self.dilation, self.reach = width, dilation, (width - 1) * dilation
        self.receptive_field = (self.reach, 0) if causal else (self.reach // 2, self.reach // 2)

    def laws(self):
        from wonderland import laws

        more = (laws.strict_causality,) if self.causal or self.receptive_field[1] == 0 else ()
        alone = (laws.permutation_equivariance,) if self.width == 1 else ()
        return (*super().laws(), *more, *alone, laws.shift_equivariance, laws.locality)

    def layout(self) -> Layout:
        return (Slot((self.reach, self.dim)),)

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        if not self.causal:
            return self.convolve(F.pad(x, (0, 0, self.reach // 2, self.reach // 2))), ()
        full = prepend_context(x, None if state is None else state[0], self.reach)
        return self.convolve(full), (last_context(full, mask, self.reach),)

    def convolve(self, full: Tensor) -> Tensor:
        """Outputs of all windows that lie inside."""
        raise NotImplementedError


def convolve(full: Tensor, weight: Tensor, bias: Tensor | None, dilation: int, groups: int) -> Tensor:
    """A convolution over time without padding, weights as in torch.nn.Conv1d: (b, reach + t, d) -> (b, t, outputs)."""
    width = weight.shape[2]
    if groups > 1:
        return F.conv1d(full.transpose(1, 2), weight, bias, dilation=dilation, groups=groups).transpose(1, 2)
    # One product of all windows with all weights: features stay last, and it is as fast as the convolution of torch.
    t = full.shape[1] - (width - 1) * dilation
    windows = torch.cat([full[:, j * dilation : j * dilation + t] for j in range(width)], -1)
    return F.linear(windows, weight.transpose(1, 2).flatten(1), bias)
