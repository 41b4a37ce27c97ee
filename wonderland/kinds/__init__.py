"""Kinds of data: one folder and one line each."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wonderland.kinds.choose import open
    from wonderland.kinds.kind import Claim, Kind

    KINDS: dict[str, Kind]

# The order in which they are shown. Each names a folder here, with the modules `options` and `kind`.
NAMES = (
    "table",
    "image",
    "text",
    "corpus",
    "pairs",
    "tags",
    "answers",
    "matches",
    "graph",
    "series",
    "sound",
    "signal",
    "clip",
    "environment",
    "ratings",
)

__all__ = ["KINDS", "NAMES", "Claim", "Kind", "open", "options_of", "predict_options_of"]


def options_of(name: str) -> type:
    """The class of a kind's options, without loading torch."""
    return importlib.import_module(f"wonderland.kinds.{name}.options").Options


def predict_options_of(name: str) -> type | None:
    """The class of what a kind lets one say to predict, beside what all kinds do; None for nothing."""
    return getattr(importlib.import_module(f"wonderland.kinds.{name}.options"), "PredictOptions", None)


def __getattr__(name: str) -> Any:
    if name == "KINDS":
        kinds = {kind: importlib.import_module(f"wonderland.kinds.{kind}.kind").KIND for kind in NAMES}
        for kind, instance in kinds.items():
            type(instance).Options = options_of(kind)
        globals()["KINDS"] = kinds
        return kinds
    if name in ("Claim", "Kind"):
        return getattr(importlib.import_module("wonderland.kinds.kind"), name)
    if name == "open":
        return importlib.import_module("wonderland.kinds.choose").open
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
