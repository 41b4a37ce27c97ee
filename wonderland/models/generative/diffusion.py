"""Denoising diffusion: a network learns to tell the noise in a noisy row from the row, and samples are denoised step by step."""

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from wonderland.core import Spec, WonderlandError, part
from wonderland.models.generative.flow_matching import velocity_network
from wonderland.models.generative.model import GenerativeModel

SMALLEST_SIGNAL = 0.02


@part
class Diffusion(GenerativeModel):
    r"""Denoising diffusion with a cosine schedule of noise, and samples by DDIM.

    .. math:: x_t = \alpha_t x + \sigma_t \epsilon, \quad \alpha_t = \cos\tfrac{\pi t}{2},\ \sigma_t = \sin\tfrac{\pi t}{2}, \qquad
        L = E \lVert v_\theta(x_t, t, y) - v \rVert^2, \quad v = \alpha_t \epsilon - \sigma_t x

        \hat\epsilon = \alpha_t v_\theta + \sigma_t x_t, \qquad \hat x = \alpha_t x_t - \sigma_t v_\theta

        x_s = \alpha_s \hat x + \sqrt{\sigma_s^2 - \eta^2 \tilde\sigma^2}\, \hat\epsilon + \eta \tilde\sigma z, \qquad
        \tilde\sigma^2 = \frac{\sigma_s^2}{\sigma_t^2} \Big(1 - \frac{\alpha_t^2}{\alpha_s^2}\Big)

    `eta` 0 samples without new noise (DDIM), 1 with that of the Markov chain (DDPM). `net` is as in `FlowMatching`; what it gives is
    v, from which the noise follows: near t = 1 a row that is all noise tells its noise exactly and nothing of x, and v is what is left to learn. With `guidance` w, the noise is :math:`\epsilon(\cdot, 0) + w (\epsilon(\cdot, y) - \epsilon(\cdot, 0))`. `clip` keeps the
    denoised row of each step within a range, such as 1 for images.

    Shapes: x (b, *shape) -> losses (b,); `sample(n)` (n, *shape). Papers: Ho et al., 2020; Song et al., 2021; Salimans and Ho, 2022.

    >>> Diffusion(shape=[2], steps=5).sample(3).shape
    torch.Size([3, 2])
    """

    takes_specs = True

    def __init__(
        self, shape: Sequence[int], *, classes: int = 0, net: Spec | None = None, steps: int = 50, eta: float = 0.0,
        hide: float = 0.1, guidance: float = 1.0, clip: float | None = None,
    ):  # fmt: skip
        super().__init__(shape, classes)
        if not 1 <= steps <= 10_000 or not 0 <= eta <= 1 or not 0 <= hide <= 1:
            raise WonderlandError("Diffusion samples in 1 to 10,000 steps, with eta and hide from 0 to 1.")
        self.net, self.flat = velocity_network(self.shape, classes, net)
        self.steps, self.eta, self.clip = steps, eta, clip
        self.hide, self.guidance = hide if classes else 0.0, guidance

    def draw(self, count: int) -> tuple[Tensor, ...]:
        return torch.randn(count, *self.shape, device=self.device), torch.rand(count, device=self.device)

    def losses(self, x: Tensor, labels: Tensor | None, *drawn: Tensor) -> Tensor:
        noise, t = drawn
        alpha, sigma = self.shares(t, x)
        velocity = self.velocity(alpha * x + sigma * noise, t, labels)
        return (velocity - (alpha * noise - sigma * x)).square().flatten(1).mean(1)

    def velocity(self, x: Tensor, t: Tensor, labels: Tensor | None) -> Tensor:
        """What the network gives for rows at their times."""
        return self.net(x.flatten(1) if self.flat else x, t, labels).view_as(x)

    def noise(self, x: Tensor, t: Tensor, labels: Tensor | None) -> Tensor:
        """The noise in rows at their times."""
        alpha, sigma = self.shares(t, x)
        return alpha * self.velocity(x, t, labels) + sigma * x

    @staticmethod
    def shares(t: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """How much of a row at its time is signal, and how much is noise: (b, 1, ...) each."""
        angle = (t * math.pi / 2).view(-1, *[1] * (x.dim() - 1))
        return angle.cos(), angle.sin()

    @torch.no_grad()
    def sample(self, count: int, labels: Tensor | None = None, *, guidance: float | None = None) -> Tensor:
        x, w = torch.randn(count, *self.shape, device=self.device), self.guidance if guidance is None else guidance
        # The first time keeps a little signal: at 1 the denoised row would be divided by 0.
        times = torch.linspace(1 - 2 / math.pi * math.asin(SMALLEST_SIGNAL), 0, self.steps + 1).tolist()
        for t, s in itertools.pairwise(times):
            x = self.step(x, t, s, self.guided(x, t, labels, w))
        return x

    def guided(self, x: Tensor, t: float, labels: Tensor | None, guidance: float) -> Tensor:
        """The noise at a time, moved away from that without labels."""
        times = torch.full((len(x),), t, device=x.device)
        if labels is None or guidance == 1:
            return self.noise(x, times, labels)
        plain = self.noise(x, times, None)
        return plain + guidance * (self.noise(x, times, labels) - plain)

    def step(self, x: Tensor, t: float, s: float, noise: Tensor) -> Tensor:
        """From time t to an earlier time s, by the equation of DDIM."""
        (alpha, sigma), (alpha_s, sigma_s) = ((math.cos(math.pi * u / 2), math.sin(math.pi * u / 2)) for u in (t, s))
        clean = (x - sigma * noise) / alpha
        if self.clip is not None:
            clean = clean.clamp(-self.clip, self.clip)
            noise = (x - alpha * clean) / sigma
        fresh = self.eta * sigma_s / sigma * math.sqrt(max(0.0, 1 - (alpha / alpha_s) ** 2))
        moved = alpha_s * clean + math.sqrt(max(0.0, sigma_s**2 - fresh**2)) * noise
        return moved + fresh * torch.randn_like(x) if fresh else moved
