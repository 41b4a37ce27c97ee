"""Flow matching: a network learns the velocity that carries noise to data along straight lines."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.models.generative.model import GenerativeModel
from wonderland.models.generative.velocity import VelocityNet
from wonderland.models.generative.velocity_unet import VelocityUNet

SMALLEST_IMAGE = 12  # pixels of a side; the pixels of smaller images are features of a row


@part
class FlowMatching(GenerativeModel):
    r"""A velocity field that carries noise to data along straight lines, followed by the midpoint rule to sample.

    .. math:: x_t = (1 - t) \epsilon + t x, \qquad L = E \lVert v(x_t, t, y) - (x - \epsilon) \rVert^2, \qquad \dot x = v(x, t, y)

    `net` is the network of the velocity, called with rows, times and labels; by default `VelocityNet` for rows and small images,
    `VelocityUNet` for others. Samples take `steps` steps. With `guidance` w, the velocity is :math:`v(\cdot, 0) + w (v(\cdot, y) - v(\cdot, 0))`.

    Shapes: x (b, *shape) -> losses (b,); `sample(n)` (n, *shape). Papers: Lipman et al., 2023; Ho and Salimans, 2022.

    >>> FlowMatching(shape=[2]).sample(3).shape
    torch.Size([3, 2])
    """

    takes_specs = True

    def __init__(
        self, shape: Sequence[int], *, classes: int = 0, net: Spec | None = None, steps: int = 25, hide: float = 0.1,
        guidance: float = 1.0,
    ):  # fmt: skip
        super().__init__(shape, classes)
        if not 0 <= hide <= 1 or not 1 <= steps <= 10_000:
            raise WonderlandError(
                f"FlowMatching hides labels from a share of rows, and samples in 1 to 10,000 steps: not {hide} and {steps}."
            )
        self.net, self.flat = velocity_network(self.shape, classes, net)
        self.steps, self.hide, self.guidance = steps, hide if classes else 0.0, guidance

    def draw(self, count: int) -> tuple[Tensor, ...]:
        return torch.randn(count, *self.shape, device=self.device), torch.rand(count, device=self.device)

    def losses(self, x: Tensor, labels: Tensor | None, *drawn: Tensor) -> Tensor:
        noise, t = drawn
        share = t.view(-1, *[1] * (x.dim() - 1))
        velocity = self.velocity((1 - share) * noise + share * x, t, labels)
        return (velocity - (x - noise)).square().flatten(1).mean(1)

    def velocity(self, x: Tensor, t: Tensor, labels: Tensor | None) -> Tensor:
        """The velocity of rows at their times."""
        return self.net(x.flatten(1) if self.flat else x, t, labels).view_as(x)

    @torch.no_grad()
    def sample(self, count: int, labels: Tensor | None = None, *, guidance: float | None = None) -> Tensor:
        noise = torch.randn(count, *self.shape, device=self.device)
        chosen = self.guidance if guidance is None else guidance
        return flow_samples(self.velocity, noise, steps=self.steps, labels=labels, guidance=chosen)


def velocity_network(shape: tuple[int, ...], classes: int, net: Spec | None) -> tuple[nn.Module, bool]:
    """The network of a velocity or a noise, and whether it reads rows instead of images."""
    if net is not None:
        built = net.build()
        return built, len(shape) == 1 or hasattr(built, "features")  # a network of features reads pixels as a row
    if len(shape) == 3 and min(shape[1:]) >= SMALLEST_IMAGE:
        return VelocityUNet(shape[0], classes=classes), False
    return VelocityNet(math.prod(shape), classes=classes), True


def flow_matching_loss(
    model: Callable[..., Tensor], x: Tensor, labels: Tensor | None = None, *, hide: float = 0.1
) -> Tensor:
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
    model: Callable[..., Tensor], noise: Tensor, *, steps: int = 50, labels: Tensor | None = None, guidance: float = 1.0
) -> Tensor:
    r"""Carry noise to data by the midpoint rule.

    .. math:: \dot x = v(x, t, 0) + w \, (v(x, t, y) - v(x, t, 0))

    `guidance` is w. Shapes: noise (b, ...) -> (b, ...).
    """

    def velocity(x: Tensor, t: float) -> Tensor:
        times = torch.full((len(x),), t, device=x.device)
        plain = model(x, times, None) if labels is None or guidance != 1 else None
        if labels is None:
            assert plain is not None
            return plain
        conditional = model(x, times, labels)
        return conditional if plain is None else plain + guidance * (conditional - plain)

    x, step = noise, 1 / steps
    for k in range(steps):
        middle = x + step / 2 * velocity(x, k * step)
        x = x + step * velocity(middle, (k + 0.5) * step)
    return x
