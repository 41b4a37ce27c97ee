"""Dropout: features are set to 0 at random in training."""

import torch
from torch import Tensor

from wonderland.core import part
from wonderland.nn.channel.mlp import chance
from wonderland.nn.contract.mixer import Pointwise


def drop(x: Tensor, dropout: float | int, *, shared: tuple[int, ...] = ()) -> Tensor:
    r"""Inverted dropout with one draw for all places along the `shared` axes.

    .. math:: y = \frac{m \odot x}{1 - p}, \qquad m \sim \mathrm{Bernoulli}(1 - p), \qquad E[y] = x

    p is the chance to drop (the book's p is the chance to keep). Nothing shared is plain dropout; `shared=(1,)` drops a
    feature of (b, t, d) at all times; `shared=(2, 3)` a channel of (b, c, h, w); `shared=(1, 2)` a whole row of (b, t, d).

    Shapes: x (...) -> (...). Book: Alice 9.3.1; D2L 5.6. Paper: Srivastava et al., 2014.

    >>> drop(torch.ones(1, 3, 4), 0.5, shared=(1,)).std(1).sum()
    tensor(0.)
    """
    keep = 1 - chance(dropout, "drop")
    if keep == 1:
        return x
    across = {axis % x.dim() for axis in shared}
    shape = [1 if axis in across else size for axis, size in enumerate(x.shape)]
    return x * (torch.rand(shape, device=x.device, dtype=x.dtype) < keep).to(x.dtype).div_(keep)


@part
class Dropout(Pointwise):
    r"""Each feature of each row dropped by itself, in training only.

    .. math:: y = m \odot x / (1 - p)

    Shapes: x (..., dim) -> (..., dim). Book: Alice 9.3.1; D2L 5.6. Paper: Srivastava et al., 2014.

    >>> Dropout(4, dropout=0.5).eval()(torch.ones(1, 1, 4))
    tensor([[[1., 1., 1., 1.]]])
    """

    def __init__(self, dim: int, *, dropout: float | int = 0.1):
        super().__init__()
        self.dim, self.dropout = dim, chance(dropout, type(self).__name__)

    def apply_to(self, x: Tensor) -> Tensor:
        return drop(x, self.dropout, shared=self.shared(x)) if self.training else x

    def shared(self, x: Tensor) -> tuple[int, ...]:
        """The axes along which one draw holds."""
        return ()


@part
class ChannelDropout(Dropout):
    r"""A feature dropped at all positions of a sequence, or all places of an image, at once, in training only.

    .. math:: y_{t c} = m_c\, x_{t c} / (1 - p)

    Neighbours tell much about each other, so that a feature left out at one position alone is not missed.
    Shapes: x (b, ..., dim) -> (b, ..., dim), with a draw for each row. Book: Alice 9.3.1 (spatial dropout). Paper: Tompson et al., 2015.

    >>> y = ChannelDropout(4, dropout=0.5)(torch.ones(1, 6, 4))
    >>> bool((y == y[:, :1]).all())
    True
    """

    def shared(self, x: Tensor) -> tuple[int, ...]:
        return tuple(range(1, x.dim() - 1))
