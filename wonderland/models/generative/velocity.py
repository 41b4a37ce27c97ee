"""A network of rows whose input is a noisy row and a time: a velocity or a noise for each feature."""

from torch import Tensor, nn

from wonderland.core import part
from wonderland.models.generative.velocity_unet import no_labels, waves_of
from wonderland.nn.contract.arguments import Checked


@part
class VelocityNet(Checked, nn.Module):
    r"""The velocity of a point at a time, for rows of features; a class may be given.

    Shapes: x (b, features), t (b,), labels (b,) of codes from 1, 0 for none -> (b, features).

    >>> import torch
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
        about = self.time(waves_of(t, self.waves)) + self.label(no_labels(x) if labels is None else labels)
        h = self.first(x) + about
        for block in self.blocks:
            h = h + block(h + about)
        return self.last(h)
