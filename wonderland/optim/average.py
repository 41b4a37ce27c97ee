"""Averages of model weights: exponential moving average and stochastic weight averaging."""

import copy
from typing import Any

import torch
from torch import nn

from wonderland.core import WonderlandError
from wonderland.optim.limits import check


@torch.no_grad()
def follow(average: nn.Module, model: nn.Module, decay: float, step: int) -> None:
    r"""One step of an exponential moving average of weights; buffers are copied.

    .. math:: \bar\theta \leftarrow d\,\bar\theta + (1 - d)\,\theta, \qquad d = \min\Bigl(d_0, \frac{1 + s}{10 + s}\Bigr)

    The decay grows over the first steps, so that the initial weights have little influence. Book: Alice 9.

    >>> model, average = nn.Linear(1, 1), nn.Linear(1, 1)
    >>> for step in range(200):
    ...     follow(average, model, 0.9, step)
    >>> torch.allclose(average.weight, model.weight)
    True
    """
    weight = 1 - min(decay, (1 + step) / (10 + step))
    torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), weight)
    for averaged, current in zip(average.buffers(), model.buffers(), strict=True):
        averaged.copy_(current)


class EMA:
    """An exponential moving average of a model's weights, in `module`: call `update(model)` after each step.

    >>> model = nn.Linear(1, 1)
    >>> average = EMA(model, decay=0.9)
    >>> average.update(model)
    >>> torch.equal(average.module.weight, model.weight)
    True
    """

    def __init__(self, model: nn.Module, *, decay: float = 0.999):
        check("EMA", {"decay": decay})
        _check_model("EMA", model)
        self.module, self.decay, self.count = copy.deepcopy(model).requires_grad_(False), decay, 0

    def update(self, model: nn.Module) -> None:
        """Update the average with the model's current weights."""
        _check_same_parameters("EMA", self.module, model)
        follow(self.module, model, self.decay, self.count)
        self.count += 1

    def state_dict(self) -> dict[str, Any]:
        """The averaged weights and the number of updates."""
        return {"module": self.module.state_dict(), "count": self.count}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue from a saved state."""
        self.module.load_state_dict(saved["module"])
        self.count = saved["count"]


class SWA:
    r"""Stochastic weight averaging: the mean of weights along training, in `module`.

    .. math:: \bar\theta_{n+1} = \bar\theta_n + \frac{\theta - \bar\theta_n}{n + 1}

    Weights are averaged from call `start` of `update` on, every `every` calls. The statistics of batch norm must be
    recomputed afterwards: `torch.optim.swa_utils.update_bn`. Paper: Izmailov et al., 2018.

    >>> model = nn.Linear(1, 1)
    >>> average = SWA(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = nn.init.constant_(model.weight, value)
    ...     average.update(model)
    >>> average.module.weight.item()
    3.0
    """

    def __init__(self, model: nn.Module, *, start: int = 0, every: int = 1):
        check("SWA", {"start": start, "every": every})
        _check_model("SWA", model)
        self.module, self.start, self.every = copy.deepcopy(model).requires_grad_(False), start, every
        self.calls, self.count = 0, 0

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Call after each step: adds the current weights to the average if this call is one of those averaged."""
        _check_same_parameters("SWA", self.module, model)
        due = self.calls >= self.start and (self.calls - self.start) % self.every == 0
        self.calls += 1
        if due:
            torch._foreach_lerp_(list(self.module.parameters()), list(model.parameters()), 1 / (self.count + 1))
            self.count += 1
            for averaged, current in zip(self.module.buffers(), model.buffers(), strict=True):
                averaged.copy_(current)

    def state_dict(self) -> dict[str, Any]:
        """The averaged weights, the number of calls, and how many of them were averaged."""
        return {"module": self.module.state_dict(), "calls": self.calls, "count": self.count}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue from a saved state."""
        self.module.load_state_dict(saved["module"])
        self.calls, self.count = saved["calls"], saved["count"]


def _check_model(owner: str, model: Any) -> None:
    if not isinstance(model, nn.Module):
        raise WonderlandError(f"{owner} takes a model, not a {type(model).__name__}.")


def _check_same_parameters(owner: str, average: nn.Module, model: Any) -> None:
    _check_model(owner, model)
    averaged, current = ([p.shape for p in module.parameters()] for module in (average, model))
    if averaged != current:
        raise WonderlandError(f"{owner}: model has other parameters than the one the average was made from.")
