"""Receptive fields: which pixels an output of a convolutional network can see, by arithmetic and by gradients."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Field:
    """The receptive field of a layer's outputs: its side, the distance of neighbours (`jump`), and where the first begins.

    Output i reads pixels first + i * jump to first + i * jump + side - 1; those below 0 are padding.
    """

    side: int = 1
    jump: int = 1
    first: int = 0


def receptive_field(layers: Sequence[tuple[int, int, int, int]]) -> list[Field]:
    r"""The field after each layer (kernel, stride, padding, dilation), from the image on.

    .. math:: r_l = r_{l-1} + d_l (k_l - 1)\, j_{l-1}, \qquad j_l = s_l\, j_{l-1}, \qquad a_l = a_{l-1} - p_l\, j_{l-1}

    >>> receptive_field([(3, 1, 1, 1), (3, 2, 1, 1), (3, 1, 1, 1)])[-1]
    Field(side=9, jump=2, first=-4)
    """
    fields, field = [], Field()
    for kernel, stride, padding, dilation in layers:
        field = Field(
            field.side + dilation * (kernel - 1) * field.jump, field.jump * stride, field.first - padding * field.jump
        )
        fields.append(field)
    return fields


def seen_pixels(network: nn.Module, x: Tensor, row: int, column: int) -> tuple[int, int, int, int]:
    """The smallest box of pixels with a gradient from one place of the output map: first row, first column, last ones.

    Shapes: x (1, c, h, w); the network gives (1, d, h', w').

    >>> seen_pixels(nn.Conv2d(1, 1, 3), torch.zeros(1, 1, 8, 8), 2, 1)
    (2, 1, 4, 3)
    """
    x = x.detach().clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(network(x)[0, :, row, column].sum(), x)
    rows, columns = gradient[0].abs().sum(0).nonzero(as_tuple=True)
    return int(rows.min()), int(columns.min()), int(rows.max()), int(columns.max())
