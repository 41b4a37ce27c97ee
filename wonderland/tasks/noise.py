"""Noise for training: label noise at a given rate, and annealed gradient noise."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError


def label_noise(labels: Any, *, classes: int, rate: float | int, generator: torch.Generator | None = None) -> Tensor:
    r"""Labels of which a share is replaced by a uniformly drawn other class.

    .. math:: P(\tilde y = j \mid y) = \begin{cases} 1 - r & j = y \\ r / (C - 1) & \text{otherwise} \end{cases}

    Shapes: labels (...) -> (...). Book: D2L 5.6 (noise as regularisation).

    >>> label_noise(torch.tensor([0, 1, 1]), classes=2, rate=1)
    tensor([1, 0, 0])
    """
    if not isinstance(labels, Tensor) or labels.is_floating_point() or labels.dtype == torch.bool:
        raise WonderlandError("label_noise takes labels as an integer tensor.")
    if classes < 2:
        raise WonderlandError(f"label_noise takes a number of classes of at least 2, not {classes}.")
    if not 0 <= rate <= 1:
        raise WonderlandError(f"label_noise takes a rate from 0 to 1, not {rate}.")
    if labels.numel() and (labels.min() < 0 or labels.max() >= classes):
        wrong = int(labels.min()) if labels.min() < 0 else int(labels.max())
        raise WonderlandError(f"label_noise got the label {wrong}, and the classes are 0 to {classes - 1}.")
    flipped = torch.rand(labels.shape, generator=generator, device=labels.device) < rate
    # An offset of 1 to C - 1 modulo C gives each other class with the same probability.
    offset = torch.randint(1, classes, labels.shape, generator=generator, device=labels.device, dtype=labels.dtype)
    return torch.where(flipped, (labels + offset) % classes, labels)


def gradient_noise(
    parameters: Iterable[Tensor],
    *,
    step: int,
    scale: float | int = 0.01,
    decay: float | int = 0.55,
    generator: torch.Generator | None = None,
) -> float:
    r"""Add normal noise to gradients, in place, and return its standard deviation.

    .. math:: g \leftarrow g + \varepsilon, \qquad \varepsilon \sim N\bigl(0,\; \eta / (1 + t)^\gamma\bigr)

    with eta the `scale`, gamma the `decay`, t the `step` from 0. Call it between backward and the optimizer's step.
    Paper: Neelakantan et al., 2015.

    >>> w = torch.zeros(3, requires_grad=True)
    >>> w.sum().backward()
    >>> gradient_noise([w], step=0, scale=0.04)
    0.2
    """
    for name, value in (("step", step), ("scale", scale), ("decay", decay)):
        if not value >= 0:
            raise WonderlandError(f"gradient_noise takes a {name} of at least 0, not {value}.")
    deviation = (scale / (1 + step) ** decay) ** 0.5
    for parameter in parameters:
        if parameter.grad is not None and deviation:
            noise = torch.empty_like(parameter.grad).normal_(generator=generator)
            parameter.grad.add_(noise, alpha=deviation)
    return deviation
