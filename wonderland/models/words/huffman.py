"""Huffman trees for hierarchical softmax: frequent words are near the root, so paths are short on average."""

import heapq
from typing import NamedTuple

import torch
from torch import Tensor

from wonderland.core import WonderlandError


class Huffman(NamedTuple):
    """The path from the root to each word: inner nodes (vocab, longest), and directions, 1 for the left child, -1 for the right.

    Both are 0 after the end of a path. Inner nodes are numbered 0 to vocab - 2; the root is the last.
    """

    nodes: Tensor
    directions: Tensor


def huffman(counts: Tensor) -> Huffman:
    """The tree with the shortest mean path, weighted by `counts` (vocab,).

    Paper: Huffman, 1952; in word2vec: Mikolov et al., 2013. Book: D2L 15.2.

    >>> huffman(torch.tensor([5, 2, 1])).directions
    tensor([[-1,  0],
            [ 1, -1],
            [ 1,  1]])
    """
    if counts.dim() != 1 or len(counts) < 2 or (counts < 0).any():
        raise WonderlandError("A Huffman tree takes the counts of at least two words, none of them negative.")
    vocab = len(counts)
    # Among equal counts the older node comes first, so that the tree is deterministic.
    heap = [(count, word) for word, count in enumerate(counts.tolist())]
    heapq.heapify(heap)
    parents: list[tuple[int, int]] = [(0, 0)] * (2 * vocab - 1)
    for new in range(vocab, 2 * vocab - 1):
        (small, left), (large, right) = heapq.heappop(heap), heapq.heappop(heap)
        parents[left], parents[right] = (new, 1), (new, -1)
        heapq.heappush(heap, (small + large, new))
    paths = []
    for word in range(vocab):
        path, node = [], word
        while node != 2 * vocab - 2:
            node, direction = parents[node]
            path.append((node - vocab, direction))
        paths.append(path[::-1])
    longest = max(map(len, paths))
    nodes, directions = (torch.zeros(vocab, longest, dtype=torch.int64) for _ in range(2))
    for word, path in enumerate(paths):
        for step, (node, direction) in enumerate(path):
            nodes[word, step], directions[word, step] = node, direction
    return Huffman(nodes, directions)
