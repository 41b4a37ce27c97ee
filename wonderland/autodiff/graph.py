"""A trace as a torch.fx graph, for torch.compile."""

from typing import Any

import torch
from torch import fx

from wonderland.autodiff.node import Value, map_tree
from wonderland.autodiff.trace import Trace


def graph(trace: Trace) -> fx.GraphModule:
    """The steps as fx nodes: inputs are placeholders, constants are buffers.

    The output is a flat tuple: the outputs of the trace, then the new values of the module buffers it writes.
    """
    fx_graph, root = fx.Graph(), torch.nn.Module()
    nodes: dict[int, Any] = {}
    for value in trace.inputs:
        nodes[id(value)] = fx_graph.placeholder(trace.names[id(value)])
    for value, tensor in trace.constants:
        name = trace.names[id(value)]
        root.register_buffer(name, tensor, persistent=False)
        nodes[id(value)] = fx_graph.get_attr(name)

    def to_nodes(tree: Any) -> Any:
        return map_tree(tree, Value, lambda value: nodes[id(value)])

    for step in trace.steps:
        node = fx_graph.call_function(step.target, to_nodes(step.args), to_nodes(step.kwargs))
        if isinstance(step.result, Value):
            nodes[id(step.result)] = node
            continue
        for number, value in enumerate(step.result or ()):
            if isinstance(value, Value):
                nodes[id(value)] = fx_graph.call_function(_item, (node, number))
    fx_graph.output(tuple(to_nodes(value) for value in trace.kept))
    return fx.GraphModule(root, fx_graph)


def _item(outputs: Any, number: int) -> Any:
    return outputs[number]
