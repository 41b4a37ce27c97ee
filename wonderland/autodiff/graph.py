"""A trace as a graph of torch.fx, which torch.compile turns into machine code."""

from typing import Any

import torch
from torch import fx

from wonderland.autodiff.node import Value, over
from wonderland.autodiff.trace import Trace


def graph(trace: Trace) -> fx.GraphModule:
    """The same steps as nodes: inputs as placeholders, constants as buffers, outputs as a flat tuple, then what buffers are left with."""
    made, holder = fx.Graph(), torch.nn.Module()
    nodes: dict[int, Any] = {}
    for value in trace.inputs:
        nodes[id(value)] = made.placeholder(trace.names[id(value)])
    for value, tensor in trace.constants:
        name = trace.names[id(value)]
        holder.register_buffer(name, tensor, persistent=False)
        nodes[id(value)] = made.get_attr(name)

    def known(tree: Any) -> Any:
        return over(tree, Value, lambda value: nodes[id(value)])

    for step in trace.steps:
        node = made.call_function(step.target, known(step.args), known(step.kwargs))
        if isinstance(step.result, Value):
            nodes[id(step.result)] = node
            continue
        for number, value in enumerate(step.result or ()):
            if isinstance(value, Value):
                nodes[id(value)] = made.call_function(_pick, (node, number))
    made.output(tuple(known(value) for value in trace.kept))
    return fx.GraphModule(holder, made)


def _pick(several: Any, number: int) -> Any:
    return several[number]
