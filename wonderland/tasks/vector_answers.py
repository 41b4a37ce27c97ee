"""Answers of an exported model that finds texts by texts: the vector of each."""

from typing import Any

from torch import Tensor, nn


class VectorAnswers(nn.Module):
    """Vectors of length 1 from features and their weights (b, k); the product of two is the cosine that `Matching` ranks by."""

    names = ("vector",)
    classes = None

    def of_model(self, model: Any, ids: Tensor, values: Tensor) -> tuple[Tensor]:
        """From numbers of features, 0 for none, and their weights."""
        return (model.pooled(ids, values),)
