"""Parameter groups: what weight decay should touch, and what it should spare."""

from typing import Any

from torch import nn

NORMS = (nn.LayerNorm, nn.GroupNorm, nn.modules.batchnorm._NormBase, nn.RMSNorm)


def groups(model: nn.Module, *, weight_decay: float) -> list[dict[str, Any]]:
    """Two groups for an optimizer: weights that decay; biases, norms and embeddings that do not.

    A module may name further parameters to spare in an attribute `no_decay`, a set of their names.

    >>> model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    >>> [len(group["params"]) for group in groups(model, weight_decay=0.1)]
    [1, 3]
    """
    decayed, spared = [], []
    for module in model.modules():
        named = getattr(module, "no_decay", frozenset())
        whole = isinstance(module, (*NORMS, nn.Embedding))
        for name, parameter in module.named_parameters(recurse=False):
            if parameter.requires_grad:
                keep = whole or name == "bias" or name in named
                (spared if keep else decayed).append(parameter)
    found = [{"params": decayed, "weight_decay": weight_decay}, {"params": spared, "weight_decay": 0.0}]
    return [group for group in found if group["params"]]
