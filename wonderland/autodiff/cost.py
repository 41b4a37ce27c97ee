"""The cost of a step: floating point operations and bytes moved."""

import math
from typing import Any

from torch.utils.flop_counter import flop_registry

from wonderland.autodiff.node import Step, Value, map_tree

VIEWS = frozenset(
    [
        "view",
        "_unsafe_view",
        "_reshape_alias",
        "expand",
        "permute",
        "transpose",
        "t",
        "unsqueeze",
        "squeeze",
        "slice",
        "select",
        "diagonal",
        "as_strided",
        "split",
        "split_with_sizes",
        "unbind",
        "chunk",
        "alias",
        "detach",
        "unfold",
        "view_as_real",
        "view_as_complex",
        "real",
        "imag",
        "_conj",
        "_neg_view",
        "lift_fresh",
    ]
)
_FREE = VIEWS | frozenset(["empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided"])

# Fused attention: index of the query among the inputs, and operations for each (query, key, feature).
_ATTENTION = {
    "_scaled_dot_product_flash_attention_for_cpu": (0, 4),
    "_scaled_dot_product_flash_attention_for_cpu_backward": (1, 10),
}


def packet(target: Any) -> str:
    """The name of an ATen operator without its overload ("add" for add.Tensor); "" for any other target."""
    overloads = getattr(target, "overloadpacket", None)
    return overloads.__name__ if overloads is not None and target.namespace == "aten" else ""


def is_view(step: Step) -> bool:
    """Whether a step returns a view of its input: as observed when it ran, else by the operator's name."""
    return packet(step.target) in VIEWS if step.views_input is None else step.views_input


def flops(step: Step) -> int:
    """Floating point operations: two for each multiply-add of matrix products and convolutions, else one for each element."""
    name = packet(step.target)
    if name in _FREE:
        return 0
    if name in _ATTENTION:
        query, operations = _ATTENTION[name]
        *lead, queries, width = step.inputs[query].shape
        keys = step.inputs[query + 1].shape[-2]
        return operations * math.prod(lead) * queries * keys * width
    formula = flop_registry.get(getattr(step.target, "overloadpacket", None))
    if formula is not None:
        shapes = [map_tree(entry, Value, lambda value: value.shape) for entry in (step.args, step.kwargs, step.result)]
        try:
            return int(formula(*shapes[0], **shapes[1], out_val=shapes[2]))
        except (TypeError, ValueError, KeyError, IndexError, AttributeError):
            pass
    return max([value.numel for value in step.inputs + step.outputs], default=0) if step.outputs else 0


def bytes_moved(step: Step) -> int:
    """Bytes read and written."""
    return 0 if packet(step.target) in _FREE else sum(value.bytes for value in step.inputs + step.outputs)
