"""Arithmetic with few bits, written for reading: weights of 8 or 4 bits in groups, products summed in 32-bit integers."""

from dataclasses import dataclass

import torch
from torch import Tensor

from wonderland.core import WonderlandError


@dataclass(frozen=True)
class Quantised:
    """Whole numbers (rows, groups, width) from -(2^(bits-1) - 1) to 2^(bits-1) - 1, and a scale for each group."""

    values: Tensor
    scales: Tensor
    bits: int

    def decoded(self) -> Tensor:
        """The numbers they stand for: (rows, groups x width)."""
        return (self.values * self.scales.unsqueeze(-1)).flatten(1)

    @property
    def bytes(self) -> int:
        """Bytes of the values at their bits, and of the scales in 16 bits."""
        return (self.values.numel() * self.bits + 7) // 8 + 2 * self.scales.numel()


def quantise(x: Tensor, *, bits: int = 8, group: int | None = None) -> Quantised:
    r"""Round each group of a row to whole multiples of its scale.

    .. math:: q = \mathrm{round}(x / s), \qquad s = \frac{\max |x|}{2^{b - 1} - 1}

    Shapes: (rows, columns). Book: D2L 13.4.

    >>> quantise(torch.tensor([[1.0, -0.6, 0.25, 0.0]]), bits=4).values.tolist()
    [[[7, -4, 2, 0]]]
    """
    if x.dim() != 2 or bits not in (2, 3, 4, 8) or x.shape[1] % (group or x.shape[1]):
        raise WonderlandError(
            f"Numbers of 2, 3, 4 or 8 bits are made from a matrix whose columns are whole groups, not from {tuple(x.shape)} in groups of {group}."
        )
    most = 2 ** (bits - 1) - 1
    pieces = x.unflatten(1, (-1, group or x.shape[1]))
    scales = pieces.abs().amax(-1).clamp(min=torch.finfo(torch.float32).tiny) / most
    return Quantised(torch.round(pieces / scales.unsqueeze(-1)).clamp(-most, most).to(torch.int8), scales, bits)


def quantised_linear(x: Tensor, weight: Quantised) -> Tensor:
    r"""A linear layer on whole numbers: inputs are rounded to 8 bits in the same groups, products summed in 32 bits, then scaled.

    .. math:: y_{ij} = \sum_g s^x_{ig} s^w_{jg} \sum_k q^x_{igk} q^w_{jgk}

    Shapes: x (b, columns), weight (rows, columns) -> (b, rows).
    """
    inputs = quantise(x, bits=8, group=weight.values.shape[-1])
    sums = torch.einsum("bgk,rgk->brg", inputs.values.int(), weight.values.int())
    return (sums * inputs.scales[:, None] * weight.scales[None]).sum(-1)
