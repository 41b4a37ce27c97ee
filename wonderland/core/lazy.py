"""Lazy imports: a package's public names are imported when they are first used."""

import importlib
from collections.abc import Callable
from typing import Any


def lazy_attributes(package: str, names: dict[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Module-level `__getattr__` and `__dir__` for a package.

    `names` maps each public name to the module that defines it, or, for a submodule, to the submodule itself.
    """

    def load(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(names[name])
        return module if names[name] == f"{package}.{name}" else getattr(module, name)

    return load, lambda: sorted(names)
