"""Cost of a model: parameters, FLOPs and activation memory."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from math import ceil, prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.flop_counter import FlopCounterMode

from wonderland.core import WonderlandError

__all__ = ["Cost", "Layer", "cost", "preserved_state"]


@dataclass(frozen=True)
class Layer:
    """Cost of one module without its submodules."""

    name: str
    kind: str
    parameters: int
    flops: int
    output: tuple[int, ...] | None


@dataclass(frozen=True)
class Cost:
    """Cost of a model. `flops` and `activation_bytes` are for one example; see `cost`."""

    parameters: int
    trainable: int
    flops: int
    activation_bytes: int
    by_layer: list[Layer] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """As plain numbers and lists, for JSON."""
        return asdict(self) | {
            "by_layer": [
                asdict(layer) | {"output": None if layer.output is None else list(layer.output)}
                for layer in self.by_layer
            ]
        }

    def table(self) -> str:
        """The cost as a text table: one line for each layer, and the total."""
        rows = [("layer", "kind", "output", "parameters", "FLOPs")]
        for layer in self.by_layer:
            shape = "-" if layer.output is None else " x ".join(map(str, layer.output)) or "scalar"
            rows.append((layer.name, layer.kind, shape, f"{layer.parameters:,}", f"{layer.flops:,}"))
        rows.append(("total", "", "", f"{self.parameters:,}", f"{self.flops:,}"))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(w) if i < 3 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]
        lines.append(f"{self.activation_bytes:,} bytes of activations per example kept for the backward pass")
        return "\n".join(line.rstrip() for line in lines)


def cost(model: nn.Module, example_input: Any) -> Cost:
    """Count parameters, FLOPs and activation memory of `model` on `example_input`: a tensor or a tuple of arguments, batch first.

    - flops: multiplications and additions, each counted as one, of matrix products, convolutions, attention and
      recurrent layers in the forward pass, for one example. Elementwise work is not counted; a training step is about
      three times as much.
    - activation_bytes: memory that autograd keeps for the backward pass, for one example: every storage once,
      without parameters and buffers.
    - by_layer: each module without its submodules, so that the layers sum to the total.

    The model runs once, in eval mode, and is left as it was: modes, buffers, gradients and random state.

    >>> print(cost(nn.Sequential(nn.Linear(8, 4), nn.ReLU()), torch.zeros(2, 8)).table())
    layer  kind    output  parameters  FLOPs
    0      Linear  4               36     64
    1      ReLU    4                0      0
    total                          36     64
    48 bytes of activations per example kept for the backward pass
    """
    if any(isinstance(p, UninitializedParameter) for p in model.parameters()):
        raise WonderlandError("The model has lazy layers whose shapes are not known yet. Call it once on data first.")
    args = example_input if isinstance(example_input, tuple) else (example_input,)
    batch = next((x.shape[0] for x in tree_leaves(args) if isinstance(x, Tensor) and x.ndim), 0)
    if not batch:
        raise WonderlandError("The cost of a model needs an example with at least one row, the batch axis first.")
    counter = FlopCounterMode(display=False, custom_mapping=_FORMULAS)
    with preserved_state(model), torch.inference_mode(False), torch.enable_grad():
        args = tree_map(lambda x: x.detach().clone() if isinstance(x, Tensor) else x, args)
        with _FlopHooks(model, counter) as hooks, _saved(model, args) as kept, counter:
            output = model(*args)
        activation_bytes = sum(kept.values())
        del output
    parameters = list(model.parameters())
    return Cost(
        parameters=sum(p.numel() for p in parameters),
        trainable=sum(p.numel() for p in parameters if p.requires_grad),
        flops=ceil(counter.get_total_flops() / batch),
        activation_bytes=ceil(activation_bytes / batch),
        by_layer=hooks.layers(batch),
    )


@contextmanager
def preserved_state(model: nn.Module) -> Iterator[None]:
    """Run the block in eval mode; modes, buffers, gradients and random state are restored afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, buffer.detach().clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]
    gradients = [(parameter, parameter.grad) for parameter in model.parameters()]
    tensors = [*model.parameters(), *(buffer for _, _, buffer, _ in buffers)]
    devices = {tensor.device.index for tensor in tensors if tensor.device.type == "cuda"}
    fast_path = torch.backends.mha.get_fastpath_enabled()
    with torch.random.fork_rng(devices=sorted(d for d in devices if d is not None)):
        try:
            torch.backends.mha.set_fastpath_enabled(False)  # FLOPs of the fused kernel are not counted
            model.eval()
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast_path)
            for module, mode in modes:
                module.training = mode
            with torch.no_grad():
                for module, name, buffer, before in buffers:
                    module._buffers[name] = buffer
                    if not torch.equal(buffer, before):
                        buffer.copy_(before)
            for parameter, gradient in gradients:
                parameter.grad = gradient


