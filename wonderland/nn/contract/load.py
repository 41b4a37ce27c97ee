"""Loading published weights into our modules, by a table of names."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError


def load_published(module: nn.Module, names: Mapping[str, str], weights: Mapping[str, Tensor]) -> None:
    """Copy weights into a module; `names` gives our name for each published one. Axes of length 1 do not matter."""
    kind = type(module).__name__
    if extra := sorted(set(weights) - set(names)):
        raise WonderlandError(f"The published weights have {extra[0]!r}, for which this {kind} has no place.")
    pairs = []
    for published, ours in names.items():
        if published not in weights:
            raise WonderlandError(f"The published weights have no {published!r}, which {kind} needs.")
        given, own = weights[published], module.get_parameter(ours)
        if [size for size in given.shape if size != 1] != [size for size in own.shape if size != 1]:
            raise WonderlandError(
                f"{published} has shape {tuple(given.shape)} in the published weights and {tuple(own.shape)} in this {kind}: "
                "build it with the same sizes."
            )
        pairs.append((own, given))
    with torch.no_grad():
        for own, given in pairs:
            own.copy_(given.reshape(own.shape))
