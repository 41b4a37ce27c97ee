"""A vector-quantised autoencoder: an image becomes a grid of tokens, and a distribution of tokens draws new ones."""

import itertools
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.generative.model import GenerativeModel
from wonderland.models.generative.pixelcnn import TokenGrid
from wonderland.nn.contract.arguments import at_least_one
from wonderland.nn.implicit import VectorQuantiser


@part
class VQVAE(GenerativeModel):
    r"""Convolutions to a grid of vectors, the nearest of `codes` learned ones for each, and transposed convolutions back.

    .. math:: L = \lVert x - d(q) \rVert^2 + \lVert \text{sg}(z) - q \rVert^2 + \beta \lVert z - \text{sg}(q) \rVert^2 - \log p(k), \quad
        q = e_k,\ k = \arg\min_j \lVert z - e_j \rVert

    Sides are halved `halvings` times. The distribution p of the grid (`TokenGrid`) learns beside it from tokens alone: its
    gradients do not reach the encoder.

    Shapes: x (b, channels, h, w) -> losses (b,); `encode(x)` tokens (b, h', w'); `decode(tokens)` images. Book: Alice 11.2.
    Paper: van den Oord et al., 2017.

    >>> model = VQVAE(shape=[1, 8, 8], codes=8, dim=4)
    >>> model.encode(torch.zeros(2, 1, 8, 8)).shape, model.sample(2).shape
    (torch.Size([2, 2, 2]), torch.Size([2, 1, 8, 8]))
    """

    def __init__(
        self, shape: Sequence[int], *, classes: int = 0, codes: int = 64, dim: int = 32, halvings: int = 2, hide: float = 0.1
    ):  # fmt: skip
        super().__init__(shape, classes)
        if len(self.shape) != 3:
            raise WonderlandError("VQVAE encodes images: rows of features are for VAE.")
        at_least_one("VQVAE", codes=codes, dim=dim, halvings=halvings)
        channels, self.hide = self.shape[0], hide if classes else 0.0
        widths = [channels, *[2 * dim] * halvings]
        down = [layer for a, b in itertools.pairwise(widths) for layer in (nn.Conv2d(a, b, 4, 2, 1), nn.ReLU())]
        self.encoder = nn.Sequential(
            *down, nn.Conv2d(2 * dim, 2 * dim, 3, padding=1), nn.ReLU(), nn.Conv2d(2 * dim, dim, 1)
        )
        up = [
            layer for _ in range(halvings - 1) for layer in (nn.ConvTranspose2d(2 * dim, 2 * dim, 4, 2, 1), nn.ReLU())
        ]
        self.decoder = nn.Sequential(
            nn.Conv2d(dim, 2 * dim, 3, padding=1), nn.ReLU(), *up, nn.ConvTranspose2d(2 * dim, channels, 4, 2, 1)
        )
        self.quantiser = VectorQuantiser(codes, dim)
        self.prior = TokenGrid(codes, classes=classes, dim=2 * dim, depth=3, kernel=3)
        self.side = 1 << halvings

    def padded(self, x: Tensor) -> Tensor:
        """Images whose sides are multiples of the side of a token."""
        return F.pad(x, (0, -x.shape[3] % self.side, 0, -x.shape[2] % self.side), value=-1.0)

    def vectors(self, x: Tensor) -> Tensor:
        """The encoder's vectors: (b, h', w', dim)."""
        return self.encoder(self.padded(x)).movedim(1, -1)

    def encode(self, x: Tensor) -> Tensor:
        """The tokens of images."""
        return self.quantiser.nearest(self.vectors(x))

    def decode(self, tokens: Tensor) -> Tensor:
        """Images from tokens."""
        return self.images(self.quantiser.codes[tokens])

    def images(self, vectors: Tensor) -> Tensor:
        """Images from vectors of a grid."""
        return self.decoder(vectors.movedim(-1, 1))[:, :, : self.shape[1], : self.shape[2]]

    def losses(self, x: Tensor, labels: Tensor | None, *drawn: Tensor) -> Tensor:
        vectors = self.vectors(x)
        quantised = self.quantiser(vectors)
        tokens = self.quantiser.tokens
        error = (self.images(quantised) - x).square().flatten(1).mean(1)
        unlikely = F.cross_entropy(self.prior(tokens, labels), tokens, reduction="none").flatten(1).mean(1)
        return error + self.quantiser.loss + 0.1 * unlikely

    @torch.no_grad()
    def sample(self, count: int, labels: Tensor | None = None, *, guidance: float | None = None) -> Tensor:
        height, width = (-(-side // self.side) for side in self.shape[1:])
        return self.decode(self.prior.sample(count, height, width, labels)).clamp(-1, 1)
