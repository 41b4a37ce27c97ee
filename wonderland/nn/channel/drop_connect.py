"""DropConnect: single weights, not units, are dropped in training."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.channel.mlp import chance
from wonderland.nn.contract.arguments import Checked
from wonderland.nn.contract.mixer import check_pointwise, check_rows, hide


@part
class DropConnect(Checked, nn.Module):
    r"""A linear layer whose weights are dropped at random in training, one draw for a call.

    .. math:: y = \frac{(M \odot W)\, x}{1 - p} + b, \qquad
        E[y] = W x + b, \qquad \mathrm{Var}[y] = \frac{p}{1 - p}\, (W \odot W)(x \odot x)

    In evaluation it is the mean; `moments` gives the variance too. `each=True` draws a mask for each row of the batch,
    which costs as many copies of the weights.

    Shapes: x (..., dim) -> (..., outputs), rows along the first axis; with (b, t, dim), 0 where the mask hides. Book: Alice 9.3.1. Paper: Wan et al., 2013.

    >>> DropConnect(4, 2, dropout=0.5)(torch.zeros(3, 5, 4)).shape
    torch.Size([3, 5, 2])
    """

    receptive_field = (0, 0)

    def __init__(self, dim: int, outputs: int, *, dropout: float | int = 0.5, each: bool = False, bias: bool = True):
        super().__init__()
        if min(dim, outputs) < 1:
            raise WonderlandError(f"DropConnect takes a dim and outputs of at least 1, not {dim} and {outputs}.")
        self.dim, self.outputs, self.dropout, self.each = dim, outputs, chance(dropout, "DropConnect"), each
        layer = nn.Linear(dim, outputs, bias=bias)
        self.weight, self.bias = layer.weight, layer.bias

    def laws(self):
        """What this instance promises; the suite checks it."""
        from wonderland import laws

        alike = (laws.permutation_equivariance, laws.shift_equivariance, laws.locality)
        always = (laws.gradients, laws.determinism, laws.save_load, laws.finiteness, laws.compiles)
        rows = (laws.batch_independence, laws.padding_invariance)
        return (laws.causality, laws.strict_causality, *rows, *alike, *always)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        check_pointwise(x, self.dim, mask, "DropConnect", self.weight)
        check_rows(mask, "DropConnect")
        x = hide(x, mask)
        if not self.training or not self.dropout:
            return hide(F.linear(x, self.weight, self.bias), mask)
        copies = len(x) if self.each and x.dim() > 1 else 1
        kept = torch.rand(copies, *self.weight.shape, device=x.device, dtype=x.dtype) >= self.dropout
        weight = self.weight * kept.to(x.dtype).div_(1 - self.dropout)
        rows = x.reshape(len(x) if x.dim() > 1 else 1, -1, self.dim)
        y = (rows @ weight.transpose(1, 2)).view(*x.shape[:-1], self.outputs)
        return hide(y if self.bias is None else y + self.bias, mask)

    def moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of the output in training: (..., dim) -> two of (..., outputs)."""
        spread = self.dropout / (1 - self.dropout) * F.linear(x.square(), self.weight.square())
        return F.linear(x, self.weight, self.bias), spread
