"""Parameter groups: what weight decay should touch, and what it should spare."""

from typing import Any

from torch import nn

from wonderland.core import WonderlandError
from wonderland.optim.limits import check

NORMS = (nn.LayerNorm, nn.GroupNorm, nn.modules.batchnorm._NormBase, nn.RMSNorm)


def groups(model: nn.Module, *, weight_decay: float | None = None) -> list[dict[str, Any]]:
    """Two groups for an optimizer: weights that decay; biases, norms and embeddings that do not.

    Without `weight_decay` the first group decays as the optimizer is told to. A module may name further parameters to spare in an attribute `no_decay`, a set of their names.

    >>> model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    >>> [len(group["params"]) for group in groups(model, weight_decay=0.1)]
    [1, 3]
    """
    if not isinstance(model, nn.Module):
        raise WonderlandError(
            f"groups takes a model, not a {type(model).__name__}: it looks at the kinds of its layers."
        )
    if weight_decay is not None:
        check("groups", {"weight_decay": weight_decay})
    decayed, spared = [], []
    for module in model.modules():
        named = getattr(module, "no_decay", frozenset())
        whole = isinstance(module, (*NORMS, nn.Embedding))
        for name, parameter in module.named_parameters(recurse=False):
            if parameter.requires_grad:
                keep = whole or name == "bias" or name in named
                (spared if keep else decayed).append(parameter)
    own = {} if weight_decay is None else {"weight_decay": weight_decay}
    found = [{"params": decayed, **own}, {"params": spared, "weight_decay": 0.0}]
    if not decayed and not spared:
        raise WonderlandError(f"groups got a {type(model).__name__}, which has nothing to learn.")
    return [group for group in found if group["params"]]
