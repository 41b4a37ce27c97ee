"""Ports: the inputs of an exported model, and the preprocessing behind them as a torch module."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

TYPES = {
    "float": torch.float32,
    "double": torch.float64,
    "int64": torch.int64,
    "uint8": torch.uint8,
    "string": torch.int64,
}


@dataclass(frozen=True)
class Port:
    """One input of an exported model.

    `type` is "float", "double", "int64", "uint8" or "string"; `shape` has a number for a fixed length and a name for a free one.
    Strings are looked up in `codes` before the torch program, which reads int64: 0 for a text that is not in the table.
    """

    name: str
    type: str
    shape: tuple[str | int, ...] = ("rows",)
    codes: Mapping[str, int] = field(default_factory=dict)
    about: str = ""

    def example(self, sizes: Mapping[str, int]) -> Tensor:
        """Zeros of this type; `sizes` has the free lengths."""
        shape = [sizes[size] if isinstance(size, str) else size for size in self.shape]
        return torch.zeros(shape, dtype=TYPES[self.type])


class Preprocessing(nn.Module):
    """From the tensors of `ports` to the arguments of the model, and what else the answers read."""

    model_inputs: int | None = None  # how many of them the model takes, None for all

    def __init__(self, ports: tuple[Port, ...]):
        super().__init__()
        self.ports = ports

    def forward(self, *values: Tensor) -> Any:
        """The input of the model, or a tuple of inputs."""
        raise NotImplementedError


class Passed(Preprocessing):
    """A preprocessing without computation: the input of the model is the one port."""

    def forward(self, *values: Tensor) -> Any:
        return values[0] if len(values) == 1 else values


ODD_ROWS = 100
BATCHES = (1, 7, ODD_ROWS)
Feed = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Trial:
    """A source for `predict`, and the same as inputs of an exported model: in several divisions into batches, each whole."""

    source: Any
    divisions: Sequence[Sequence[Feed]]

    @staticmethod
    def of_rows(source: Any, feed: Feed, sizes: Sequence[int] = BATCHES) -> "Trial":
        """Arrays of rows, in batches of these sizes."""
        count = len(next(iter(feed.values())))
        return Trial(source, [[part(feed, i, i + size) for i in range(0, count, size)] for size in sizes])


def part(feed: Feed, first: int, last: int) -> Feed:
    """Some rows of arrays.

    >>> part({"x": np.arange(5)}, 1, 3)
    {'x': array([1, 2])}
    """
    return {name: values[first:last] for name, values in feed.items()}
