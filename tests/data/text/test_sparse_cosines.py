"""Cosines of sparse features equal those of dense ones."""

import numpy as np
import torch

from wonderland.data.text.grams import Grams, SparseTexts
from wonderland.data.text.sparse_cosines import sparse_cosines


def dense(texts: SparseTexts, features: int) -> torch.Tensor:
    table = torch.zeros(len(texts), features)
    for row in range(len(texts)):
        places = slice(texts.starts[row], texts.starts[row + 1])
        table[row, torch.from_numpy(texts.ids[places].astype(np.int64))] = torch.from_numpy(texts.values[places])
    return torch.nn.functional.normalize(table, dim=1)


def test_they_equal_dense_ones_in_blocks():
    words = [f"w{i % 37} w{i % 11} v{i}" for i in range(300)]
    grams = Grams.fit([[text] for text in words])
    first, second = grams.encode([[text] for text in [*words[:9], "unknown"]]), grams.encode([[text] for text in words])
    cosines = sparse_cosines(first, second, len(grams))
    torch.testing.assert_close(cosines, dense(first, len(grams)) @ dense(second, len(grams)).T)
    assert not cosines[9].any()


def test_no_features_at_all():
    empty = SparseTexts(np.zeros(3, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    assert sparse_cosines(empty, empty, 5).tolist() == [[0.0, 0.0], [0.0, 0.0]]
