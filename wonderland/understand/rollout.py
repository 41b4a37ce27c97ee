"""Attention rollout: how much each patch of an image reaches the answer of a transformer, through all of its layers."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.nn import Attention
from wonderland.understand.hooks import evaluating
from wonderland.understand.looking import HeatMaps


def attention_weights(model: nn.Module, x: Tensor) -> list[Tensor]:
    """The attention weights (b, heads, t, t) of each `nn.Attention` in a model, in the order in which they were used.

    >>> from wonderland.models import ViT
    >>> net = ViT(3, height=16, width=16, patch=8, dim=8, depth=2, heads=2)
    >>> [tuple(weights.shape) for weights in attention_weights(net, torch.zeros(1, 3, 16, 16))]
    [(1, 2, 5, 5), (1, 2, 5, 5)]
    """
    read: list[tuple[Any, Tensor]] = []
    hooks = [
        module.register_forward_pre_hook(lambda module, inputs: read.append((module, inputs[0].detach())))
        for module in model.modules()
        if isinstance(module, Attention)
    ]
    try:
        with torch.no_grad(), evaluating(model):
            model(x)
            return [module.maps(tokens) for module, tokens in read]
    finally:
        for hook in hooks:
            hook.remove()


def attention_rollout(model: Any, x: Tensor) -> HeatMaps:
    r"""The attention of all layers multiplied, each averaged over its heads and half of it the shortcut beside it.

    .. math:: R = \prod_l \tfrac{1}{2} (\bar A_l + I)

    The map is the row of the class token over the patches, or the mean of all rows for a network without one, enlarged to the image.
    It says where information could come from, not which class it speaks for. For `models.ViT` and others whose patches are tokens.

    Shapes: x (b, c, h, w) -> values (b, h, w). Paper: Abnar and Zuidema, 2020.

    >>> from wonderland.models import ViT
    >>> net = ViT(3, height=16, width=16, patch=4, dim=8, depth=2, heads=2)
    >>> attention_rollout(net, torch.rand(2, 3, 16, 16)).values.shape
    torch.Size([2, 16, 16])
    """
    patches = getattr(model, "patches", None)
    layers = attention_weights(model, x) if patches is not None and hasattr(patches, "grid") else []
    if not layers:
        raise WonderlandError("Attention rollout is for a transformer whose tokens are patches, such as models.ViT.")
    rollout: Any = None
    for weights in layers:
        mean = weights.mean(1)
        step = 0.5 * (mean + torch.eye(mean.shape[-1], dtype=mean.dtype))
        rollout = step if rollout is None else step @ rollout
    grid = patches.grid(*x.shape[2:])  # pyright: ignore[reportOptionalMemberAccess]
    own = rollout.shape[-1] - grid[0] * grid[1]  # class token and registers come first
    row = rollout[:, 0] if getattr(model, "token", None) is not None else rollout[:, own:].mean(1)
    maps = row[:, own:].unflatten(1, grid)[:, None]
    return HeatMaps(F.interpolate(maps, x.shape[2:], mode="bilinear", align_corners=False)[:, 0], x)
