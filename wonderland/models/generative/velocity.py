"""Flow matching: a network learns the velocity that carries noise to data along straight lines."""

import math

import torch
from torch import Tensor, nn

from wonderland.core import part
from wonderland.nn.contract.arguments import Checked


@part
class VelocityNet(Checked, nn.Module):
    r"""The velocity of a point at a time, for rows of features; a class may be given.

    Shapes: x (b, features), t (b,), labels (b,) of codes from 1, 0 for none -> (b, features).

    >>> VelocityNet(features=2)(torch.randn(3, 2), torch.rand(3)).shape
    torch.Size([3, 2])
    """

    def __init__(self, features: int, *, classes: int = 0, hidden: int = 256, depth: int = 3, waves: int = 16):
        super().__init__()
        self.features, self.waves = features, waves
        self.time = nn.Linear(2 * waves, hidden)
        self.label = nn.Embedding(classes + 1, hidden)
        self.first = nn.Linear(features, hidden)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(hidden), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, hidden))
            for _ in range(depth)
        )
        self.last = nn.Linear(hidden, features)

    def forward(self, x: Tensor, t: Tensor, labels: Tensor | None = None) -> Tensor:
        angle = t[:, None] * (math.pi * 2 ** torch.linspace(0, 6, self.waves))
        labels = torch.zeros(len(x), dtype=torch.long) if labels is None else labels
        about = self.time(torch.cat([angle.sin(), angle.cos()], -1)) + self.label(labels)
        h = self.first(x) + about
        for block in self.blocks:
            h = h + block(h + about)
        return self.last(h)


def flow_matching_loss(model: nn.Module, x: Tensor, labels: Tensor | None = None, *, hide: float = 0.1) -> Tensor:
    r"""The squared error of the velocity on straight lines from noise to data.

    .. math:: x_t = (1 - t) \epsilon + t x, \qquad L = E \lVert v(x_t, t) - (x - \epsilon) \rVert^2

    Labels are hidden with probability `hide`, so that samples can be guided. Paper: Lipman et al., 2023.
    """
    noise, t = torch.randn_like(x), torch.rand(len(x))
    if labels is not None:
        labels = torch.where(torch.rand(len(x)) < hide, 0, labels)
    share = t.view(-1, *[1] * (x.dim() - 1))
    return (model((1 - share) * noise + share * x, t, labels) - (x - noise)).square().mean()


@torch.no_grad()
def flow_samples(
    model: nn.Module, noise: Tensor, *, steps: int = 50, labels: Tensor | None = None, guidance: float = 1.0
) -> Tensor:
    r"""Carry noise to data by the midpoint rule.

    .. math:: \dot x = v(x, t, 0) + w \, (v(x, t, y) - v(x, t, 0))

    `guidance` is w. Shapes: noise (b, ...) -> (b, ...).
    """

    def velocity(x: Tensor, t: float) -> Tensor:
        times = torch.full((len(x),), t)
        plain = model(x, times, None) if labels is None or guidance != 1 else None
        if labels is None:
            assert plain is not None
            return plain
        told = model(x, times, labels)
        return told if plain is None else plain + guidance * (told - plain)

    x, step = noise, 1 / steps
    for k in range(steps):
        middle = x + step / 2 * velocity(x, k * step)
        x = x + step * velocity(middle, (k + 0.5) * step)
    return x
