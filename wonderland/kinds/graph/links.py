"""Pairs of nodes: those that no edge joins, drawn at random, and what the neighbourhoods of two nodes say of their link."""

import numpy as np
import torch
from torch import Tensor

from wonderland.core import mix
from wonderland.core.graph import Graph
from wonderland.core.pattern import Pattern, ranges

ENTRIES = 1 << 22  # neighbours that are looked at in one block
ROUNDS = 50
PAIR_FEATURES = 5  # numbers that `pair_features` gives for a pair


def missing_pairs(joined: np.ndarray, nodes: int, directed: bool) -> np.ndarray:
    """As many pairs without an edge as there are with one (joined (2, k)), or fewer where there are not as many: (pairs, 2).

    Without direction a pair counts once, whichever end comes first. The draw depends on the sizes alone.
    """
    wanted = joined.shape[1]
    draw = np.random.Generator(np.random.Philox(mix(0, wanted)))
    taken, chosen = np.unique(_keys(joined, nodes, directed)), np.zeros(0, np.int64)
    for _ in range(ROUNDS):
        pairs = draw.integers(0, nodes, (2, 2 * wanted))
        keys = _keys(pairs[:, pairs[0] != pairs[1]], nodes, directed)
        keys = keys[np.sort(np.unique(keys, return_index=True)[1])]
        fresh = keys[~_within(keys, taken) & ~np.isin(keys, chosen)]
        chosen = np.concatenate([chosen, fresh[: wanted - len(chosen)]])
        if len(chosen) == wanted:
            break
    return np.stack([chosen // nodes, chosen % nodes], 1)


def _keys(pairs: np.ndarray, nodes: int, directed: bool) -> np.ndarray:
    a, b = pairs if directed else (pairs.min(0), pairs.max(0))
    return a * nodes + b


def _within(keys: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Which keys are among sorted ones."""
    if not len(known):
        return np.zeros(len(keys), bool)
    place = np.searchsorted(known, keys).clip(max=len(known) - 1)
    return known[place] == keys


def pair_features(graph: Graph, pairs: np.ndarray) -> Tensor:
    r"""What the neighbourhoods of two nodes say of their link: (pairs, 5).

    Common neighbours, :math:`\sum 1 / \log d` over them (Adamic-Adar), :math:`\sum 1 / d` (resource allocation), the share of common
    neighbours among all (Jaccard), and the logarithm of the product of degrees. The pair's own edge does not count. Time grows with
    the sum of the smaller degrees of the pairs.
    """
    pattern = Graph.undirected(graph.edges, graph.nodes).without_duplicates().without_loops().pattern
    keys = pattern.row * graph.nodes + pattern.column
    degree = pattern.count
    given = torch.as_tensor(pairs)
    swap = degree[given[:, 0]] > degree[given[:, 1]]
    few, many = torch.where(swap, given[:, 1], given[:, 0]), torch.where(swap, given[:, 0], given[:, 1])
    looked = degree[few].cumsum(0)
    overlap = torch.zeros(len(given), 3)
    start = 0
    while start < len(given):
        before = int(looked[start - 1]) if start else 0
        stop = max(start + 1, int(torch.searchsorted(looked, before + ENTRIES, right=True)))
        overlap[start:stop] = _common(pattern, keys, degree, few[start:stop], many[start:stop])
        start = stop
    own = _among(keys, few * graph.nodes + many).float()
    da, db = degree[given[:, 0]] - own, degree[given[:, 1]] - own
    union = (da + db - overlap[:, 0]).clamp(min=1)
    columns = [
        overlap[:, 0].log1p(),
        overlap[:, 1],
        overlap[:, 2],
        overlap[:, 0] / union,
        (da + 1).log() + (db + 1).log(),
    ]
    return torch.stack(columns, 1)


def _common(pattern: Pattern, keys: Tensor, degree: Tensor, few: Tensor, many: Tensor) -> Tensor:
    """Of each pair: common neighbours, and the sums of 1 / log d and 1 / d over them (b, 3)."""
    count = degree[few]
    near = pattern.column[ranges(pattern.start[few], count)]
    pair = torch.repeat_interleave(torch.arange(len(few)), count)
    shared = _among(keys, many[pair] * pattern.rows + near)
    near, pair = near[shared], pair[shared]
    d = degree[near].float()
    values = torch.stack([torch.ones(len(near)), 1 / d.clamp(min=2).log(), 1 / d.clamp(min=1)], 1)
    return torch.zeros(len(few), 3).index_add_(0, pair, values)


def _among(keys: Tensor, asked: Tensor) -> Tensor:
    """Which keys are among sorted ones."""
    if not len(keys):
        return torch.zeros(len(asked), dtype=torch.bool)
    return keys[torch.searchsorted(keys, asked).clamp(max=len(keys) - 1)] == asked
