"""RealNVP: a density by a chain of invertible couplings."""

import math

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.generative.model import GenerativeModel


@part
class RealNVP(GenerativeModel):
    r"""Half of the features scale and shift the other half, by turns; the determinant is a product of the scales.

    .. math:: z_2 = x_2 \odot e^{s(x_1)} + t(x_1), \qquad \log p(x) = \log \mathcal{N}(z) + \sum s(x_1)

    Rows of few levels, such as pixels, get uniform noise of the width `dequantise`, the distance of two levels.

    Shapes: `encode(x)` (b, features) -> z (b, features); `log_prob` (b,); `sample(n)` (n, features). Paper: Dinh et al., 2017.

    >>> flow = RealNVP(features=2)
    >>> x = torch.randn(4, 2)
    >>> torch.allclose(flow.inverse(flow.encode(x)), x, atol=1e-5)
    True
    """

    masks: Tensor

    def __init__(self, features: int, *, couplings: int = 6, hidden: int = 64, dequantise: float = 0.0):
        super().__init__([features])
        if features < 2:
            raise WonderlandError("RealNVP needs at least two features: one half moves the other.")
        self.features, self.dequantise = features, dequantise
        self.nets = nn.ModuleList(
            nn.Sequential(
                nn.Linear(features, hidden),
                nn.SiLU(),
                nn.Linear(hidden, hidden),
                nn.SiLU(),
                nn.Linear(hidden, 2 * features),
            )
            for _ in range(couplings)
        )
        for net in self.nets:
            nn.init.zeros_(net[-1].weight)  # pyright: ignore[reportIndexIssue]
            nn.init.zeros_(net[-1].bias)  # pyright: ignore[reportIndexIssue]
        masks = [(torch.arange(features) + turn) % 2 for turn in range(couplings)]
        self.register_buffer("masks", torch.stack(masks).float())

    def pushed(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The code and the logarithm of the determinant: (b, features), (b,)."""
        total = torch.zeros(len(x), dtype=x.dtype)
        for mask, net in zip(self.masks, self.nets, strict=True):
            scale, shift = net(x * mask).chunk(2, -1)
            scale = 2 * torch.tanh(scale / 2) * (1 - mask)
            x = x * mask + (1 - mask) * (x * scale.exp() + shift)
            total = total + scale.sum(-1)
        return x, total

    def draw(self, count: int) -> tuple[Tensor, ...]:
        return (torch.rand(count, self.features, device=self.device),) if self.dequantise else ()

    def losses(self, x: Tensor, labels: Tensor | None, *drawn: Tensor) -> Tensor:
        x = x.flatten(1)
        return -self.log_prob(x + self.dequantise * (drawn[0] - 0.5) if drawn else x)

    def encode(self, x: Tensor) -> Tensor:
        """The code of each row."""
        return self.pushed(x)[0]

    def inverse(self, z: Tensor) -> Tensor:
        """Back from codes to rows."""
        for mask, net in zip(reversed(self.masks), reversed(self.nets), strict=True):
            scale, shift = net(z * mask).chunk(2, -1)
            scale = 2 * torch.tanh(scale / 2) * (1 - mask)
            z = z * mask + (1 - mask) * (z - shift) * (-scale).exp()
        return z

    def log_prob(self, x: Tensor) -> Tensor:
        """The log-density of each row, exactly."""
        z, total = self.pushed(x)
        return total - 0.5 * (z.square() + math.log(2 * math.pi)).sum(-1)

    @torch.no_grad()
    def sample(self, count: int, labels: Tensor | None = None, *, guidance: float | None = None) -> Tensor:
        return self.inverse(torch.randn(count, self.features, device=self.device))
