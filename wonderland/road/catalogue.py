"""The catalogue of models that `fit(model=...)` can name, with descriptions and parameter counts."""

import inspect
from typing import Any

import torch

import wonderland.models  # noqa: F401 - fills the closed set that names are looked up in
from wonderland.core import Spec, find
from wonderland.kinds import KINDS


def catalogue(kind: str | None = None) -> list[dict[str, Any]]:
    """One row for each model and kind of data: its name, the kind, its parameters for typical data, and the first line of
    its docstring.
    """
    owners = [owner for name, owner in KINDS.items() if kind in (None, name)]
    return [
        {
            "model": name.removeprefix("models."),
            "kind": owner.name,
            "parameters": parameters(name, owner.typical),
            "what it is": (find(name).__doc__ or "").strip().splitlines()[0],
        }
        for owner in owners
        for name in owner.models
    ]


def parameters(name: str, typical: Any) -> int:
    """How many parameters a model has with the arguments that typical data would give."""
    taken = inspect.signature(find(name)).parameters
    with torch.device("meta"):
        model = Spec(name, {key: value for key, value in typical.items() if key in taken}).build()
    # What a model in closed form has learned is in its buffers.
    learned = model.buffers() if getattr(model, "closed_form", False) else model.parameters()
    return sum(tensor.numel() for tensor in learned)
