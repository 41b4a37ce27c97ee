"""Batch: what one step of training is given, as named fields that are cut and moved as one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from wonderland.core.errors import WonderlandError, nearest


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths: `values` (n, ...) row after row, and the length of each row in `lengths` (b,).

    Boxes of images, words of texts and points of clouds are ragged rows.

    >>> rows = Ragged(torch.arange(5), torch.tensor([2, 3]))
    >>> [piece.values.tolist() for piece in rows.split(2)], rows.padded().tolist()
    ([[0, 1], [2, 3, 4]], [[0, 1, 0], [2, 3, 4]])
    """

    values: Tensor
    lengths: Tensor

    def __post_init__(self):
        if int(self.lengths.sum()) != len(self.values):
            raise WonderlandError(
                f"Ragged rows of {int(self.lengths.sum())} values in all cannot be cut from {len(self.values)}."
            )

    def __len__(self) -> int:
        return len(self.lengths)

    def split(self, pieces: int) -> list["Ragged"]:
        """Whole rows in so many pieces."""
        rows = self.values.split(self.lengths.tolist())
        cuts = self.lengths.tensor_split(pieces)
        parts, first = [], 0
        for lengths in cuts:
            kept = rows[first : first + len(lengths)]
            parts.append(Ragged(torch.cat(kept) if kept else self.values[:0], lengths))
            first += len(lengths)
        return parts

    def to(self, device: Any) -> "Ragged":
        """The same rows on a device."""
        return Ragged(self.values.to(device), self.lengths.to(device))

    def padded(self, fill: float = 0.0) -> Tensor:
        """(b, longest, ...), filled up at the end of each row."""
        return torch.nn.utils.rnn.pad_sequence(
            list(self.values.split(self.lengths.tolist())), batch_first=True, padding_value=fill
        )


@dataclass(frozen=True)
class Batch:
    """Named fields: tensors, ragged rows, or batches within the batch.

    `axis` is the axis of tensors that counts examples: 1 where axis 0 counts the members of an ensemble. A batch that
    cannot be cut, such as one large graph, has axis None and is its own only piece.

    >>> batch = Batch({"x": torch.zeros(5, 3), "y": torch.arange(5)})
    >>> [len(piece) for piece in batch.split(2)], batch["y"].tolist()
    ([3, 2], [0, 1, 2, 3, 4])
    """

    fields: Mapping[str, Any]
    axis: int | None = 0

    @staticmethod
    def of(value: Any) -> "Batch":
        """A batch from a batch, a pair (x, y), or a mapping of fields."""
        if isinstance(value, Batch):
            return value
        if isinstance(value, tuple | list) and len(value) == 2:
            return Batch({"x": value[0], "y": value[1]})
        if isinstance(value, Mapping):
            return Batch(value)
        raise WonderlandError(f"A batch is a pair (x, y) or a Batch of named fields, not {type(value).__name__}.")

    def __getitem__(self, name: str) -> Any:
        try:
            return self.fields[name]
        except KeyError:
            known = ", ".join(self.fields)
            raise WonderlandError(
                f"The batch has no field {name!r}.{nearest(name, self.fields)} It has {known}."
            ) from None

    def __iter__(self) -> Iterator[Any]:
        """The values in the order of the fields, so that `x, y = batch` works."""
        return iter(self.fields.values())

    def __contains__(self, name: object) -> bool:
        return name in self.fields

    def __len__(self) -> int:
        """How many examples there are; 1 for a batch that cannot be cut."""
        return 1 if self.axis is None else _count(next(iter(self.fields.values())), self.axis)

    def split(self, pieces: int) -> list["Batch"]:
        """At most so many pieces of nearly the same number of examples, none of them empty."""
        if self.axis is None or pieces == 1:
            return [self]
        pieces = min(pieces, len(self))
        cut = {name: _cut(value, pieces, self.axis) for name, value in self.fields.items()}
        return [replace(self, fields={name: parts[i] for name, parts in cut.items()}) for i in range(pieces)]

    def to(self, device: Any) -> "Batch":
        """All fields on a device."""
        return replace(self, fields={name: value.to(device) for name, value in self.fields.items()})

    def tensors(self) -> Iterator[Tensor]:
        """Every tensor in it."""
        for value in self.fields.values():
            if hasattr(value, "tensors"):
                yield from value.tensors()
            else:
                yield from (value.values, value.lengths) if isinstance(value, Ragged) else (value,)


def _count(value: Any, axis: int) -> int:
    return value.shape[axis] if isinstance(value, Tensor) else len(value)


def _cut(value: Any, pieces: int, axis: int) -> list[Any]:
    return list(value.tensor_split(pieces, axis)) if isinstance(value, Tensor) else value.split(pieces)
