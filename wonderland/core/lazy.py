"""Doors that open when someone walks through: a package's names are imported at their first use."""

import importlib
from collections.abc import Callable
from typing import Any


def door(package: str, names: dict[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package whose public names live in the modules given by `names`."""

    def fetch(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(names[name]), name)

    return fetch, lambda: sorted(names)
