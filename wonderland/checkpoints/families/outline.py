"""Two models compared by their parts: the same modules, with the same options, whatever their weights."""

from typing import Any

from torch import Tensor, nn

from wonderland.core import name_of

_PLAIN = (int, float, str, bool, type(None))


def difference(one: nn.Module, other: nn.Module) -> str:
    """Where two models are not built alike, in words; nothing if they are."""
    ours, theirs = dict(one.named_modules()), dict(other.named_modules())
    for name in [*ours, *theirs]:
        if name not in theirs or name not in ours:
            has = name in ours
            return f"{name} is {'there' if has else 'missing'}"
        a, b = ours[name], theirs[name]
        where = name or "the model"
        if type(a) is not type(b):
            return f"{where} is a {type(a).__name__}, not a {type(b).__name__}"
        left, right = _options(a), _options(b)
        for key in left:
            if key not in right or not _equal(left[key], right[key]):
                return f"{where} has {key} = {left[key]}, not {right.get(key)}"
    return ""


def _options(module: nn.Module) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in vars(module).items():
        if key.startswith("_") or key in ("training", "origin", "adaptations"):
            continue
        if isinstance(value, _PLAIN) or (isinstance(value, tuple) and all(isinstance(one, _PLAIN) for one in value)):
            found[key] = value
        elif callable(value) and not isinstance(value, nn.Module):
            found[key] = name_of(value) or getattr(value, "__qualname__", repr(value))
    for key, value in module.named_parameters(recurse=False):
        found[key] = tuple(value.shape)
    for key, value in module.named_buffers(recurse=False):
        found[key] = tuple(value.shape)
    return found


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return False
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= 1e-9 * max(abs(a), abs(b))
    return a == b
