"""Encoded texts whose rows hold sparse features, beside tokens or alone; the first batch of a training holds them all."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core.batch import Batch
from wonderland.data.batches import Batches
from wonderland.data.examples import RowExamples
from wonderland.data.text.grams import SparseTexts
from wonderland.models.text_linear import pack_features
from wonderland.solvers.sparse_linear import SparseMatrix


@dataclass(frozen=True)
class AllTexts:
    """The features and targets of all training texts, for a linear model that is fitted to them at once."""

    features: SparseTexts
    width: int
    y: Tensor
    tokens: Tensor | None = None

    def __len__(self) -> int:
        return len(self.y)

    def to(self, device: Any) -> "AllTexts":
        """The same: the linear model is fitted on the processor."""
        return self

    def split(self, pieces: int) -> list["AllTexts"]:
        """Nothing is cut: the linear model reads all of it."""
        return [self] * pieces

    def tensors(self) -> list[Tensor]:
        """The targets."""
        return [self.y]

    def matrix(self, rows: np.ndarray | None = None) -> SparseMatrix:
        """The features of some rows as a matrix."""
        chosen = self.features if rows is None else self.features.rows(rows)
        starts, ids, values = chosen.starts, chosen.ids.astype(np.int64), chosen.values
        return SparseMatrix(torch.from_numpy(starts), torch.from_numpy(ids), torch.from_numpy(values), self.width)


class TextExamples(RowExamples):
    """Rows of packed features, after tokens (n, length) where there are any."""

    def __init__(self, tokens: Tensor | None, features: SparseTexts, width: int, y: np.ndarray | None):
        super().__init__(self.packed, y, len(features))
        self.tokens, self.features, self.width = tokens, features, width

    def packed(self, rows: np.ndarray) -> Tensor:
        """Some rows as one tensor, filled up with 0: (b, length + k)."""
        chosen = self.features.rows(rows)
        lengths = np.diff(chosen.starts)
        width = int(lengths.max(initial=1))
        place = np.arange(width)[None] < lengths[:, None]
        packed = torch.zeros(len(lengths), width, dtype=torch.int64)
        packed[torch.from_numpy(place)] = pack_features(
            torch.from_numpy(chosen.ids.astype(np.int64)), torch.from_numpy(chosen.values)
        )
        return packed if self.tokens is None else torch.cat([self.tokens[torch.as_tensor(rows)], packed], 1)

    def shuffled(
        self,
        part: Any,
        *,
        size: int,
        seed: int,
        rows: Sequence[np.ndarray] | None = None,
        augment: Any = None,
        workers: int = 0,
    ) -> Batches:
        """Batches of tokens and features; the members of the model share them. The first one also holds all training texts."""
        assert self.targets is not None
        part = np.asarray(part)
        chosen = torch.as_tensor(part)
        tokens = None if self.tokens is None else self.tokens[chosen]
        whole = AllTexts(self.features.rows(part), self.width, self.targets[chosen], tokens)
        return WholeFirst(
            self.x, self.targets, whole, size=size, seed=seed, rows=part, augment=augment, workers=workers
        )


class WholeFirst(Batches):
    """Batches of which the first, of step 0, has all training texts in the field `all` as well."""

    def __init__(self, x: Any, y: Tensor, whole: AllTexts, **options: Any):
        super().__init__(x, y, **options)
        self.whole = whole

    def stream(self, first: int, stop: int) -> Generator[Batch, None, None]:
        for step, batch in enumerate(super().stream(first, stop), first):
            yield replace(batch, fields={**batch.fields, "all": self.whole}) if step == 0 else batch
