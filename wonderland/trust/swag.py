"""SWAG: a Gaussian over weights from the last part of training, and networks drawn from it."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError


class Swag:
    r"""Mean, diagonal and a few deviations of the weights that training passes through.

    .. math:: w \sim N\Bigl(\bar w,\ \tfrac12 \mathrm{diag}\bigl(\overline{w^2} - \bar w^2\bigr) + \tfrac{1}{2 (k - 1)} D D^\top\Bigr)

    Call `collect` once an epoch at a constant learning rate, then `draw` to give the model weights from the posterior, and
    `mean` to give it the average. Statistics of batch norm belong to other weights: pass training batches to `refresh`
    after each draw. Paper: Maddox et al., 2019.

    >>> model = nn.Linear(2, 1)
    >>> swag = Swag(model)
    >>> for _ in range(3):
    ...     _ = nn.init.normal_(model.weight)
    ...     swag.collect()
    >>> swag.draw(torch.Generator().manual_seed(0))
    """

    def __init__(self, model: nn.Module, *, rank: int = 20):
        if rank < 0:
            raise WonderlandError(f"`rank` has to be 0 or more, not {rank}.")
        self.model, self.rank, self.count = model, rank, 0
        self.first = self._flat()
        self.mean_, self.square = torch.zeros_like(self.first), torch.zeros_like(self.first)
        self.deviations: list[Tensor] = []

    def _flat(self) -> Tensor:
        return torch.cat([p.detach().double().flatten() for p in self.model.parameters()])

    def _write(self, flat: Tensor) -> None:
        start = 0
        with torch.no_grad():
            for p in self.model.parameters():
                p.copy_(flat[start : start + p.numel()].reshape(p.shape))
                start += p.numel()

    def collect(self) -> None:
        """Take the weights of now into the average."""
        now = self._flat()
        self.count += 1
        self.mean_ += (now - self.mean_) / self.count
        self.square += (now.square() - self.square) / self.count
        if self.rank:
            self.deviations = [*self.deviations, now - self.mean_][-self.rank :]

    def mean(self) -> None:
        """Give the model the average of what was collected."""
        self._needed(1)
        self._write(self.mean_)

    def draw(self, generator: torch.Generator | None = None, *, scale: float = 1.0) -> None:
        """Give the model weights drawn from the Gaussian; `scale` multiplies its covariance."""
        self._needed(2)
        variance = (self.square - self.mean_.square()).clamp(min=0)
        noise = torch.randn(len(self.mean_), dtype=torch.float64, generator=generator)
        step = (variance / 2).sqrt() * noise if self.deviations else variance.sqrt() * noise
        if len(self.deviations) > 1:
            D = torch.stack(self.deviations, 1)
            small = torch.randn(D.shape[1], dtype=torch.float64, generator=generator)
            step = step + D @ small / math.sqrt(2 * (D.shape[1] - 1))
        self._write(self.mean_ + math.sqrt(scale) * step)

    def _needed(self, least: int) -> None:
        if self.count < least:
            raise WonderlandError(
                f"SWAG needs {least} collected weights or more, not {self.count}: call `collect` each epoch."
            )

    def refresh(self, batches: Any) -> None:
        """Compute the statistics of batch norm anew for the weights of now, from training inputs."""
        norms = [m for m in self.model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
        if not norms:
            return
        modes = [(module, module.training) for module in self.model.modules()]
        rates = [(norm, norm.momentum) for norm in norms]
        try:
            self.model.eval()
            for norm in norms:
                norm.reset_running_stats()
                norm.momentum, norm.training = None, True
            with torch.no_grad():
                for batch in batches:
                    self.model(batch)
        finally:
            for norm, rate in rates:
                norm.momentum = rate
            for module, mode in modes:
                module.training = mode
