"""Parameter-efficient fine-tuning: which weights are trained, and adapters put into a model and merged out of it."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from torch import nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.models.prompt_tuning import TunedInitialState
from wonderland.nn.adapters.adapter import Adapter

Where = str | Sequence[str]
BLOCKS = "*blocks.*"


@dataclass(frozen=True)
class Adaptation:
    """A change that `adapt` made: the adapter's spec, the patterns of adapted layers, and of other trained parameters."""

    adapter: Spec
    where: tuple[str, ...]
    also: tuple[str, ...]


def train_only(model: nn.Module, where: Where) -> int:
    """Train the parameters whose names match, and freeze all others; returns the number of trained values.

    `where` is a pattern such as "head*" or "*bias", or several; "*" is the whole model.

    >>> train_only(nn.ModuleDict({"trunk": nn.Linear(3, 3), "head": nn.Linear(3, 2)}), "head*")
    8
    """
    patterns = as_patterns(where)
    names = [name for name, _ in model.named_parameters()]
    if not any(_matches(name, patterns) for name in names):
        raise WonderlandError(
            f"No parameter is called {' or '.join(map(repr, patterns))}. Some of them are {', '.join(names[:4])}."
        )
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(_matches(name, patterns))
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def adapt(model: Any, adapter: Any, where: Where = BLOCKS, *, also: Where = ()) -> Any:
    """Put an adapter into every linear layer whose name matches; only adapters are trained, and what `also` names.

    `adapter` is a spec of an adapter: `nn.LoRA.spec(rank=8)`, `nn.IA3.spec()`, `nn.Bottleneck.spec(width=16)`,
    `nn.BiasTuning.spec()`; or `models.PromptTuned.spec(length=8)` and `models.PrefixTuned.spec(length=8)`, which have no
    `where`. Patterns are those of file names ("*mixer.project"); the default is all layers of all blocks. The model is changed
    in place and returned; `merge` makes a plain model again. The spec of the adapted model is `models.adapted`.

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
    adaptation = Adaptation(adapter, as_patterns(where), as_patterns(also) if also else ())
    if isinstance(kind, type) and issubclass(kind, TunedInitialState):
        wrapped = kind(model, **adapter.arguments)
        return _recorded(_frozen(wrapped, adaptation), model, replace(adaptation, where=()))
    if not isinstance(kind, type) or not issubclass(kind, Adapter):
        raise WonderlandError(
            f"{adapter.name} is not an adapter: those are nn.LoRA, nn.IA3, nn.Bottleneck, nn.BiasTuning, "
            "models.PromptTuned and models.PrefixTuned."
        )
    for name, layer in matching_layers(model, adaptation.where):
        owner = model.get_submodule(name.rpartition(".")[0])
        setattr(owner, name.rpartition(".")[2], adapter.build(layer=layer).train(layer.training))
    return _recorded(_frozen(model, adaptation), model, adaptation)


@part
def adapted(model: Spec, adapter: Spec, where: list[str], also: list[str]) -> Any:
    """The spec of an adapted model: the spec of the model, that of the adapter, and the arguments of `adapt`."""
    return adapt(model.build(), adapter, where or BLOCKS, also=also)


adapted.takes_specs = True  # pyright: ignore[reportFunctionMemberAccess]


def merge(model: Any) -> Any:
    """A plain model with the outputs of an adapted one: adapters are merged into the weights of their layers.

    Returns a copy; the adapted model is not changed.
    """
    if isinstance(model, TunedInitialState):
        raise WonderlandError(
            f"{type(model).__name__} trains an initial state, which cannot be merged into weights: keep it, or use LoRA, "
            "IA3 or BiasTuning."
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


def trained_names(model: nn.Module, adaptations: list[Adaptation]) -> set[str]:
    """The names of the parameters that adaptations train: those of adapters, and those that match `also`."""
    also = tuple(pattern for adaptation in adaptations for pattern in adaptation.also)
    trained = {f"{name}.{own}" for name, adapter in adapters(model) for own in adapter.own()}
    names = {name for name, _ in model.named_parameters()}
    if isinstance(model, TunedInitialState):
        trained |= {name for name in names if not name.startswith("model.")}
    return trained | {name for name in names if also and _matches(name, also)}


def matching_layers(model: nn.Module, patterns: tuple[str, ...]) -> list[tuple[str, nn.Linear]]:
    """The linear layers whose names match, without those inside adapters."""
    layers = [(name, module) for name, module in model.named_modules() if type(module) is nn.Linear]
    prefixes = tuple(f"{name}." for name, _ in adapters(model))
    free = [(name, layer) for name, layer in layers if not name.startswith(prefixes)]
    matching = [(name, layer) for name, layer in free if name and _matches(name, patterns)]
    if not matching:
        examples = ", ".join(name for name, _ in free[:4]) or "none"
        raise WonderlandError(
            f"No linear layer is called {' or '.join(map(repr, patterns))}. Some layers are: {examples}."
        )
    return matching


def as_patterns(where: Where) -> tuple[str, ...]:
    """One pattern or several as a tuple."""
    return (where,) if isinstance(where, str) else tuple(where)


def _frozen(model: nn.Module, adaptation: Adaptation) -> nn.Module:
    """Freeze all parameters but those that this adaptation and earlier ones train."""
    before = vars(model).get("adaptations", [])
    names = trained_names(model, [*before, adaptation])
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in names)
    return model


def _recorded(model: Any, before: Any, adaptation: Adaptation) -> Any:
    """Record an adaptation in the model, and the spec of the adapted model in its origin."""
    model.adaptations = [*vars(model).get("adaptations", []), adaptation]
    origin = vars(before).get("origin")
    if origin is not None:
        arguments = {
            "model": origin.spec,
            "adapter": adaptation.adapter,
            "where": list(adaptation.where),
            "also": list(adaptation.also),
        }
        model.origin = replace(origin, spec=Spec("models.adapted", arguments))
    return model


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
