"""The softplus in operators that ONNX Runtime has in double precision too."""

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.ops.over_time import is_exporting


def softplus(x: Tensor) -> Tensor:
    r"""A smooth rectifier: :math:`\log(1 + e^x) = \max(x, 0) + \log(1 + e^{-|x|})`.

    >>> softplus(torch.tensor([0.0, 50.0]))
    tensor([ 0.6931, 50.0000])
    """
    return reference(x) if is_exporting() else F.softplus(x)


def reference(x: Tensor) -> Tensor:
    """The second form of the equation."""
    return x.clamp(min=0) + torch.log1p(torch.exp(-x.abs()))
