"""S4D: a diagonal state space that begins at HiPPO, with a choice of discretisations."""

from torch import Tensor

from wonderland.core import part
from wonderland.nn.mixers.diagonal_state_space import DiagonalStateSpace
from wonderland.nn.mixers.state_space import check_rule, discretise


@part
class S4D(DiagonalStateSpace):
    r"""A diagonal state space for each channel, initialised by HiPPO.

    .. math::
        s_i = \bar A \odot s_{i-1} + \bar B\, x_i, \qquad h_i = 2\,\mathrm{Re}(C^\top s_i) + D x_i, \qquad
        y_i = W\, \mathrm{gelu}(h_i)

    with `state_size` complex oscillators a channel (half of the conjugate pairs; the factor 2 stands for the other half).
    It is time-invariant, so the whole sequence is a convolution, :math:`h = K * x` with
    :math:`K_l = 2\,\mathrm{Re}(C^\top \bar A^l \bar B)`, done by FFT; streaming uses the recurrence. `start` chooses the
    frequencies (`legs`, `lin`, `inv`), `rule` how continuous time becomes steps (`hold`, `bilinear`, `euler`).

    Shapes: x (b, t, dim) -> (b, t, dim); state (b, dim, state_size, 2), constant in t.
    Book: Alice 13.3. Papers: Gu et al., 2021 and 2022.

    >>> import torch
    >>> S4D(dim=16)(torch.randn(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    def __init__(self, dim: int, *, state_size: int = 16, start: str = "legs", rule: str = "hold"):
        check_rule(rule, "S4D")
        super().__init__(dim, state_size, start)
        self.rule = rule

    def steps(self) -> tuple[Tensor, Tensor, Tensor]:
        step, a, readout = self.continuous()
        return *discretise(step, a, self.rule), readout
