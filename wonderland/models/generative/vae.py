"""Variational autoencoder: a code with a spread, and a bound on the likelihood."""

import torch
from torch import Tensor, nn

from wonderland.core import part
from wonderland.models.generative.model import GenerativeModel


@part
class VAE(GenerativeModel):
    r"""An encoder to a Gaussian code and a decoder to the mean of a Gaussian of variance `noise`.

    .. math:: \log p(x) \ge E_q[\log p(x \mid z)] - \text{KL}(q(z \mid x) \,\Vert\, \mathcal{N}(0, I))

    Images are read as rows of pixels. Shapes: x (b, features) -> losses (b,), minus `bound`; `sample(n)` (n, features).
    Paper: Kingma and Welling, 2014.

    >>> VAE(features=3).sample(5).shape
    torch.Size([5, 3])
    """

    def __init__(self, features: int, *, dim: int = 8, hidden: int = 128, noise: float = 0.1):
        super().__init__([features])
        self.dim, self.noise = dim, noise
        self.encoder = nn.Sequential(
            nn.Linear(features, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 2 * dim)
        )
        self.decoder = nn.Sequential(
            nn.Linear(dim, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, features)
        )

    def draw(self, count: int) -> tuple[Tensor, ...]:
        return (torch.randn(count, self.dim, device=self.device),)

    def losses(self, x: Tensor, labels: Tensor | None, *drawn: Tensor) -> Tensor:
        return -self.bound(x, *drawn)

    def bound(self, x: Tensor, drawn: Tensor | None = None) -> Tensor:
        """A lower bound of the log-density of each row, with one draw of the code."""
        x = x.flatten(1)
        mean, log = self.encoder(x).chunk(2, -1)
        log = log.clamp(-10, 10)
        z = mean + (log / 2).exp() * (torch.randn_like(mean) if drawn is None else drawn)
        divergence = 0.5 * (mean.square() + log.exp() - 1 - log).sum(-1)
        likelihood = torch.distributions.Normal(self.decoder(z), self.noise**0.5).log_prob(x).sum(-1)
        return likelihood - divergence

    def reconstruct(self, x: Tensor) -> Tensor:
        """What the decoder makes of the mean code of each row."""
        return self.decoder(self.encoder(x.flatten(1)).chunk(2, -1)[0])

    @torch.no_grad()
    def sample(self, count: int, labels: Tensor | None = None, *, guidance: float | None = None) -> Tensor:
        out = self.decoder(torch.randn(count, self.dim, device=self.device))
        return out + self.noise**0.5 * torch.randn_like(out)
