"""A language model as a second graph that continues: tokens and a state in, logits and the next state out."""

import json
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from wonderland.core import WonderlandError
from wonderland.data.ports import Port
from wonderland.ship.comparing import TOLERANCE, Runner

LENGTHS, ROWS = (5, 8), (2, 3)
TYPES = {torch.float32: "float", torch.float64: "double", torch.int64: "int64", torch.bool: "bool"}


class StepProgram(nn.Module):
    """`model.stream` with the tensors of the state as inputs and outputs of their own.

    A state before the first token is what `start` describes. Tensors of the state that are always empty are left out.
    """

    classes = None

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model
        example = _state(model, ROWS[0], LENGTHS[0])
        leaves, self.tree = pytree.tree_flatten(example)
        wider, longer = (
            pytree.tree_leaves(_state(model, *sizes)) for sizes in ((ROWS[1], LENGTHS[0]), (ROWS[0], LENGTHS[1]))
        )
        self.kept = [leaf.numel() > 0 for leaf in leaves]
        self.empty = [(leaf.shape[1:], leaf.dtype) for leaf in leaves]
        tokens = Port("tokens", "int64", ("rows", "time"), about="new tokens, of equal number in each row")
        ports = [tokens]
        for i, (leaf, wide, long) in enumerate(zip(leaves, wider, longer, strict=True)):
            if self.kept[i]:
                shape = tuple(
                    "rows" if a != b else "past" if a != c else a
                    for a, b, c in zip(leaf.shape, wide.shape, long.shape, strict=True)
                )
                ports.append(Port(f"state.{len(ports) - 1}", TYPES[leaf.dtype], shape))
        self.ports = tuple(ports)
        self.names = ("logits", *(f"next.{i}" for i in range(len(ports) - 1)))

    def forward(self, *values: Tensor) -> tuple[Tensor, ...]:
        tokens, given = values[0], iter(values[1:])
        leaves = [
            next(given) if kept else tokens.new_zeros((tokens.shape[0], *shape), dtype=dtype)
            for kept, (shape, dtype) in zip(self.kept, self.empty, strict=True)
        ]
        logits, state = self.model.stream(tokens, pytree.tree_unflatten(leaves, self.tree))  # pyright: ignore
        return logits, *(leaf for leaf, kept in zip(pytree.tree_leaves(state), self.kept, strict=True) if kept)

    def start(self, rows: int) -> dict[str, np.ndarray]:
        """The state before the first token, by the names of its inputs."""
        leaves = pytree.tree_leaves(self.model.start(rows))  # pyright: ignore
        kept = [leaf for leaf, keep in zip(leaves, self.kept, strict=True) if keep]
        return {port.name: leaf.detach().numpy() for port, leaf in zip(self.ports[1:], kept, strict=True)}

    def describe(self) -> str:
        """How the state begins, as JSON: for each input its type, its shape with "rows", and the number that fills it."""
        first = self.start(1)
        return json.dumps({
            name: {"type": str(value.dtype), "shape": ["rows", *value.shape[1:]], "fill": float(value.flat[0]) if value.size else 0.0}
            for name, value in first.items()
        })  # fmt: skip


def _state(model: Any, rows: int, length: int) -> Any:
    with torch.no_grad():
        return model.stream(torch.zeros(rows, length, dtype=torch.int64))[1]


def check_steps(program: StepProgram, runner: Runner, vocab: int) -> float:
    """The largest difference in probabilities between steps of the exported graph and the whole sequence in torch."""
    generator, largest = np.random.default_rng(0), 0.0
    for rows, pieces in ((1, (1, 1, 1, 1)), (2, (7, 1, 1)), (5, (3, 4, 1, 1, 6))):
        tokens = generator.integers(0, vocab, (rows, sum(pieces)))
        with torch.no_grad():
            expected = program.model(torch.from_numpy(tokens)).softmax(-1).numpy()
        state, done = program.start(rows), 0
        for piece in pieces:
            outputs = runner({"tokens": tokens[:, done : done + piece], **state})
            probabilities = torch.from_numpy(outputs.pop("logits")).softmax(-1).numpy()
            largest = max(largest, float(np.abs(probabilities - expected[:, done : done + piece]).max()))
            state = {port.name: value for port, value in zip(program.ports[1:], outputs.values(), strict=True)}
            done += piece
    if not largest <= TOLERANCE:
        raise WonderlandError(
            f"Steps of the exported model differ from whole sequences by {largest:.1e}, more than {TOLERANCE:g}: nothing was written."
        )
    return largest


def can_step(run: Any) -> bool:
    """Whether a run has a model that continues after a state."""
    return getattr(run.task, "writes_with", "") == "stream" and all(
        callable(getattr(run.model, name, None)) for name in ("stream", "start")
    )
