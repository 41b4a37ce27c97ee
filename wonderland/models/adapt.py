"""Fine-tuning: which weights learn, adapters into a model and out again, and their weights on disk alone."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import torch
from torch import nn

from wonderland.core import Spec, WonderlandError, load_tensors, part, read_header, save_tensors
from wonderland.models.tuned_start import TunedStart
from wonderland.nn.adapters.adapter import Adapter

Where = str | Sequence[str]
BLOCKS = "*blocks.*"


@dataclass(frozen=True)
class Adaptation:
    """What was done to a model: an adapter's spec, in which layers it is, and what else learns."""

    adapter: Spec
    where: tuple[str, ...]
    also: tuple[str, ...]


def train_only(model: nn.Module, where: Where) -> int:
    """Let the parameters whose names match learn, and all others rest; returns how many numbers learn.

    `where` is a pattern such as "head*" or "*bias", or several; "*" is the whole model.

    >>> train_only(nn.ModuleDict({"trunk": nn.Linear(3, 3), "head": nn.Linear(3, 2)}), "head*")
    8
    """
    patterns = _patterns(where)
    names = [name for name, _ in model.named_parameters()]
    if not any(_matches(name, patterns) for name in names):
        raise WonderlandError(
            f"No parameter is called {' or '.join(map(repr, patterns))}. Some of them are {', '.join(names[:4])}."
        )
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(_matches(name, patterns))
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def adapt(model: Any, adapter: Any, where: Where = BLOCKS, *, also: Where = ()) -> Any:
    """Put an adapter into every linear layer whose name matches; only adapters learn, and what `also` names.

    `adapter` is a spec of an adapter: `nn.LoRA.spec(rank=8)`, `nn.IA3.spec()`, `nn.Bottleneck.spec(width=16)`,
    `nn.BiasTuning.spec()`; or `models.PromptTuned.spec(length=8)` and `models.PrefixTuned.spec(length=8)`, which have no
    `where`. Patterns are those of file names ("*mixer.project"), all layers of all blocks unless given. The model itself is
    changed, and returned; `merge` gives a plain one again. The spec of what comes out is `models.adapted`.

    >>> from wonderland import models
    >>> from wonderland.nn import LoRA
    >>> model = adapt(models.Decoder(vocab=10, dim=16, depth=1), LoRA.spec(rank=2), "*channel.outward")
    >>> [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    ['stack.blocks.0.channel.outward.down', 'stack.blocks.0.channel.outward.up']
    """
    if not isinstance(adapter, Spec):
        raise WonderlandError(
            f"adapt takes an adapter as a spec such as nn.LoRA.spec(rank=8), not as a {type(adapter).__name__}."
        )
    kind: Any = adapter.part
    done = Adaptation(adapter, _patterns(where), _patterns(also) if also else ())
    if isinstance(kind, type) and issubclass(kind, TunedStart):
        wrapped = kind(model, **adapter.arguments)
        return _recorded(_resting(wrapped, done), model, replace(done, where=()))
    if not isinstance(kind, type) or not issubclass(kind, Adapter):
        raise WonderlandError(
            f"{adapter.name} is no adapter: those are nn.LoRA, nn.IA3, nn.Bottleneck, nn.BiasTuning, models.PromptTuned "
            "and models.PrefixTuned."
        )
    for name, layer in _layers(model, done.where):
        owner = model.get_submodule(name.rpartition(".")[0])
        setattr(owner, name.rpartition(".")[2], adapter.build(layer=layer).train(layer.training))
    return _recorded(_resting(model, done), model, done)


@part
def adapted(model: Spec, adapter: Spec, where: list[str], also: list[str]) -> Any:
    """The outer spec of an adapted model: the model's own, the adapter's, and where it is."""
    return adapt(model.build(), adapter, where or BLOCKS, also=also)


adapted.takes_specs = True  # pyright: ignore[reportFunctionMemberAccess]


def merge(model: Any) -> Any:
    """A plain model with the answers of an adapted one: what its adapters learned becomes part of its layers.

    The model that was given stays as it is.
    """
    if isinstance(model, TunedStart):
        raise WonderlandError(
            f"{type(model).__name__} begins a text, which no weight of a plain model can: keep it, or use LoRA, IA3 or "
            "BiasTuning."
        )
    plain = copy.deepcopy(model)
    for name, adapter in adapters(plain):
        owner = plain.get_submodule(name.rpartition(".")[0])
        setattr(owner, name.rpartition(".")[2], adapter.merged())
    vars(plain).pop("adaptations", None)
    origin = vars(plain).get("origin")
    while origin is not None and origin.spec.name == "models.adapted":
        origin = replace(origin, spec=origin.spec.arguments["model"])
        plain.origin = origin
    return plain.requires_grad_(True)


def adapters(model: nn.Module) -> list[tuple[str, Adapter]]:
    """The adapters in a model, with their names."""
    return [(name, module) for name, module in model.named_modules() if isinstance(module, Adapter)]


