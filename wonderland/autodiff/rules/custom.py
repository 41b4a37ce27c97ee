"""Rules of operators registered with torch.library: their registered backward pass."""

from typing import Any

from torch._library.custom_ops import OPDEFS

from wonderland.autodiff.rules.table import Rule


def custom_rule(target: Any) -> Rule | None:
    """The rule of a custom operator with a registered backward pass; None if it has none."""
    definition = OPDEFS.get(f"{target.namespace}::{target._opname}")
    if definition is None or definition._backward_fn is None:
        return None

    def reverse(needs: Any, g: Any, n: Any) -> Any:
        from wonderland.autodiff.functions import Context

        cotangents = g if isinstance(g, tuple | list) else (g,)
        outputs = n.y if isinstance(n.y, tuple | list) else (n.y,)
        context = Context(tuple(name in needs for name in n.names))
        if definition._setup_context_fn is not None:
            definition._setup_context_fn(ctx=context, inputs=n.args, output=n.y)
        cotangents = [
            cotangent if cotangent is not None or not context.materialize_grads else y.new_zeros(y.shape)
            for cotangent, y in zip(cotangents, outputs, strict=True)
        ]
        gradients = definition._backward_fn(context, *cotangents)
        gradients = gradients if isinstance(gradients, tuple | list) else (gradients,)
        return dict(zip(n.names, gradients, strict=True))

    return Rule(joint=reverse)
