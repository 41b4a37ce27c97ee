"""Things of the user's that a command names: package.module:Name or path/to/file.py:Name."""

import importlib
import importlib.util
import os
import sys
from types import ModuleType
from typing import Any

from wonderland.core.errors import WonderlandError, nearest


def named(target: str, what: str) -> Any:
    """What a target names; `what` says in an error what belongs there."""
    place, _, name = target.rpartition(":")
    if not place or not name:
        raise WonderlandError(
            f"{target!r} names no factory: write package.module:Name or path/to/file.py:Name, with {what}."
        )
    thing: Any = _imported(place)
    for step in name.split("."):
        if not hasattr(thing, step):
            raise WonderlandError(f"There is no {step!r} in {place}.{nearest(step, vars(thing))}")
        thing = getattr(thing, step)
    return thing


def _imported(place: str) -> ModuleType:
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
        raise WonderlandError(f"{place} could not be imported ({type(error).__name__}: {line(error)}).") from error


def line(error: BaseException) -> str:
    """The first line of what an error says."""
    return (str(error).splitlines() or ["no message"])[0]
