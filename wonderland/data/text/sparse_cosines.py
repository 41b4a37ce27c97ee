"""Cosines of sparse features: how alike texts are by the words that they share."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.data.text.grams import SparseTexts

DENSE = 1 << 24  # numbers of the second side that are dense at a time


def sparse_cosines(first: SparseTexts, second: SparseTexts, features: int) -> Tensor:
    r"""The cosine of each text of one side with each of the other.

    .. math:: C_{ij} = \frac{\sum_f a_{if} b_{jf}}{\lVert a_i \rVert \lVert b_j \rVert}

    A text without features has cosine 0. The second side is made dense in blocks of texts.
    Shapes: n and m texts -> (n, m).
    """
    ids, values = torch.from_numpy(first.ids.astype(np.int64)), torch.from_numpy(_unit_values(first))
    starts = torch.from_numpy(first.starts[:-1].astype(np.int64))
    cosines = torch.zeros(len(first), len(second))
    step = max(1, DENSE // max(1, features))
    for begin in range(0, len(second) if len(ids) else 0, step):
        block = second.rows(np.arange(begin, min(begin + step, len(second))))
        table = torch.zeros(features, len(block))
        column = np.repeat(np.arange(len(block)), np.diff(block.starts))
        table[torch.from_numpy(block.ids.astype(np.int64)), torch.from_numpy(column)] = torch.from_numpy(
            _unit_values(block)
        )
        cosines[:, begin : begin + len(block)] = F.embedding_bag(
            ids, table, starts, mode="sum", per_sample_weights=values
        )
    return cosines


def _unit_values(texts: SparseTexts) -> np.ndarray:
    """The values of each text divided by their norm."""
    row = np.repeat(np.arange(len(texts)), np.diff(texts.starts))
    norms = np.sqrt(np.bincount(row, texts.values.astype(np.float64) ** 2, minlength=len(texts)))
    return (texts.values / np.maximum(norms[row], 1e-12)).astype(np.float32)
