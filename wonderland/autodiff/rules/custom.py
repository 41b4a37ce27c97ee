"""Operators registered with torch.library: those that bring a backward pass along are differentiated by it."""

from typing import Any

from torch._library.custom_ops import OPDEFS

from wonderland.autodiff.rules.table import Rule


def custom_rule(target: Any) -> Rule | None:
    """The rule of a custom operator with a registered backward pass; ours and anybody's."""
    found = OPDEFS.get(f"{target.namespace}::{target._opname}")
    if found is None or found._backward_fn is None:
        return None

    def reverse(needs: Any, g: Any, n: Any) -> Any:
        from wonderland.autodiff.functions import Context

        slopes = g if isinstance(g, tuple | list) else (g,)
        outputs = n.y if isinstance(n.y, tuple | list) else (n.y,)
        context = Context(tuple(name in needs for name in n.names))
        if found._setup_context_fn is not None:
            found._setup_context_fn(ctx=context, inputs=n.args, output=n.y)
        full = [
            slope if slope is not None or not context.fills else y.new_zeros(y.shape)
            for slope, y in zip(slopes, outputs, strict=True)
        ]
        slopes = found._backward_fn(context, *full)
        slopes = slopes if isinstance(slopes, tuple | list) else (slopes,)
        return dict(zip(n.names, slopes, strict=True))

    return Rule(joint=reverse)
