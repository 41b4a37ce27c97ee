"""What all networks of images share: pixels in, a map, features, a head; and published sizes as class methods."""

from abc import abstractmethod

from jaxtyping import Float, Num
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.nn.contract.arguments import Checked, at_least_one
from wonderland.nn.vision.pixels import Pixels

Numbers = list[float | int] | None


class ImageModel(Checked, nn.Module):
    """Images in, scores out: `maps` (b, d, h', w'), `features` (b, d), and `forward` (b, classes).

    `classes` is the number of outputs (1 for a regression, 0 for features without a head), `channels` that of the images; a network
    of colour images reads grey ones as three equal channels. With `mean` and `std`, pixels are
    bytes or floats in 0..255 and are standardised inside; without them floats are taken as they are (`nn.Pixels`).
    """

    smallest: int = 1  # the shortest side that the network can read
    head: nn.Module

    def __init__(self, classes: int, channels: int, mean: Numbers, std: Numbers):
        super().__init__()
        at_least_one(type(self).__name__, channels=channels)
        if classes < 0:
            raise WonderlandError(f"{type(self).__name__} has 0 or more classes, not {classes}.")
        self.pixels = Pixels(channels, mean=mean, std=std)

    @abstractmethod
    def maps(self, x: Num[Tensor, "b c h w"]) -> Float[Tensor, "b d rows columns"]:
        """The last map of features, before it is pooled."""

    def features(self, x: Num[Tensor, "b c h w"]) -> Float[Tensor, "b d"]:
        """What the head reads: the mean over the last map unless a network says otherwise."""
        return self.maps(x).mean((2, 3))

    def forward(self, x: Num[Tensor, "b c h w"]) -> Float[Tensor, "b classes"]:
        return self.head(self.features(x))

    def read(self, x: Tensor) -> Tensor:
        """Pixels in the network's scale; an image that is too small for it is refused in a sentence."""
        name = type(self).__name__
        if x.dim() == 4 and x.shape[1] == 1 and self.pixels.channels == 3:
            x = x.expand(-1, 3, -1, -1)
        if x.dim() != 4 or x.shape[1] != self.pixels.channels:
            raise WonderlandError(
                f"{name} takes images (batch, {self.pixels.channels}, height, width), not {tuple(x.shape)}."
            )
        if min(x.shape[2:]) < self.smallest:
            raise WonderlandError(
                f"{name} reads images of at least {self.smallest} x {self.smallest} pixels, not {x.shape[2]} x {x.shape[3]}: "
                "enlarge them, or choose another model."
            )
        return self.pixels(x)


def linear_head(dim: int, classes: int) -> nn.Module:
    """One linear layer to the classes; nothing where there are none."""
    return nn.Linear(dim, classes) if classes else nn.Identity()


def kaiming(model: nn.Module) -> None:
    """Initial weights for rectified convolutions: normal with variance 2 / fan-out, biases 0."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
