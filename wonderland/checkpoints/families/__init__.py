"""Families of published models, one file each: configuration to spec and back, and the published names of weights."""

import importlib
from typing import TYPE_CHECKING, Any

from wonderland.checkpoints.families.names import DEFINED_IN
from wonderland.core.lazy import lazy_attributes

if TYPE_CHECKING:
    from wonderland.checkpoints.families.family import Family
    from wonderland.checkpoints.families.in_memory import from_gpt2, from_mamba, from_rwkv

    FAMILIES: dict[str, Family]

_IN_MEMORY = f"{__name__}.in_memory"
_load, __dir__ = lazy_attributes(
    __name__,
    {"Family": f"{__name__}.family", "from_gpt2": _IN_MEMORY, "from_mamba": _IN_MEMORY, "from_rwkv": _IN_MEMORY},
)

__all__ = ["FAMILIES", "Family", "from_gpt2", "from_mamba", "from_rwkv"]


def __getattr__(name: str) -> Any:
    if name != "FAMILIES":
        return _load(name)
    families: dict[str, Any] = {}
    for model_type, place in DEFINED_IN.items():
        module, constant = place.split(".")
        families[model_type] = getattr(importlib.import_module(f"{__name__}.{module}"), constant)
    globals()["FAMILIES"] = families
    return families
