"""Receptive fields, drawn: which pixels a place of a map depends on, and how strongly."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.understand.hooks import evaluating, layer_of
from wonderland.understand.looking import HeatMaps


def receptive_fields(model: nn.Module, x: Tensor, layers: list[str]) -> HeatMaps:
    r"""For each layer, how much its central output moves with each pixel: the mean over channels and images of absolute gradients.

    .. math:: v_{ij} = \frac{1}{b} \sum_{n,c} \Bigl| \frac{\partial \sum_d A_{n d\,i_0 j_0}}{\partial x_{n c i j}} \Bigr|

    The support is the receptive field of `ops.vision.receptive_field`; most of the weight lies in its middle. Random images show what the
    architecture allows, real ones what the network uses. The images of the result are the supports.

    Shapes: x (b, c, h, w) -> values (layers, h, w). Book: Alice 7.2. Paper: Luo et al., 2016.

    >>> net = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.Conv2d(2, 2, 3, padding=1))
    >>> fields = receptive_fields(net, torch.rand(2, 1, 9, 9), ["0", "1"])
    >>> [int((values > 0).sum()) for values in fields.values]
    [9, 25]
    """
    fields = []
    with evaluating(model), torch.enable_grad():
        for name in layers:
            kept: list[Any] = []
            hook = layer_of(model, name).register_forward_hook(lambda _, inputs, output, kept=kept: kept.append(output))
            point = x.detach().float().requires_grad_(True)
            try:
                model(point)
            finally:
                hook.remove()
            if not kept or not isinstance(kept[-1], Tensor) or kept[-1].dim() != 4:
                raise WonderlandError(f"Layer {name!r} gives no map (b, c, h, w): name another one.")
            maps = kept[-1]
            middle = maps[:, :, maps.shape[2] // 2, maps.shape[3] // 2]
            (gradient,) = torch.autograd.grad(middle.sum(), point)
            fields.append(gradient.abs().sum(1).mean(0))
    values = torch.stack(fields)
    return HeatMaps(values, (values > 0).float()[:, None])
