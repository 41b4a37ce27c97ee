"""What a network of images looks at: class activation maps, occlusion, integrated gradients, ideal inputs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.understand.hooks import evaluating, layer_of
from wonderland.understand.map_sheets import png

__all__ = ["HeatMaps", "grad_cam", "ideal_input", "integrated_gradients", "occlusion"]


@dataclass(frozen=True)
class HeatMaps:
    """One map for each image: `values` (b, h, w), and the images (b, c, h, w) they belong to. It draws itself in a notebook."""

    values: Tensor
    images: Tensor

    def overlaid(self, row: int) -> np.ndarray:
        """The image in grey with the map in red over it: uint8 (h, w, 3)."""
        image = self.images[row].detach().float()
        low, high = image.amin(), image.amax()
        grey = ((image - low) / (high - low).clamp_min(1e-12)).mean(0)
        heat = self.values[row].detach().float().clamp_min(0)
        heat = heat / heat.amax().clamp_min(1e-12)
        colours = torch.stack([grey + (1 - grey) * heat, grey * (1 - heat), grey * (1 - heat)], -1)
        return (colours.clamp(0, 1) * 255).round().to(torch.uint8).numpy()

    def _repr_html_(self) -> str:
        return "".join(
            f"<img style='width:128px;margin:4px;image-rendering:pixelated' alt='map {row}' "
            f"src='data:image/png;base64,{png(self.overlaid(row))}'>"
            for row in range(min(len(self.values), 16))
        )


def grad_cam(model: Any, x: Tensor, target: Tensor | None = None, *, layer: str | None = None) -> HeatMaps:
    r"""Grad-CAM: the last map of a network, its channels weighted by the mean gradient of a class.

    .. math:: M = \mathrm{relu}\Bigl( \sum_k \alpha_k A_k \Bigr), \qquad \alpha_k = \frac{1}{hw} \sum_{ij} \frac{\partial s_c}{\partial A_{kij}}

    `target` (b,) are classes, those predicted unless given; `layer` names the module whose output is the map, the last
    convolution unless given. Shapes: x (b, c, h, w) -> values (b, h, w). Paper: Selvaraju et al., 2017.

    >>> net = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 3))
    >>> grad_cam(net, torch.rand(2, 1, 8, 8)).values.shape
    torch.Size([2, 8, 8])
    """
    module = _layer(model, layer)
    kept: list[Any] = []
    hook = module.register_forward_hook(lambda _, inputs, output: kept.append(output))
    with evaluating(model):
        try:
            scores = model(x)
        finally:
            hook.remove()
        maps = kept[-1]
        if not isinstance(maps, Tensor) or maps.dim() != 4:
            raise WonderlandError("Grad-CAM needs a layer whose output is a map (b, c, h, w): name one with layer.")
        (gradient,) = torch.autograd.grad(_chosen(scores, target).sum(), maps)
    weighted = F.relu((maps.detach() * gradient.mean((2, 3), keepdim=True)).sum(1, keepdim=True))
    values = F.interpolate(weighted, x.shape[2:], mode="bilinear", align_corners=False)[:, 0]
    return HeatMaps(values, x)


def occlusion(
    model: Any, x: Tensor, target: Tensor | None = None, *, size: int = 4, stride: int | None = None, batch: int = 256
) -> HeatMaps:
    """How far the score of a class falls when a square is hidden behind the image's own mean, for each place of the square.

    Shapes: x (b, c, h, w) -> values (b, h, w), the mean over the squares that cover a pixel. Paper: Zeiler and Fergus, 2014.

    >>> occlusion(lambda x: x.sum((2, 3)), torch.rand(1, 1, 8, 8)).values.shape
    torch.Size([1, 8, 8])
    """
    stride = max(1, size // 2) if stride is None else stride
    height, width = x.shape[2:]
    x = x.float()
    places = [
        (top, left)
        for top in sorted({*range(0, max(1, height - size + 1), stride), max(0, height - size)})
        for left in sorted({*range(0, max(1, width - size + 1), stride), max(0, width - size)})
    ]
    total, count = torch.zeros(len(x), height, width), torch.zeros(height, width)
    with torch.no_grad(), evaluating(model):
        base = model(x)
        classes = base.argmax(1) if target is None else target
        whole = _chosen(base, classes)
        for row in range(len(x)):
            filled = x[row].mean((1, 2))[:, None, None]
            for first in range(0, len(places), batch):
                hidden_places = places[first : first + batch]
                hidden = x[row].repeat(len(hidden_places), 1, 1, 1)
                for index, (top, left) in enumerate(hidden_places):
                    hidden[index, :, top : top + size, left : left + size] = filled
                drops = whole[row] - _chosen(model(hidden), classes[row].expand(len(hidden_places)))
                for (top, left), drop in zip(hidden_places, drops.tolist(), strict=True):
                    total[row, top : top + size, left : left + size] += drop
    for top, left in places:
        count[top : top + size, left : left + size] += 1
    return HeatMaps(total / count, x)


def integrated_gradients(
    model: Any, x: Tensor, target: Tensor | None = None, *, baseline: Tensor | None = None, steps: int = 32
) -> HeatMaps:
    r"""Gradients collected on the straight way from a baseline (a black image unless given) to the image.

    .. math:: a_i = (x_i - x'_i) \int_0^1 \frac{\partial s_c}{\partial x_i}(x' + t (x - x'))\, dt

    Their sum over an image is the difference of its score to the baseline's. Shapes: x (b, c, h, w) -> values (b, h, w), summed
    over channels. Paper: Sundararajan et al., 2017.

    >>> maps = integrated_gradients(lambda x: x.sum((2, 3)), torch.ones(1, 1, 2, 2))
    >>> maps.values.sum().item()
    4.0
    """
    x = x.float()
    start = torch.zeros_like(x) if baseline is None else baseline.float().expand_as(x)
    total = torch.zeros_like(x)
    with evaluating(model):
        with torch.no_grad():
            classes = model(x).argmax(1) if target is None else target
        for step in range(steps):
            point = (start + (step + 0.5) / steps * (x - start)).requires_grad_(True)
            total += torch.autograd.grad(_chosen(model(point), classes).sum(), point)[0] / steps
    return HeatMaps((total * (x - start)).sum(1), x)


def ideal_input(
    score: Callable[[Tensor], Tensor], shape: tuple[int, ...], *, steps: int = 100, lr: float = 8.0, smooth: float = 1e-3,
    low: float = 0.0, high: float = 255.0, seed: int = 0,
) -> Tensor:  # fmt: skip
    """Activation maximisation: the image with the largest `score(x)`, less its total variation times `smooth`, by gradient ascent.

    Steps follow the sign of a smoothed gradient and stay between `low` and `high`. Shapes: shape (c, h, w) -> (1, c, h, w).
    Paper: Simonyan et al., 2014.

    >>> best = ideal_input(lambda x: x[:, :, :, :2].sum(), (1, 4, 4), smooth=0.0)
    >>> best[0, 0, 0, 0].item()
    255.0
    """
    draw = torch.Generator().manual_seed(seed)
    x = (low + (high - low) * (0.45 + 0.1 * torch.rand(1, *shape, generator=draw))).requires_grad_(True)
    velocity = torch.zeros_like(x)
    for step in range(steps):
        rough = (x[..., 1:, :] - x[..., :-1, :]).abs().sum() + (x[..., 1:] - x[..., :-1]).abs().sum()
        (gradient,) = torch.autograd.grad(score(x).sum() - smooth * rough, x)
        velocity = 0.9 * velocity + gradient / gradient.abs().mean().clamp_min(1e-12)
        with torch.no_grad():
            x += lr * (1 - step / steps) * velocity.clamp(-1, 1)
            x.clamp_(low, high)
    return x.detach()


def _layer(model: Any, name: str | None) -> nn.Module:
    if name is not None:
        return layer_of(model, name)
    convolutions = [
        module for module in model.modules() if isinstance(module, nn.Conv2d) and module.kernel_size != (1, 1)
    ]
    if not convolutions:
        raise WonderlandError(
            "This model has no convolution to look at: name a layer whose output is a map (b, c, h, w)."
        )
    return convolutions[-1]


def _chosen(scores: Tensor, target: Tensor | None) -> Tensor:
    """The score of each row's class, those predicted unless given."""
    classes = scores.argmax(1) if target is None else target
    return scores.gather(1, classes.view(-1, 1))[:, 0]