class _FlopHooks:
    """Forward hooks that record, for each module, the FLOPs counted between its entry and its exit."""

    def __init__(self, model: nn.Module, counter: FlopCounterMode):
        self.model, self.counter = model, counter
        self.names = {module: name for name, module in model.named_modules()}
        self.flops: dict[nn.Module, int] = {}
        self.shapes: dict[nn.Module, tuple[int, ...]] = {}
        self.open: list[list[int]] = []
        self.hooks = ExitStack()

    def __enter__(self) -> "_FlopHooks":
        for module in self.names:
            for hook in (module.register_forward_pre_hook(self._enter), module.register_forward_hook(self._leave)):
                self.hooks.callback(hook.remove)
        return self

    def __exit__(self, *_: object) -> None:
        self.hooks.close()

    def _enter(self, module: nn.Module, args: Any) -> None:
        self.open.append([self.counter.get_total_flops(), 0])

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        start, inner = self.open.pop()
        flops = self.counter.get_total_flops() - start
        self.flops[module] = self.flops.get(module, 0) + flops - inner
        if self.open:
            self.open[-1][1] += flops
        first = next((x for x in tree_leaves(output) if isinstance(x, Tensor)), None)
        if first is not None:
            self.shapes[module] = tuple(first.shape)

    def layers(self, batch: int) -> list[Layer]:
        seen: set[Tensor] = set()
        layers = []
        for module, name in self.names.items():
            own = [p for p in module.parameters(recurse=False) if p not in seen]
            seen.update(own)
            size, flops = sum(p.numel() for p in own), ceil(self.flops.get(module, 0) / batch)
            if size or flops or not any(module.children()):
                shape = self.shapes.get(module)
                if shape and shape[0] == batch:
                    shape = shape[1:]
                layers.append(Layer(name or "(model)", type(module).__name__, size, flops, shape))
        return layers


@contextmanager
def _saved(model: nn.Module, args: Any) -> Iterator[dict[int, int]]:
    """The storages that autograd saves for the backward pass: {address: bytes}."""
    own = {tensor.untyped_storage().data_ptr() for tensor in [*model.parameters(), *model.buffers()]}
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        if tensor.layout is torch.strided:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in own and storage.nbytes():
                kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield kept


def _attention(query: Any, key: Any, value: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Two matrix products of size (queries, keys) for every head."""
    *lead, queries, width = query
    return 2 * prod(lead) * queries * key[-2] * (width + value[-1])


def _matrix_vector(matrix: Any, vector: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    return 2 * matrix[0] * matrix[1]


def _add_matrix_vector(start: Any, matrix: Any, vector: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    return 2 * matrix[0] * matrix[1]


def _dot(left: Any, right: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    return 2 * left[0]


def _recurrent(x: Any, from_input: Any, from_state: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """The two matrix products of a fused recurrent layer, at every position of (t, b, d)."""
    return 2 * x[0] * x[1] * (prod(from_input) + prod(from_state))


_aten = torch.ops.aten
_FORMULAS = {
    getattr(_aten, name): formula
    for name, formula in {
        "_scaled_dot_product_flash_attention_for_cpu": _attention,
        "mv": _matrix_vector,
        "addmv": _add_matrix_vector,
        "dot": _dot,
        "mkldnn_rnn_layer": _recurrent,
    }.items()
    if hasattr(_aten, name)
}
