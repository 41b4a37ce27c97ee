"""Pooling as a token mixer: an average over neighbouring tokens."""

import torch.nn.functional as F
from torch import Tensor

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.left_context import last_context, prepend_context
from wonderland.nn.contract.mixer import Mixer, positions
from wonderland.nn.contract.state import Layout, Slot, State


@part
class Pooling(Mixer):
    r"""The mean of the tokens in a window, the token itself taken away.

    .. math:: y_i = \frac{1}{|N(i)|} \sum_{j \in N(i)} x_j - x_i

    The causal window holds the token and those before it, `window` in all; the other (`causal=False`, odd `window`) is
    centred. Only real tokens are counted, also at the borders. `subtract=False` gives the plain mean, for a block
    without a residual path. There are no parameters.

    Shapes: x (b, t, dim) -> (b, t, dim); state: the last window - 1 tokens (b, window - 1, dim), and the count.
    Book: Alice 11.3. Paper: Yu et al., 2022 (PoolFormer).

    >>> import torch
    >>> Pooling(dim=1, window=2)(torch.tensor([[[2.0], [4.0], [8.0]]])).flatten()
    tensor([ 0., -1., -2.])
    """

    def __init__(self, dim: int, *, window: int = 3, subtract: bool = True, causal: bool = True):
        super().__init__()
        if window < 1 or not (causal or window % 2):
            raise WonderlandError(
                f"Pooling takes a window of at least 1 token, odd where it is centred, not window={window}."
            )
        self.dim, self.window, self.subtract, self.causal = dim, window, subtract, causal
        self.receptive_field = (window - 1, 0) if causal else (window // 2, window // 2)

    def laws(self):
        from wonderland import laws

        more = (laws.strict_causality,) if self.causal or self.receptive_field[1] == 0 else ()
        alone = (laws.permutation_equivariance,) if self.window == 1 else ()
        # A token taken away from itself leaves 0, whatever the tokens are.
        alone += (laws.permutation_invariance, laws.scale_invariance) if self.window == 1 and self.subtract else ()
        return (*super().laws(), *more, *alone, laws.shift_equivariance, laws.locality)

    def layout(self) -> Layout:
        return (Slot((self.window - 1, self.dim)),)

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        if self.causal:
            full = prepend_context(x, None if state is None else state[0], self.window - 1)
            count = (positions(x, seen) + 1).clamp(max=self.window).unsqueeze(-1).to(x.dtype)
            mean, own = _sums(full, self.window, 0) / count, (last_context(full, mask, self.window - 1),)
        else:
            real = x.new_ones(1, x.shape[1], 1) if mask is None else mask.unsqueeze(-1).to(x.dtype)
            reach = self.window // 2
            # A masked position may have no real neighbour; what it would be is never used.
            mean, own = _sums(x, self.window, reach) / _sums(real, self.window, reach).clamp(min=1), ()
        return (mean - x if self.subtract else mean), own


def _sums(x: Tensor, window: int, pad: int) -> Tensor:
    """Sums over windows in time. As an image with channels last, a sequence is pooled without a copy."""
    image = x.transpose(1, 2).unsqueeze(-1)
    return F.avg_pool2d(image, (window, 1), 1, (pad, 0), divisor_override=1).squeeze(-1).transpose(1, 2)
