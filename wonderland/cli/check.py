"""check: try laws such as causality on a module of yours or of any library, and say where one is broken."""

import argparse
import importlib
import importlib.util
import math
import os
import sys
from types import ModuleType
from typing import Any

from wonderland.core.errors import WonderlandError, nearest

LARGEST = 10_000_000


def options(verb: argparse.ArgumentParser) -> None:
    """What can be said to check."""
    verb.add_argument(
        "target",
        metavar="MODULE:FACTORY",
        help="what builds the module: package.module:Name or path/to/file.py:Name (a class, a function, or the module)",
    )
    verb.add_argument("--input", metavar="SIZES", help="shape of the input, such as 2,17,64 (batch, time, features)")
    verb.add_argument("--integers", type=int, metavar="VOCAB", help="the input holds integers below VOCAB")
    verb.add_argument("--output", metavar="NAME", help="the part of the answer to look at, such as logits")
    verb.add_argument("--mask", metavar="NAME", help="the argument that hides padding, such as attention_mask")
    verb.add_argument("--side", choices=["right", "left"], default="right", help="where padding goes (default right)")
    verb.add_argument("--laws", metavar="NAMES", help="laws to try, separated by commas (default: what it promises)")


def run(found: argparse.Namespace) -> int:
    """Check, and show a table of verdicts; 1 if a law is broken."""
    module = _built(found.target)
    from wonderland.cli import show
    from wonderland.laws import check

    names = None if found.laws is None else [name.strip() for name in found.laws.split(",")]
    verdicts = check(module, _example(found), names)
    show.table(
        f"{found.target}: {show.counted(len(verdicts), 'law')}",
        [{"law": row["law"], "outcome": row["outcome"], "found": _words(row)} for row in (v.row() for v in verdicts)],
    )
    return 1 if verdicts.broken else 0


def _words(row: dict[str, str]) -> str:
    measured = f"error {row['error']}, allowed {row['allowed']}" if row["error"] else ""
    if row["outcome"] == "holds" or not row["witness"]:
        return "; ".join(text for text in (measured, row["witness"]) if text)
    return row["witness"]


def _example(found: argparse.Namespace) -> Any:
    from wonderland.laws import Example

    if found.input is None:
        for name in ("integers", "output", "mask"):
            if getattr(found, name) is not None:
                raise WonderlandError(f"--{name} says how to read an input: give its shape with --input 2,17,64 too.")
        return None
    try:
        shape = [int(size) for size in found.input.split(",")]
    except ValueError:
        shape = []
    if not shape or min(shape) < 1:
        raise WonderlandError(f"{found.input!r} is not the shape of an input: write positive sizes such as 2,17,64.")
    if math.prod(shape) > LARGEST or (found.integers or 0) > LARGEST:
        raise WonderlandError(f"Laws are tried on inputs of at most {LARGEST:,} numbers: a small input shows the same.")
    output = int(found.output) if found.output and found.output.isdigit() else found.output
    how: dict[str, Any] = {"output": output, "mask": found.mask, "side": found.side}
    if found.integers is None:
        return Example.floats(*shape, **how)
    if found.integers < 2:
        raise WonderlandError(
            f"Integers below {found.integers} leave nothing to change: --integers must be at least 2."
        )
    return Example.tokens(*shape, vocab=found.integers, **how)


def _built(target: str) -> Any:
    """The module behind package.module:Name or path/to/file.py:Name."""
    place, _, name = target.rpartition(":")
    if not place or not name:
        raise WonderlandError(
            f"{target!r} names no factory: write package.module:Name or path/to/file.py:Name, with what builds the module."
        )
    thing: Any = _imported(place)
    for step in name.split("."):
        if not hasattr(thing, step):
            raise WonderlandError(f"There is no {step!r} in {place}.{nearest(step, vars(thing))}")
        thing = getattr(thing, step)
    from torch import nn

    if not isinstance(thing, nn.Module) and callable(thing):
        try:
            thing = thing()
        except (Exception, SystemExit) as error:
            raise WonderlandError(
                f"{target} could not be called without arguments ({type(error).__name__}: {_line(error)}): "
                "name a function that builds the module."
            ) from error
    if not isinstance(thing, nn.Module):
        raise WonderlandError(f"{target} gives a {type(thing).__name__}, and laws are checked on a torch module.")
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
        raise WonderlandError(f"{place} could not be imported ({type(error).__name__}: {_line(error)}).") from error


def _line(error: BaseException) -> str:
    return (str(error).splitlines() or ["no message"])[0]
