"""A model in float32, bfloat16 and int8: bytes, time of a forward pass, and how far the outputs are from those in float64."""

import copy
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from wonderland.core import WonderlandError, nearest
from wonderland.understand.step_cost import clock

PRECISIONS = ("float32", "bfloat16", "int8")


@dataclass(frozen=True)
class Precision:
    """One row of the comparison; `error` is relative to the root mean square of the outputs, `note` says what was converted."""

    name: str
    weight_bytes: int
    seconds: float
    error: float
    note: str


def chosen(text: str) -> Sequence[str]:
    """The precisions that were named: one, several with commas, or all."""
    names = list(PRECISIONS) if text == "all" else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in PRECISIONS:
            raise WonderlandError(
                f"There is no precision {name!r}.{nearest(name, PRECISIONS)} Known are {', '.join(PRECISIONS)}, or all."
            )
    return names


def precisions(
    model: nn.Module, inputs: Any, names: Sequence[str], *, call: Callable[..., Any] | None = None
) -> list[Precision]:
    """Compare a model in several precisions on a batch of inputs (a tuple of arguments), in eval mode.

    bfloat16 computes matrix products under autocast with weights of 16 bits; int8 quantises the weights of linear layers for each output channel and
    the inputs of each call (dynamic), with float32 elsewhere.
    """
    call = call or (lambda net, args: net(*args))
    exact = _output(copy.deepcopy(model).double().eval(), tree_map(_double, inputs), call)
    rows = []
    for name in names:
        net, note = copy.deepcopy(model).float().eval(), ""
        if name == "int8":
            net, note = quantised(net)
        with torch.autocast("cpu", torch.bfloat16, enabled=name == "bfloat16"):
            output = _output(net, inputs, call)
            seconds = _timed(lambda net=net: _output(net, inputs, call))
        scale = float(exact.double().square().mean().sqrt()) or 1.0
        error = float((output.double() - exact).square().mean().sqrt()) / scale
        width = 2 if name == "bfloat16" else 4
        size = sum(p.numel() for p in net.parameters()) * width + _packed_bytes(net)
        rows.append(Precision(name, size, seconds, error, note))
    return rows


def quantised(model: nn.Module) -> tuple[nn.Module, str]:
    """The model with its linear layers in int8, weights per channel, and a note of how many there are."""
    count = sum(type(module) is nn.Linear for module in model.modules())
    if not count:
        return model, "no linear layer: nothing is quantised"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings = {nn.Linear: torch.ao.quantization.per_channel_dynamic_qconfig}
        quantised_model = torch.ao.quantization.quantize_dynamic(model, settings, dtype=torch.qint8)
    return quantised_model, f"{count} linear layers in int8"


def _packed_bytes(model: nn.Module) -> int:
    """Bytes of weights that are packed for int8 kernels and so are no parameters."""
    total = 0
    for module in model.modules():
        weight = getattr(module, "weight", None)
        if callable(weight) and not isinstance(weight, Tensor):
            packed = weight()
            assert isinstance(packed, Tensor)
            total += packed.numel() + 8 * packed.shape[0]  # a scale and a zero point for each channel
    return total


def _output(model: nn.Module, inputs: Any, call: Callable[..., Any]) -> Tensor:
    with torch.no_grad():
        leaves = [
            leaf for leaf in tree_leaves(call(model, inputs)) if isinstance(leaf, Tensor) and leaf.is_floating_point()
        ]
    if not leaves:
        raise WonderlandError("The model returns no numbers to compare.")
    return torch.cat([leaf.double().flatten() for leaf in leaves])


def _double(value: Any) -> Any:
    return value.double() if isinstance(value, Tensor) and value.is_floating_point() else value


def _timed(call: Callable[[], Any], least: int = 3, seconds: float = 0.3) -> float:
    times, end = [], time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        began = clock()
        call()
        times.append(clock() - began)
    return min(times)
