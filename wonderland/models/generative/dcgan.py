"""Deep convolutional generative adversarial networks: transposed convolutions against strided ones."""

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.generative.adversarial import discriminator_loss, generator_loss
from wonderland.models.generative.measures import frechet_distance
from wonderland.models.generative.model import GenerativeModel
from wonderland.nn.contract.arguments import at_least_one

LARGEST_BASE = 7  # the side of the generator's first map at most
PROJECTED = 64  # directions in which samples are compared with held-out images


@part
class DCGAN(GenerativeModel):
    r"""A generator of transposed convolutions with batch norm and ReLU, and a discriminator of strided ones with leaky ReLU.

    .. math:: \min_D \max_G\; -\tfrac12 E \log \sigma(D(x)) - \tfrac12 E \log (1 - \sigma(D(G(z)))), \qquad z \sim \mathcal{N}(0, I)

    Both halve or double sides until maps have at most 7 x 7 pixels. With classes, the generator is given a vector of the class in
    addition to z, and the discriminator adds the product of its features with another (projection). `train.Adversarial` fits it: both
    learn in turns, with an optimizer each.

    Shapes: images (b, channels, h, w) in -1..1; `generate(z)` (b, latent) -> images; `judge(x)` -> logits (b,).
    Book: D2L 20.2. Papers: Radford et al., 2016; Miyato and Koyama, 2018.

    >>> model = DCGAN(shape=[1, 8, 8], latent=4, dim=4)
    >>> model.sample(3).shape, model.judge(torch.zeros(2, 1, 8, 8)).shape
    (torch.Size([3, 1, 8, 8]), torch.Size([2]))
    """

    def __init__(self, shape: Sequence[int], *, classes: int = 0, latent: int = 64, dim: int = 32, slope: float = 0.2):
        super().__init__(shape, classes)
        if len(self.shape) != 3:
            raise WonderlandError(
                "DCGAN makes images: rows of features are for FlowMatching, Diffusion, VAE and RealNVP."
            )
        at_least_one("DCGAN", latent=latent, dim=dim)
        channels, longest = self.shape[0], max(self.shape[1:])
        doublings = next(k for k in range(1, 32) if longest <= LARGEST_BASE << k)
        self.base, self.latent = (-(-longest // (1 << doublings)), latent)
        widths = [dim << k for k in range(doublings)]
        self.generator = generator(latent, widths[::-1], channels, self.base)
        self.discriminator = discriminator(channels, widths, slope)
        self.output = nn.Conv2d(widths[-1], 1, self.base, bias=False)
        self.asked = nn.Embedding(classes + 1, latent, padding_idx=0)
        self.projection = nn.Embedding(classes + 1, widths[-1], padding_idx=0)
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
                nn.init.normal_(module.weight, 0, 0.02)

    def generate(self, z: Tensor, labels: Tensor | None = None) -> Tensor:
        """Images from codes."""
        z = z if labels is None else z + self.asked(labels)
        images = self.generator(z[:, :, None, None])
        return images[:, :, : self.shape[1], : self.shape[2]]

    def judge(self, x: Tensor, labels: Tensor | None = None) -> Tensor:
        """The discriminator's logits: positive for what it takes as real."""
        side = self.base << (len(self.discriminator))
        features = self.discriminator(nn.functional.pad(x, (0, side - x.shape[3], 0, side - x.shape[2]), value=-1.0))
        logits = self.output(features).flatten(1)[:, 0]
        return logits if labels is None else logits + (features.mean((2, 3)) * self.projection(labels)).sum(1)

    def players(self) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
        """The parameters of the generator, and those of the discriminator."""
        judging = [self.discriminator, self.output, self.projection]
        return (
            [parameter for module in (self.generator, self.asked) for parameter in module.parameters()],
            [parameter for module in judging for parameter in module.parameters()],
        )

    def draw(self, count: int) -> tuple[Tensor, ...]:
        return (torch.randn(count, self.latent, device=self.device),)

    def losses(self, x: Tensor, labels: Tensor | None, *drawn: Tensor) -> Tensor:
        """The sum of both players' losses, the same for every row; `train.Adversarial` gives each player its own."""
        fake = self.judge(self.generate(drawn[0], labels), labels)
        return (discriminator_loss(self.judge(x, labels), fake) + generator_loss(fake)).expand(len(x))

    @torch.no_grad()
    def score(self, x: Tensor, labels: Tensor | None = None) -> Tensor:
        return -self.judge(x, labels)

    @torch.no_grad()
    def held_out(self, x: Tensor, labels: Tensor | None = None) -> float:
        """The Frechet distance of samples from held-out images, in random directions: losses of players do not fall."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            directions = torch.randn(x[0].numel(), PROJECTED) / x[0].numel() ** 0.5
            samples = self.sample(len(x), labels)
        return frechet_distance(x.flatten(1) @ directions, samples.flatten(1) @ directions)

    @torch.no_grad()
    def sample(self, count: int, labels: Tensor | None = None, *, guidance: float | None = None) -> Tensor:
        return self.generate(torch.randn(count, self.latent, device=self.device), labels)


def generator(latent: int, widths: list[int], channels: int, base: int) -> nn.Sequential:
    """From a code to an image: a map of the base size, then doubled by each further layer."""
    layers: list[nn.Module] = [nn.ConvTranspose2d(latent, widths[0], base, bias=False)]
    for before, after in itertools.pairwise(widths):
        layers += [nn.BatchNorm2d(before), nn.ReLU(), nn.ConvTranspose2d(before, after, 4, 2, 1, bias=False)]
    last = nn.ConvTranspose2d(widths[-1], channels, 4, 2, 1, bias=False)
    return nn.Sequential(*layers, nn.BatchNorm2d(widths[-1]), nn.ReLU(), last, nn.Tanh())


def discriminator(channels: int, widths: list[int], slope: float) -> nn.Sequential:
    """From an image to a map of features, halved by each layer; no norm after the last, whose batch would show what is real."""
    return nn.Sequential(
        *(
            nn.Sequential(nn.Conv2d(before, after, 4, 2, 1, bias=False), nn.BatchNorm2d(after), nn.LeakyReLU(slope))
            for before, after in zip([channels, *widths[:-1]], widths, strict=True)
        )
    )
