"""Adapters on disk: the trained weights of an adapted model alone, as one safetensors file."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from wonderland.core import Spec, WonderlandError, load_tensors, read_header, save_tensors
from wonderland.models.adapt import BLOCKS, Adaptation, adapt, matching_layers, trained_names
from wonderland.models.prompt_tuning import TunedInitialState
from wonderland.nn.adapters.adapter import Adapter

MAX_ADAPTATIONS = 100


def save_adapter(model: Any, path: str | Path) -> None:
    """Write the trained weights of an adapted model, and nothing else, as one safetensors file with the adapter's spec."""
    adaptations: list[Adaptation] = vars(model).get("adaptations", [])
    if not adaptations:
        raise WonderlandError("This model has no adapter to save: put one in with adapt, or save the whole model.")
    names = trained_names(model, adaptations)
    tensors = {name: value for name, value in model.state_dict().items() if name in names}
    save_tensors(path, tensors, {"adaptations": [_to_json(adaptation) for adaptation in adaptations]})


def load_adapter(model: Any, path: str | Path) -> Any:
    """Put a saved adapter into the model that it was trained for.

    The model is changed and returned; for prompt and prefix tuning the result is a new model around it.
    """
    path = Path(path)
    header = {name: entry for name, entry in read_header(path).items() if name != "__metadata__"}
    tensors, meta = load_tensors(path)
    entries = meta.get("adaptations") if isinstance(meta, dict) else None
    if not isinstance(entries, list) or not entries:
        raise WonderlandError(f"{path} is not an adapter: it was not written by save_adapter.")
    if vars(model).get("adaptations"):
        raise WonderlandError(f"{path} is for a model without adapters, but this model has one already.")
    adaptations = [_from_json(entry, path) for entry in entries[:MAX_ADAPTATIONS]]
    size = sum(value.numel() for value in tensors.values())
    for adaptation in adaptations:
        _check_size(model, adaptation, size, path)
    for adaptation in adaptations:
        model = adapt(model, adaptation.adapter, adaptation.where or BLOCKS, also=adaptation.also)
    names = trained_names(model, adaptations)
    state = model.state_dict()
    for name in sorted(names | set(header)):
        if name not in tensors or name not in names or state[name].shape != tensors[name].shape:
            raise WonderlandError(f"{path} does not fit this model at {name[:80]!r}: it belongs to another model.")
    with torch.no_grad():
        for name, value in tensors.items():
            state[name].copy_(value)
    return model


def _check_size(model: nn.Module, adaptation: Adaptation, size: int, path: Path) -> None:
    """Refuse an adapter with more parameters than its file holds, before any memory is allocated for it."""
    kind: Any = adaptation.adapter.part
    parameters = 0
    if isinstance(kind, type) and issubclass(kind, TunedInitialState):
        parameters = adaptation.adapter.arguments.get("length", 8) * getattr(model, "dim", 1)
    else:
        for _, layer in matching_layers(model, adaptation.where):
            shape = nn.Linear(layer.in_features, layer.out_features, bias=layer.bias is not None, device="meta")
            with torch.device("meta"):
                adapter = adaptation.adapter.build(layer=shape)
            parameters += sum(value.numel() for value in adapter.own().values()) if isinstance(adapter, Adapter) else 0
            if parameters > size:
                break
    if parameters > size:
        raise WonderlandError(f"{path} describes a larger adapter than it holds: it is damaged.")


def _to_json(adaptation: Adaptation) -> dict[str, Any]:
    return {
        "adapter": adaptation.adapter.to_json(),
        "where": list(adaptation.where),
        "also": list(adaptation.also),
    }


def _from_json(entry: Any, path: Path) -> Adaptation:
    patterns = [entry.get(key) for key in ("where", "also")] if isinstance(entry, dict) else [None]
    if not all(map(_is_pattern_list, patterns)):
        raise WonderlandError(f"{path} is not an adapter: it is damaged or not ours.")
    return Adaptation(Spec.from_json(entry.get("adapter")), tuple(entry["where"]), tuple(entry["also"]))


def _is_pattern_list(value: Any) -> bool:
    return isinstance(value, list) and len(value) < 1000 and all(isinstance(pattern, str) for pattern in value)
