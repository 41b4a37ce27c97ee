"""DSS: a diagonal state space whose responses are normalised over a length."""

import torch
from torch import Tensor

from wonderland.core import WonderlandError, part
from wonderland.nn.mixers.diagonal_state_space import DiagonalStateSpace
from wonderland.nn.mixers.state_space import discretise


@part
class DSS(DiagonalStateSpace):
    r"""A diagonal state space for each channel; the response of each state over `length` steps sums to one, as a softmax does.

    .. math::
        K_l = \mathrm{Re} \sum_i w_i \frac{e^{\lambda_i l \Delta}}{\sum_{r < L} e^{\lambda_i r \Delta}}, \qquad
        y = W\, \mathrm{gelu}(K * x + D x)

    The sum is :math:`(1 - e^{\lambda \Delta L}) / (1 - e^{\lambda \Delta})`, a weight of the input, so the recurrence stays that of a
    state space, for sequences of any length. Without a length (`length=None`) the response is that of the held input,
    :math:`w_i (e^{\lambda_i \Delta} - 1) / \lambda_i \cdot e^{\lambda_i l \Delta}`, the form that its paper calls exp.

    Shapes: x (b, t, dim) -> (b, t, dim); state (b, dim, state_size, 2), constant in t.
    Book: Alice 13.3. Paper: Gupta, Gu and Berant, 2022.

    >>> DSS(dim=16, length=100)(torch.randn(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    pairs = 1

    def __init__(self, dim: int, *, state_size: int = 16, start: str = "legs", length: int | None = 1024):
        if length is not None and length < 1:
            raise WonderlandError(f"DSS is normalised over at least one step, not {length}.")
        super().__init__(dim, state_size, start)
        self.length = length

    def steps(self) -> tuple[Tensor, Tensor, Tensor]:
        step, a, readout = self.continuous()
        if self.length is None:
            return *discretise(step, a, "hold"), readout
        return torch.exp(step * a), 1 / geometric_sum(step * a, self.length), readout


def geometric_sum(z: Tensor, length: int) -> Tensor:
    r"""The sum of :math:`e^{z r}` for r below a length, for complex z with negative real part.

    By :math:`\frac{\sinh(zL/2)}{\sinh(z/2)} e^{z(L-1)/2}`, with the exponentials of negative arguments alone, which do not overflow.
    """
    small = z.abs() * length < 1e-4
    safe = torch.where(small, torch.full_like(z, -1.0), z)
    far = (safe * length).real < -80  # what is left after the length is below every float
    gone = torch.where(far, torch.zeros_like(z), torch.exp(torch.where(far, torch.full_like(z, -1.0), safe) * length))
    return torch.where(small, length + z * (length * (length - 1) / 2), (1 - gone) / -torch.expm1(safe))
