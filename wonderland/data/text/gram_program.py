"""Features of texts as inputs of an exported model: their numbers, and the weight of each."""

from typing import Any

import numpy as np
import torch
from safetensors.torch import save

from wonderland.data.ports import Feed, Port

FEATURE_PORTS = (
    Port("features", "int64", ("rows", "features"), about="numbers of the features of features.safetensors, from 1; 0 for none"),
    Port("weights", "float", ("rows", "features"), about="the weight of each feature"),
)  # fmt: skip


def feature_feed(sparse: Any) -> Feed:
    """The arrays of encoded texts (`Grams.encode`), filled up with 0."""
    lengths = np.diff(sparse.starts)
    place = np.arange(lengths.max(initial=1))[None] < lengths[:, None]
    ids, weights = np.zeros(place.shape, np.int64), np.zeros(place.shape, np.float32)
    ids[place], weights[place] = sparse.ids + 1, sparse.values
    return {"features": ids, "weights": weights}


def feature_file(grams: Any) -> bytes:
    """features.safetensors: the hash of each feature and its inverse document frequency."""
    tensors: dict[str, torch.Tensor] = grams.tensors()
    return save(tensors, {"pieces": str(grams.pieces).lower()})
