"""Decode programs: one token through a mixer or a whole model, written down as instructions for a C++ interpreter.

At batch 1, calling a dozen torch operators per layer costs more than their arithmetic. A rule of `fast.table` therefore
writes the instructions of its class once; `CompiledStep` runs them for every token by one call of
`ops/kernels/decode_step.cpp`.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.ops import native

# The instructions, as numbered in decode_step.cpp.
(
    EMBED, LAYER_NORM, RMS_NORM, COPY, BACK, MAMBA, RWKV_TIME, RWKV_CHANNEL, ATTENTION, MLP, RECURRENT, COUNT, FINISH, HEAD,
) = range(14)  # fmt: skip
CELLS = ("rnn", "lstm", "gru_after", "gru_before", "ligru")
ACTIVATIONS = ("identity", "relu", "squared_relu", "sigmoid", "silu", "tanh", "gelu", "gelu_tanh")
# What a step does with a tensor of the state: writes a new one, passes it on (it is empty), adds one, or appends an entry.
FRESH, SAME, COUNTED, CACHE = range(4)


class Program:
    """Instructions for one token of each sequence of a batch.

    Kernels work on two buffers of width `dim`: the residual stream, and a branch. A norm writes the normalised stream into
    the branch; a mixer reads the branch and adds its output to the stream.

    A rule writes instructions with `add`, reads everything that they depend on with `look` (so that a later change is
    noticed), and declares with `keep` what happens to each tensor of the state, in the order of the state. A rule returns
    False where the module has no such form; the module then runs in plain torch.
    """

    def __init__(self, dtype: torch.dtype, dim: int):
        self.dtype, self.dim = dtype, dim
        self.codes: list[int] = []
        self.numbers: list[float] = []
        self.weights: list[Tensor | None] = []
        self.looked: list[tuple[dict[str, Any], str, Any]] = []
        self.kinds: list[tuple[int, Any]] = []

    def add(
        self, code: int, sizes: Sequence[int] = (), weights: Sequence[Tensor | None] = (), number: float = 0.0
    ) -> None:
        """Append one instruction, with the weights that it reads."""
        self.codes += (code, len(sizes), *sizes)
        self.numbers.append(number)
        self.weights += weights

    def look(self, holder: Any, name: str) -> Any:
        """An attribute of a module, or an entry of one of its dictionaries; the program is void once it is another object."""
        held = vars(holder) if isinstance(holder, nn.Module) else holder
        value = held.get(name)
        self.looked.append((held, name, value))
        return value

    def keep(self, *kinds: int, about: Any = None) -> int:
        """Declare the next tensors of the state; returns the index of the first, by which kernels find them.

        `about` is the window of a cache, or the signature of a count.
        """
        first = len(self.kinds)
        self.kinds += [(kind, about) for kind in kinds]
        return first

    def count(self, signature: str) -> None:
        """Declare a count of tokens, which grows by one; `signature` names the class that keeps it."""
        self.add(COUNT, (self.keep(COUNTED, about=signature),))

    def matrices(self, module: nn.Module, linear: tuple[str, ...], own: tuple[str, ...] = ()) -> list[Tensor] | None:
        """Weights of a module's linear layers, then its own parameters; None if a layer was replaced, as by an adapter."""
        weights = []
        for name in linear:
            child = self.look(module._modules, name)
            if type(child) is not nn.Linear:
                return None
            weights.append(self.look(child._parameters, "weight"))
        for name in own:
            weights.append(self.look(module._parameters, name))
        return None if any(not self.reads(weight) for weight in weights) else weights

    def biases(self, module: nn.Module, linear: tuple[str, ...]) -> list[Tensor | None]:
        """Biases of linear layers, None where a layer has none."""
        return [self.look(module._modules[name]._parameters, "bias") for name in linear]  # pyright: ignore

    def reads(self, weight: Any) -> bool:
        """Whether kernels can read a weight from its memory."""
        return native.is_plain(weight) and weight.dtype == self.dtype and weight.is_contiguous() and weight.is_cpu

    def no_dropout(self, module: nn.Module, *probabilities: str) -> bool:
        """Whether nothing is dropped: the module is in evaluation mode, or these probabilities are 0."""
        dropped = [self.look(module, name) for name in probabilities]
        return not (self.look(module, "training") and any(dropped))

    def read_input(self) -> None:
        """Begin a program of one mixer: its input is the branch, and the stream starts at 0."""
        self.add(COPY, (1,))
