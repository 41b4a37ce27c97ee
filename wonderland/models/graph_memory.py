"""How much memory a training step on a graph takes at most, from the sizes alone."""

from collections.abc import Sequence
from itertools import pairwise

OF_EDGE = 120  # bytes: the edges, with loops, sorted by targets and by sources, and their weights
OF_HEAD = 16  # bytes of an edge and head: shares of attention, after dropout, and their gradients
OF_MESSAGE = 5  # vectors of an edge: both ends, their sum, what the activation gives, and a gradient
OF_NODE = 5  # vectors of a node and width: before and after a layer, dropout, activation, gradients


def step_bytes(nodes: int, edges: int, widths: Sequence[int], *, heads: int = 0, messages: bool = False) -> int:
    r"""A bound on the bytes of a training step on a whole graph in float32, what is derived from the graph included.

    .. math::
        m\,(120 + 16\,h + 20\,w\,[\text{messages}]) + 20\,n \sum_k (w_k + w_{k+1})

    for m edges, n nodes, h heads of attention, layers of widths w_0, w_1, ..., w their largest; `messages` for layers that make a
    vector for each edge (GATv2, GINE, EdgeAttention, MessagePassing). `python -m bench.graphs --memory` measures it.

    >>> step_bytes(100_000, 1_000_000, [64, 64, 16]) >> 20
    511
    """
    each = OF_EDGE + OF_HEAD * heads + (4 * OF_MESSAGE * max(widths) if messages else 0)
    return edges * each + 4 * OF_NODE * nodes * sum(a + b for a, b in pairwise(widths))
