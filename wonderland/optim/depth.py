"""Parameter groups by depth: smaller learning rates for the blocks near the input, which change least from task to task."""

import re
from typing import Any

from torch import nn

from wonderland.core import WonderlandError
from wonderland.optim.groups import groups

_BLOCK = re.compile(r"(?:^|\.)(?:blocks|stages|layers)\.(\d+)(?:\.(?:blocks\.)?(\d+))?(?:\.|$)")


def groups_by_depth(model: nn.Module, *, decay: float, weight_decay: float | None = None) -> list[dict[str, Any]]:
    r"""Groups for an optimizer, each with the `depth` of its block and a factor of the learning rate.

    .. math:: \eta_d = \eta \cdot \gamma^{D - d}

    Depth 0 is what comes before the first block, D the head and what comes after the last block; :math:`\gamma` is `decay`. The
    factor stands in `lr_factor`, and `weight_decay` is treated as in `groups`. Paper: Howard and Ruder, 2018.

    >>> from wonderland import models
    >>> made = groups_by_depth(models.ViT(3, 3, 8, 8, patch=4, dim=8, depth=2, heads=2), decay=0.5)
    >>> sorted({(group["depth"], group["lr_factor"]) for group in made})
    [(0, 0.125), (1, 0.25), (2, 0.5), (3, 1.0)]
    """
    if isinstance(decay, bool) or not isinstance(decay, int | float) or not 0 < decay <= 1:
        raise WonderlandError(f"groups_by_depth: decay is a number above 0 and at most 1, not {decay!r}.")
    depth, last = depths(model)
    by_parameter = {id(parameter): depth[name] for name, parameter in model.named_parameters()}
    by_depth = []
    for group in groups(model, weight_decay=weight_decay):
        for place in range(last + 1):
            own = [parameter for parameter in group["params"] if by_parameter[id(parameter)] == place]
            if own:
                by_depth.append({**group, "params": own, "depth": place, "lr_factor": float(decay) ** (last - place)})
    return by_depth


def depths(model: nn.Module) -> tuple[dict[str, int], int]:
    """The depth of each parameter by its name, and that of the head."""
    names = [name for name, _ in model.named_parameters()]
    blocks = [_block(name) for name in names]
    order = {block: place + 1 for place, block in enumerate(sorted({block for block in blocks if block is not None}))}
    last = len(order) + 1
    first = next((place for place, block in enumerate(blocks) if block is not None), 0)
    depth_of = {}
    for place, (name, block) in enumerate(zip(names, blocks, strict=True)):
        outside = 0 if place < first and not name.startswith("head") else last
        depth_of[name] = outside if block is None else order[block]
    return depth_of, last


def _block(name: str) -> tuple[int, int] | None:
    match = _BLOCK.search(name)
    return None if match is None else (int(match[1]), int(match[2] or 0))
