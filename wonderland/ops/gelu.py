"""GELU, in its exact form and the approximation by a tanh."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from wonderland.ops import shapes


def gelu(x: Float[Tensor, "..."], *, tanh: bool = False) -> Float[Tensor, "..."]:
    r"""x times the Gaussian distribution function of x; with `tanh`, the approximation that GPT-2 was trained with.

    .. math:: y = x\, \Phi(x) \quad \text{or} \quad \frac{x}{2} \left(1 + \tanh \sqrt{2 / \pi}\, (x + 0.044715 x^3)\right)

    Book: Alice 5.4. Paper: Hendrycks and Gimpel, 2016.

    >>> gelu(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.1587,  0.0000,  1.9545])
    """
    shapes.tensor("gelu", x=x)
    return F.gelu(x, approximate="tanh" if tanh else "none")


def reference(x: Tensor, *, tanh: bool = False) -> Tensor:
    """The equation."""
    if tanh:
        return x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x / 2 * (1 + torch.erf(x / math.sqrt(2)))
