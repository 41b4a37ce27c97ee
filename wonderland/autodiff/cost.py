"""What a step costs: floating point operations and bytes moved."""

import math
from typing import Any

from torch.utils.flop_counter import flop_registry

from wonderland.autodiff.node import Step, Value, over

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

# Fused attention: which input is the query, and operations for each query, key and feature.
_ATTENTION = {
    "_scaled_dot_product_flash_attention_for_cpu": (0, 4),
    "_scaled_dot_product_flash_attention_for_cpu_backward": (1, 10),
}


def packet(target: Any) -> str:
    """The name of an operator without its overload; "" for what is not ATen's."""
    found = getattr(target, "overloadpacket", None)
    return found.__name__ if found is not None and target.namespace == "aten" else ""


def is_view(step: Step) -> bool:
    """Whether a step gives another look at memory that is there already: as was seen when it ran, else by its name."""
    return packet(step.target) in VIEWS if step.looks is None else step.looks


def flops(step: Step) -> int:
    """Floating point operations: two for each product in a matrix product or convolution, else one a number computed."""
    name = packet(step.target)
    if name in _FREE:
        return 0
    if name in _ATTENTION:
        (*lead, t, width), source = (
            step.inputs[_ATTENTION[name][0]].shape,
            step.inputs[_ATTENTION[name][0] + 1].shape[-2],
        )
        return _ATTENTION[name][1] * math.prod(lead) * t * source * width
    formula = flop_registry.get(getattr(step.target, "overloadpacket", None))
    if formula is not None:
        shapes = [over(entry, Value, lambda value: value.shape) for entry in (step.args, step.kwargs, step.result)]
        try:
            return int(formula(*shapes[0], **shapes[1], out_val=shapes[2]))
        except (TypeError, ValueError, KeyError, IndexError, AttributeError):
            pass
    return max([value.numel for value in step.inputs + step.outputs], default=0) if step.outputs else 0


def moved(step: Step) -> int:
    """Bytes read and written."""
    return 0 if packet(step.target) in _FREE else sum(value.bytes for value in step.inputs + step.outputs)
