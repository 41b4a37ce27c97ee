"""Averages of weights: a calmer copy of the model that follows it at a distance."""

import torch
from torch import nn


@torch.no_grad()
def follow(average: nn.Module, model: nn.Module, decay: float, step: int) -> None:
    r"""One step of an exponential moving average of weights; buffers are copied.

    .. math:: \bar\theta \leftarrow d\,\bar\theta + (1 - d)\,\theta, \qquad d = \min\Bigl(d_0, \frac{1 + s}{10 + s}\Bigr)

    The distance grows over the first steps, so that the average does not remember where it began. Book: Alice 9.

    >>> model, average = nn.Linear(1, 1), nn.Linear(1, 1)
    >>> for step in range(200):
    ...     follow(average, model, 0.9, step)
    >>> torch.allclose(average.weight, model.weight)
    True
    """
    weight = 1 - min(decay, (1 + step) / (10 + step))
    torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), weight)
    for mine, theirs in zip(average.buffers(), model.buffers(), strict=True):
        mine.copy_(theirs)
