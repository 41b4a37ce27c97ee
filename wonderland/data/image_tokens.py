"""Images as sequences of tokens and back: pixels by their brightness, or patches by the nearest of a codebook."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError

ORDERS = ("rows", "columns")


@dataclass(frozen=True)
class ImageTokens:
    r"""One token for each patch of an image, in the order of rows or of columns, so that a `models.Decoder` can draw images.

    `codebook` (k, c * patch * patch) holds what each token looks like, in 0..255: evenly spaced brightness for single pixels
    (`pixels`), or the means of clusters of patches (`fitted`). A patch becomes the token of the nearest code.

    Shapes: images (b, c, h, w) <-> tokens (b, h * w / patch^2). Book: Alice 11.2. Paper: Chen et al., 2020 (Image GPT).

    >>> tokens = ImageTokens.pixels(4, height=2, width=2)
    >>> tokens.encode(torch.tensor([[[[0, 90], [160, 255]]]], dtype=torch.uint8))
    tensor([[0, 1, 2, 3]])
    """

    codebook: Tensor
    height: int
    width: int
    patch: int = 1
    order: str = "rows"

    def __post_init__(self):
        if self.order not in ORDERS:
            raise WonderlandError(f"Patches come in the order of {' or '.join(ORDERS)}, not {self.order!r}.")
        if self.patch < 1 or self.height % self.patch or self.width % self.patch:
            raise WonderlandError(
                f"Patches of {self.patch} pixels do not divide images of {self.height} x {self.width}: choose another patch."
            )
        if self.codebook.dim() != 2 or self.codebook.shape[1] % self.patch**2:
            raise WonderlandError(
                f"A codebook has a row of c * {self.patch} * {self.patch} numbers for each token, not {tuple(self.codebook.shape)}."
            )

    @classmethod
    def pixels(cls, levels: int, *, height: int, width: int, order: str = "rows") -> "ImageTokens":
        """Grey pixels by brightness, in so many levels from black to white."""
        if not 2 <= levels <= 256:
            raise WonderlandError(f"Brightness has 2 to 256 levels, not {levels}.")
        return cls(torch.linspace(0, 255, levels)[:, None], height, width, 1, order)

    @classmethod
    def fitted(
        cls, images: Tensor, codes: int, *, patch: int, order: str = "rows", rounds: int = 20, seed: int = 0
    ) -> "ImageTokens":
        """A codebook from the patches of some images (b, c, h, w), by Lloyd's algorithm for k-means."""
        flat = _cut(images.float(), patch).flatten(0, 1)
        kinds = torch.unique(flat, dim=0)
        if len(kinds) < codes:
            raise WonderlandError(f"These images have {len(kinds):,} kinds of patches, too few for {codes:,} codes.")
        draw = np.random.default_rng(seed)
        centres = kinds[torch.from_numpy(draw.choice(len(kinds), codes, replace=False))].clone()
        for _ in range(rounds):
            nearest = torch.cdist(flat, centres).argmin(1)
            counts = torch.bincount(nearest, minlength=codes)
            sums = torch.zeros_like(centres).index_add_(0, nearest, flat)
            centres = torch.where(counts[:, None] > 0, sums / counts.clamp_min(1)[:, None], centres)
        return cls(centres, images.shape[2], images.shape[3], patch, order)

    @property
    def vocab(self) -> int:
        """The number of tokens."""
        return len(self.codebook)

    @property
    def length(self) -> int:
        """Tokens of an image."""
        return (self.height // self.patch) * (self.width // self.patch)

    @property
    def places(self) -> Tensor:
        """For each token of the sequence, its place by rows; `places.argsort()` is the inverse."""
        grid = torch.arange(self.length).view(self.height // self.patch, self.width // self.patch)
        return (grid if self.order == "rows" else grid.t()).flatten()

    def encode(self, images: Tensor) -> Tensor:
        """Tokens of images (b, c, h, w) in 0..255: (b, length)."""
        channels = self.codebook.shape[1] // self.patch**2
        if images.dim() != 4 or tuple(images.shape[1:]) != (channels, self.height, self.width):
            raise WonderlandError(
                f"These tokens are for images (b, {channels}, {self.height}, {self.width}), not {tuple(images.shape)}."
            )
        cut = _cut(images.float(), self.patch)[:, self.places]
        return torch.cdist(cut, self.codebook.expand(len(cut), -1, -1)).argmin(-1)

    def decode(self, tokens: Tensor) -> Tensor:
        """Images of tokens (b, length): float (b, c, h, w) in 0..255."""
        if tokens.dim() != 2 or tokens.shape[1] != self.length:
            raise WonderlandError(f"An image has {self.length} tokens, not {tuple(tokens.shape)[-1]}.")
        cut = self.codebook[tokens][:, self.places.argsort()]
        rows, columns = self.height // self.patch, self.width // self.patch
        cut = cut.view(len(tokens), rows, columns, -1, self.patch, self.patch)
        return cut.permute(0, 3, 1, 4, 2, 5).reshape(len(tokens), -1, self.height, self.width)


def _cut(images: Tensor, patch: int) -> Tensor:
    """The patches of images by rows: (b, n, c * patch * patch)."""
    return torch.nn.functional.unfold(images, patch, stride=patch).mT
