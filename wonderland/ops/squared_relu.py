"""The squared rectifier."""

from torch import Tensor

from wonderland.ops import shapes


def squared_relu(x: Tensor) -> Tensor:
    r""":math:`\max(x, 0)^2`, with derivative :math:`2 \max(x, 0)`.

    Book: Alice 13.4. Paper: So et al., 2021.

    >>> import torch
    >>> squared_relu(torch.tensor([-1.0, 3.0]))
    tensor([0., 9.])
    """
    shapes.tensor("squared_relu", x=x)
    return x.relu().square()
