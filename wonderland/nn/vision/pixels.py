"""Pixels: bytes brought to the scale that a network was trained on, inside the network, so that a saved model needs nothing else."""

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.arguments import Checked, at_least_one


@part
class Pixels(Checked, nn.Module):
    r"""Standardise each channel of an image with the mean and spread of the training images.

    .. math:: y_c = \frac{x_c / 255 - \mu_c}{\sigma_c}

    With `mean` and `std` (of pixels / 255), pixels are uint8 or floats in 0..255. Without them, floats pass as they are, for
    callers who normalise by themselves, and uint8 is divided by 255. There are no parameters.

    Shapes: x (b, channels, h, w) -> (b, channels, h, w), floating point.

    >>> Pixels(1, mean=[0.5], std=[0.25])(torch.tensor([[[[0, 255]]]], dtype=torch.uint8))
    tensor([[[[-2.,  2.]]]])
    """

    mean: Tensor | None
    scale: Tensor | None

    def __init__(self, channels: int, *, mean: list[float | int] | None = None, std: list[float | int] | None = None):
        super().__init__()
        at_least_one("Pixels", channels=channels)
        self.channels = channels
        if (mean is None) != (std is None):
            raise WonderlandError("Pixels needs both mean and std, or neither.")
        for name, values in {"mean": mean, "std": std}.items():
            if values is not None and len(values) != channels:
                raise WonderlandError(
                    f"Pixels needs one {name} for each of the {channels} channels, not {len(values)}."
                )
        if std is not None and not all(value > 0 for value in std):
            raise WonderlandError("Pixels needs every std to be above 0.")
        shape = (channels, 1, 1)
        self.register_buffer("mean", None if mean is None else torch.tensor(list(mean)).float().mul(255).view(shape))
        self.register_buffer(
            "scale", None if std is None else torch.tensor(list(std)).float().mul(255).reciprocal().view(shape)
        )

    def forward(self, x: Tensor) -> Tensor:
        if self.mean is not None and self.scale is not None:
            return (x.to(self.scale.dtype) - self.mean) * self.scale
        return x if x.is_floating_point() else x.to(torch.get_default_dtype()) / 255
