"""Import an object of the user's code that a command names: package.module:Name or path/to/file.py:Name."""

import importlib
import importlib.util
import os
import sys
from types import ModuleType
from typing import Any

from wonderland.core.errors import WonderlandError, nearest


def import_target(target: str, expected: str) -> Any:
    """The object that a target names; `expected` describes it in error messages."""
    place, _, name = target.rpartition(":")
    if not place or not name:
        raise WonderlandError(
            f"{target!r} names no factory: write package.module:Name or path/to/file.py:Name, with {expected}."
        )
    value: Any = _import_module(place)
    for attribute in name.split("."):
        if not hasattr(value, attribute):
            raise WonderlandError(f"There is no {attribute!r} in {place}.{nearest(attribute, vars(value))}")
        value = getattr(value, attribute)
    return value


def _import_module(place: str) -> ModuleType:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        if not os.path.isfile(place):
            raise WonderlandError(f"There is no file {place}.")
        spec = importlib.util.spec_from_file_location(os.path.basename(place)[:-3], place)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(spec.name, module)
        spec.loader.exec_module(module)
        return module
    except WonderlandError:
        raise
    except Exception as error:
        raise WonderlandError(
            f"{place} could not be imported ({type(error).__name__}: {first_line(error)})."
        ) from error


def first_line(error: BaseException) -> str:
    """The first line of an error message."""
    return (str(error).splitlines() or ["no message"])[0]
