"""Two models compared module by module: the same classes with the same options, whatever their weights."""

from typing import Any

from torch import Tensor, nn

from wonderland.core import name_of

_PLAIN = (int, float, str, bool, type(None))
_NOT_OPTIONS = ("training", "origin", "adaptations")


def difference(model: nn.Module, other: nn.Module) -> str:
    """The first difference in structure as a sentence without a full stop; empty if there is none."""
    modules, others = dict(model.named_modules()), dict(other.named_modules())
    for name in [*modules, *others]:
        if name not in others:
            return f"there is a {name}"
        if name not in modules:
            return f"{name} is missing"
        mine, theirs = modules[name], others[name]
        where = name or "the model"
        if type(mine) is not type(theirs):
            return f"{where} is a {type(mine).__name__}, not a {type(theirs).__name__}"
        options, expected = _options(mine), _options(theirs)
        for key in [*options, *expected]:
            if not _equal(options.get(key), expected.get(key)):
                return f"{where} has {key} = {options.get(key)}, not {expected.get(key)}"
    return ""


def _options(module: nn.Module) -> dict[str, Any]:
    """Plain attributes, names of functions, and the shapes of parameters and buffers."""
    options: dict[str, Any] = {}
    for key, value in vars(module).items():
        if key.startswith("_") or key in _NOT_OPTIONS:
            continue
        if isinstance(value, _PLAIN) or (isinstance(value, tuple) and all(isinstance(item, _PLAIN) for item in value)):
            options[key] = value
        elif callable(value) and not isinstance(value, nn.Module):
            options[key] = name_of(value) or getattr(value, "__qualname__", repr(value))
    for key, value in module.named_parameters(recurse=False):
        options[key] = tuple(value.shape)
    for key, value in module.named_buffers(recurse=False):
        options[key] = tuple(value.shape)
    return options


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return False
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= 1e-9 * max(abs(a), abs(b))
    return a == b
