"""Huffman's tree: frequent words are near the root, so that the way to a word is short on average."""

import heapq
from typing import NamedTuple

import torch
from torch import Tensor

from wonderland.core import WonderlandError


class Huffman(NamedTuple):
    """The way from the root to each word: inner nodes (vocab, longest) and turns, 1 for the left child, -1 for the right.

    Turns are 0 after the end of a way, where the node is 0 too. Inner nodes are 0 to vocab - 2, the root the last.
    """

    nodes: Tensor
    turns: Tensor


def huffman(counts: Tensor) -> Huffman:
    """The tree that makes the mean length of a way, weighted by `counts` (vocab,), as short as it can be.

    Paper: Huffman, 1952; in word2vec: Mikolov et al., 2013. Book: D2L 15.2.

    >>> huffman(torch.tensor([5, 2, 1])).turns
    tensor([[-1,  0],
            [ 1, -1],
            [ 1,  1]])
    """
    if counts.dim() != 1 or len(counts) < 2 or (counts < 0).any():
        raise WonderlandError("A Huffman tree takes the counts of at least two words, none of them negative.")
    vocab = len(counts)
    # Among equal counts the older node goes first, so that the tree is the same each time.
    heap = [(count, word) for word, count in enumerate(counts.tolist())]
    heapq.heapify(heap)
    above: list[tuple[int, int]] = [(0, 0)] * (2 * vocab - 1)
    for new in range(vocab, 2 * vocab - 1):
        (small, left), (large, right) = heapq.heappop(heap), heapq.heappop(heap)
        above[left], above[right] = (new, 1), (new, -1)
        heapq.heappush(heap, (small + large, new))
    ways = []
    for word in range(vocab):
        way, at = [], word
        while at != 2 * vocab - 2:
            at, turn = above[at]
            way.append((at - vocab, turn))
        ways.append(way[::-1])
    longest = max(map(len, ways))
    nodes, turns = (torch.zeros(vocab, longest, dtype=torch.int64) for _ in range(2))
    for word, way in enumerate(ways):
        for step, (node, turn) in enumerate(way):
            nodes[word, step], turns[word, step] = node, turn
    return Huffman(nodes, turns)
