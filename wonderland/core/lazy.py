"""Doors that open when someone walks through: a package's names are imported at their first use."""

import importlib
from collections.abc import Callable
from typing import Any


def door(package: str, names: dict[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package whose public names live in, or are, the modules given by `names`."""

    def fetch(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(names[name])
        return module if names[name] == f"{package}.{name}" else getattr(module, name)

    return fetch, lambda: sorted(names)