def save_adapter(model: Any, path: str | Path) -> None:
    """Write what an adapted model learned, and nothing else, as one safetensors file with the adapter's description."""
    done: list[Adaptation] = vars(model).get("adaptations", [])
    if not done:
        raise WonderlandError("This model has no adapter to save: put one in with adapt, or save the whole model.")
    tensors = {name: value for name, value in model.state_dict().items() if name in _learned(model, done)}
    save_tensors(path, tensors, {"adaptations": [_to_json(one) for one in done]})


def load_adapter(model: Any, path: str | Path) -> Any:
    """Put a saved adapter into the model it was made for; the model is changed, and returned (prompts wrap it)."""
    path = Path(path)
    header = {name: entry for name, entry in read_header(path).items() if name != "__metadata__"}
    tensors, meta = load_tensors(path)
    listed = meta.get("adaptations") if isinstance(meta, dict) else None
    if not isinstance(listed, list) or not listed or vars(model).get("adaptations"):
        fault = (
            "is no adapter's file" if not isinstance(listed, list) or not listed else "is for a model without adapters"
        )
        raise WonderlandError(f"{path} {fault}: it was not written by save_adapter, or the model has one already.")
    done = [_from_json(one, path) for one in listed[:100]]
    size = sum(value.numel() for value in tensors.values())
    for one in done:
        _bounded(model, one, size, path)
    for one in done:
        model = adapt(model, one.adapter, one.where or BLOCKS, also=one.also)
    names = _learned(model, done)
    state = model.state_dict()
    for name in sorted(names | set(header)):
        if name not in tensors or name not in names or state[name].shape != tensors[name].shape:
            raise WonderlandError(f"{path} does not fit this model at {name[:80]!r}: it belongs to another one.")
    with torch.no_grad():
        for name, value in tensors.items():
            state[name].copy_(value)
    return model


def _layers(model: nn.Module, patterns: tuple[str, ...]) -> list[tuple[str, nn.Linear]]:
    every = [(name, module) for name, module in model.named_modules() if type(module) is nn.Linear]
    held = [name for name, _ in adapters(model)]
    free = [(name, module) for name, module in every if not any(name.startswith(f"{one}.") for one in held)]
    found = [(name, module) for name, module in free if name and _matches(name, patterns)]
    if not found:
        some = ", ".join(name for name, _ in free[:4]) or "none"
        raise WonderlandError(
            f"No linear layer is called {' or '.join(map(repr, patterns))}. Some of those there are: {some}."
        )
    return found


def _resting(model: nn.Module, done: Adaptation) -> nn.Module:
    """Let only what adapters hold learn, and what was named besides."""
    before = vars(model).get("adaptations", [])
    names = _learned(model, [*before, done])
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in names)
    return model


def _learned(model: nn.Module, done: list[Adaptation]) -> set[str]:
    also = tuple(pattern for one in done for pattern in one.also)
    found = {f"{name}.{own}" for name, adapter in adapters(model) for own in adapter.own()}
    names = {name for name, _ in model.named_parameters()}
    if isinstance(model, TunedStart):
        found |= {name for name in names if not name.startswith("model.")}
    return found | {name for name in names if also and _matches(name, also)}


def _recorded(model: Any, before: Any, done: Adaptation) -> Any:
    """Remember what was done, and what the model is now the spec of."""
    model.adaptations = [*vars(model).get("adaptations", []), done]
    origin = vars(before).get("origin")
    if origin is not None:
        outer = {"model": origin.spec, "adapter": done.adapter, "where": list(done.where), "also": list(done.also)}
        model.origin = replace(origin, spec=Spec("models.adapted", outer))
    return model


def _bounded(model: nn.Module, done: Adaptation, size: int, path: Path) -> None:
    """Refuse an adapter that would take more memory than its file has numbers, before it takes any."""
    kind: Any = done.adapter.part
    if isinstance(kind, type) and issubclass(kind, TunedStart):
        if done.adapter.arguments.get("length", 8) * getattr(model, "dim", 1) > size:
            raise WonderlandError(f"{path} describes a larger adapter than it holds: it is damaged.")
        return
    asked = 0
    for _, layer in _layers(model, done.where):
        shape = nn.Linear(layer.in_features, layer.out_features, bias=layer.bias is not None, device="meta")
        with torch.device("meta"):
            built = done.adapter.build(layer=shape)
        asked += sum(value.numel() for value in built.own().values()) if isinstance(built, Adapter) else 0
        if asked > size:
            raise WonderlandError(f"{path} describes a larger adapter than it holds: it is damaged.")


def _to_json(done: Adaptation) -> dict[str, Any]:
    return {"adapter": done.adapter.to_json(), "where": list(done.where), "also": list(done.also)}


def _from_json(value: Any, path: Path) -> Adaptation:
    lists = [value.get(key) for key in ("where", "also")] if isinstance(value, dict) else [None]
    if not all(
        isinstance(one, list) and all(isinstance(name, str) for name in one) and len(one) < 1000 for one in lists
    ):
        raise WonderlandError(f"{path} is no adapter's file: it is damaged or not ours.")
    return Adaptation(Spec.from_json(value.get("adapter")), tuple(value["where"]), tuple(value["also"]))


def _patterns(where: Where) -> tuple[str, ...]:
    return (where,) if isinstance(where, str) else tuple(where)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
