"""Neural style transfer: an image with the content of one picture and the style of another, by gradient descent on its pixels."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError

Features = Callable[[Tensor], Sequence[Tensor]]


def gram(maps: Tensor) -> Tensor:
    r"""How the channels of a map go together, whatever their place: :math:`G = \frac{1}{d\,h w} F F^\top` with F (d, h w).

    Shapes: (b, d, h, w) -> (b, d, d). Book: D2L 14.12.

    >>> gram(torch.ones(1, 2, 3, 3))
    tensor([[[0.5000, 0.5000],
             [0.5000, 0.5000]]])
    """
    flat = maps.flatten(2)
    return flat @ flat.mT / (flat.shape[1] * flat.shape[2])


def content_loss(maps: Tensor, wanted: Tensor) -> Tensor:
    """The mean squared difference of two maps."""
    return F.mse_loss(maps, wanted)


def style_loss(maps: Tensor, wanted: Tensor) -> Tensor:
    """The mean squared difference of the Gram matrix of a map and the wanted one (b, d, d)."""
    return F.mse_loss(gram(maps), wanted)


def total_variation(x: Tensor) -> Tensor:
    """Half of the mean absolute differences of neighbours, down and to the right.

    >>> total_variation(torch.tensor([[[[0.0, 2.0], [0.0, 2.0]]]])).item()
    1.0
    """
    down, right = x[..., 1:, :] - x[..., :-1, :], x[..., 1:] - x[..., :-1]
    return 0.5 * (down.abs().mean() + right.abs().mean())


class LayerOutputs(nn.Module):
    """What layers of a network give, by their names: `outputs(x)` is a list of tensors in that order, with gradients.

    >>> net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 3))
    >>> [tuple(maps.shape) for maps in LayerOutputs(net, ["1", "2"])(torch.zeros(1, 3, 9, 9))]
    [(1, 4, 7, 7), (1, 5, 5, 5)]
    """

    def __init__(self, model: nn.Module, layers: Sequence[str]):
        super().__init__()
        modules = dict(model.named_modules())
        if missing := [name for name in layers if name not in modules]:
            examples = ", ".join(list(modules)[1:6])
            raise WonderlandError(f"There is no layer {missing[0]!r}. Some of them are {examples}.")
        self.model, self.layers = model.eval(), list(layers)

    def forward(self, x: Tensor) -> list[Tensor]:
        kept: dict[str, Tensor] = {}

        def keeper(name: str) -> Any:
            return lambda module, inputs, output: kept.__setitem__(name, output)

        hooks = [self.model.get_submodule(name).register_forward_hook(keeper(name)) for name in self.layers]
        try:
            self.model(x)
        finally:
            for hook in hooks:
                hook.remove()
        return [kept[name] for name in self.layers]


def style_transfer(
    content: Tensor, style: Tensor, features: tuple[Features, Features], *, steps: int = 200, lr: float = 4.0,
    weights: tuple[float, float, float] = (1.0, 1e3, 10.0), progress: Callable[[int, dict[str, float]], None] | None = None,
) -> tuple[Tensor, list[dict[str, float]]]:  # fmt: skip
    r"""The content of one picture in the style of another; returns it, and the three losses at each step.

    .. math:: L = w_c \sum_l \lVert F_l - F_l^c \rVert^2 + w_s \sum_l \lVert G_l - G_l^s \rVert^2 + w_t \mathrm{TV}

    `features` are two functions that give maps of a picture: those of content and those of style (`LayerOutputs(net, names)`).
    `weights` are those of content, style and total variation (of pixels / 255); all losses are means. Adam begins at the content
    picture, with its rate `lr` in units of 0..255 falling to a tenth.

    Shapes: content, style (1, 3, h, w) in 0..255, of any two sizes -> (1, 3, h, w). Book: D2L 14.12. Paper: Gatys et al., 2016.
    """
    for name, picture in (("content", content), ("style", style)):
        if picture.dim() != 4 or len(picture) != 1:
            raise WonderlandError(f"The {name} is one picture (1, c, h, w), not {tuple(picture.shape)}.")
    with torch.no_grad():
        wanted_content = [maps.detach() for maps in features[0](content.float())]
        wanted_style = [gram(maps) for maps in features[1](style.float())]
    x = content.detach().float().clone().requires_grad_(True)
    optimizer = torch.optim.Adam([x], lr=lr)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.1 ** (1 / max(1, steps)))
    record: list[dict[str, float]] = []
    for step in range(steps):
        optimizer.zero_grad()
        parts: dict[str, Any] = {
            "content": sum(map(content_loss, features[0](x), wanted_content)),
            "style": sum(map(style_loss, features[1](x), wanted_style)),
            "variation": total_variation(x / 255),
        }
        total: Any = sum(weight * part for weight, part in zip(weights, parts.values(), strict=True))
        total.backward()
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            x.clamp_(0, 255)
        record.append({name: float(part.detach()) for name, part in parts.items()})
        if progress is not None:
            progress(step, record[-1])
    return x.detach(), record
