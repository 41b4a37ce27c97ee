"""check: try laws such as causality on a module of yours or of any library, and say where one is broken."""

import argparse
import math
from typing import Any

from wonderland.cli.target import line, named
from wonderland.core.errors import WonderlandError

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
    verb.add_argument(
        "--laws",
        metavar="NAMES",
        action="append",
        help="laws to try, separated by commas; may be repeated (default: what it promises)",
    )


def run(found: argparse.Namespace) -> int:
    """Check, and show a table of verdicts; 1 if a law is broken."""
    module = _built(found.target)
    from wonderland.cli import show
    from wonderland.laws import check

    example = _example(found)
    if example is None and not isinstance(getattr(module, "dim", None), int):
        raise WonderlandError(
            f"{found.target} does not say its width: give the shape of an input with --input 2,17,64."
        )
    names = None if found.laws is None else [name.strip() for name in ",".join(found.laws).split(",")]
    verdicts = check(module, example, names)
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
    thing = named(target, "what builds the module")
    from torch import nn

    if not isinstance(thing, nn.Module) and callable(thing):
        try:
            thing = thing()
        except (Exception, SystemExit) as error:
            raise WonderlandError(
                f"{target} could not be called without arguments ({type(error).__name__}: {line(error)}): "
                "name a function that builds the module."
            ) from error
    if not isinstance(thing, nn.Module):
        raise WonderlandError(f"{target} gives a {type(thing).__name__}, and laws are checked on a torch module.")
    return thing
