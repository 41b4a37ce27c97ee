"""Parameter groups with and without weight decay."""

from typing import Any

from torch import nn

from wonderland.core import WonderlandError
from wonderland.optim.limits import check

NORMS = (nn.LayerNorm, nn.GroupNorm, nn.modules.batchnorm._NormBase, nn.RMSNorm)


def groups(model: nn.Module, *, weight_decay: float | None = None) -> list[dict[str, Any]]:
    """Two groups for an optimizer: weights with weight decay; biases, norms and embeddings without.

    Without `weight_decay` the first group takes the optimizer's. A module may name further parameters without decay in an
    attribute `no_decay`, a set of their names.

    >>> model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    >>> [len(group["params"]) for group in groups(model, weight_decay=0.1)]
    [1, 3]
    """
    if not isinstance(model, nn.Module):
        raise WonderlandError(
            f"groups takes a model, not a {type(model).__name__}: which weights decay depends on the types of its layers."
        )
    if weight_decay is not None:
        check("groups", {"weight_decay": weight_decay})
    decayed, not_decayed = [], []
    for module in model.modules():
        no_decay = getattr(module, "no_decay", frozenset())
        exempt_module = isinstance(module, (*NORMS, nn.Embedding))
        for name, parameter in module.named_parameters(recurse=False):
            if parameter.requires_grad:
                exempt = exempt_module or name == "bias" or name in no_decay
                (not_decayed if exempt else decayed).append(parameter)
    options = {} if weight_decay is None else {"weight_decay": weight_decay}
    both = [{"params": decayed, **options}, {"params": not_decayed, "weight_decay": 0.0}]
    if not decayed and not not_decayed:
        raise WonderlandError(f"groups got a {type(model).__name__}, which has no trainable parameters.")
    return [group for group in both if group["params"]]
