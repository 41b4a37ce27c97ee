"""Residual convolutions: a block learns what to add to its input, so that many of them can be stacked."""

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.arguments import Checked


@part
class ResidualConvolution(Checked, nn.Module):
    r"""Two 3 x 3 convolutions beside a shortcut, each after batch normalisation and a rectifier (pre-activation).

    .. math::
        h = \phi(\mathrm{BN}(x)), \qquad
        y = s(x) + W_2 * \phi(\mathrm{BN}(W_1 * h)), \qquad
        s(x) = \begin{cases} x & \text{same shape} \\ W_s * \mathrm{pool}(h) & \text{otherwise} \end{cases}

    With `stride` 2 the map is halved (rounded up) and the shortcut averages instead of dropping pixels. `dropout` is the
    chance that a whole channel between the two convolutions is left out in training.

    Shapes: x (b, dim, h, w) -> (b, out, ceil(h / stride), ceil(w / stride)).
    Book: Alice 9.4; D2L 8.6. Paper: He et al., 2016; pooled shortcut: He et al., 2019.

    >>> import torch
    >>> ResidualConvolution(4, 8, stride=2)(torch.zeros(2, 4, 9, 9)).shape
    torch.Size([2, 8, 5, 5])
    """

    def __init__(self, dim: int, out: int | None = None, *, stride: int = 1, dropout: float | int = 0.0):
        super().__init__()
        out = dim if out is None else out
        if min(dim, out) < 1 or stride not in (1, 2) or not 0 <= dropout < 1:
            raise WonderlandError(
                f"ResidualConvolution cannot be built with dim={dim}, out={out}, stride={stride}, dropout={dropout}: "
                "sizes are at least 1, stride is 1 or 2, dropout is in [0, 1)."
            )
        self.stride, self.dropout = stride, dropout
        self.norm_in = nn.BatchNorm2d(dim)
        self.conv_in = nn.Conv2d(dim, out, 3, stride=stride, padding=1, bias=False)
        self.norm_out = nn.BatchNorm2d(out)
        self.conv_out = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.shortcut = nn.Conv2d(dim, out, 1, bias=False) if stride > 1 or out != dim else None
        nn.init.kaiming_normal_(self.conv_in.weight, mode="fan_out", nonlinearity="relu")
        if self.shortcut is not None:
            nn.init.kaiming_normal_(self.shortcut.weight, mode="fan_out", nonlinearity="linear")
        # The block starts as its shortcut alone: depth then costs nothing at the first step.
        nn.init.zeros_(self.conv_out.weight)

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.relu(self.norm_in(x))
        if self.shortcut is not None:
            pooled = F.avg_pool2d(hidden, 2, ceil_mode=True) if self.stride > 1 else hidden
            x = self.shortcut(pooled)
        hidden = F.relu(self.norm_out(self.conv_in(hidden)))
        if self.dropout:
            hidden = F.dropout2d(hidden, self.dropout, self.training)
        return x + self.conv_out(hidden)
