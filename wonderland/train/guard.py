"""The guard against NaN and infinity: the error names the first layer whose output is not finite."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.train.state import State


class NonFinite(WonderlandError):
    """The loss or a gradient is NaN or infinite."""


class _NonFiniteOutput(Exception):
    """Carries the name of the first layer whose output is not finite."""


def check(scalars: dict[str, float], step: Callable[[State, Any], Any], state: State, batch: Any) -> None:
    """Stop when a scalar is not finite, naming the first layer that computes one."""
    bad = {name: value for name, value in scalars.items() if not math.isfinite(value)}
    for name, value in bad.items():
        explanation = _explain(set(bad), step, state, batch)
        raise NonFinite(f"The {name} became {value} at step {state.step}: {explanation} {ADVICE}")


ADVICE = "Lower the learning rate, clip gradients, or look at the data of this batch."


def _explain(bad: set[str], step: Callable[[State, Any], Any], state: State, batch: Any) -> str:
    for part, module in state.modules().items():
        for name, parameter in module.named_parameters():
            if not torch.isfinite(parameter).all():
                return f"the weights {_join(part, name)} are no longer finite."
    try:
        layer = first_bad_layer(lambda: step(state, batch), state.modules())
    except WonderlandError:
        layer = None
    if layer:
        return f"the first layer with a non-finite output is {layer}."
    if "loss" not in bad:
        for part, module in state.modules().items():
            for name, parameter in module.named_parameters():
                if parameter.grad is not None and not torch.isfinite(parameter.grad).all():
                    return f"every layer's output is finite, but the gradient of {_join(part, name)} is not."
    return "every layer's output is finite, so it arose in the loss itself."


def first_bad_layer(call: Callable[[], Any], modules: dict[str, nn.Module]) -> str | None:
    """Run `call` and name the first innermost layer that returns NaN or infinity, if any does."""
    handles = []

    def add_hook(path: str, layer: nn.Module) -> None:
        def check_output(module: nn.Module, inputs: Any, output: Any) -> None:
            if not all(torch.isfinite(value).all() for value in _floats(output)):
                raise _NonFiniteOutput(f"{path} ({type(layer).__name__})")

        handles.append(layer.register_forward_hook(check_output))

    for part, module in modules.items():
        for name, layer in module.named_modules():
            add_hook(_join(part, name), layer)
    try:
        call()
    except _NonFiniteOutput as error:
        return str(error)
    finally:
        for handle in handles:
            handle.remove()
    return None


def _join(part: str, name: str) -> str:
    return ".".join(piece for piece in (part, name) if piece)


def _floats(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value] if value.is_floating_point() or value.is_complex() else []
    if isinstance(value, dict):
        value = list(value.values())
    return [tensor for item in value for tensor in _floats(item)] if isinstance(value, list | tuple) else []
