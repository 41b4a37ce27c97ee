"""check: check laws such as causality on a module of yours or of any library, and show where one is broken."""

import argparse
import math
from typing import Any

from wonderland.cli.target import first_line, import_target
from wonderland.core.errors import WonderlandError

LARGEST = 10_000_000


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of check."""
    verb.add_argument(
        "target",
        metavar="MODULE:FACTORY",
        help="what builds the module: package.module:Name or path/to/file.py:Name (a class, a function, or the module)",
    )
    verb.add_argument("--input", metavar="SIZES", help="shape of the input, such as 2,17,64 (batch, time, features)")
    verb.add_argument("--integers", type=int, metavar="VOCAB", help="the input holds integers below VOCAB")
    verb.add_argument("--output", metavar="NAME", help="the part of the output to check, such as logits")
    verb.add_argument("--mask", metavar="NAME", help="the argument that hides padding, such as attention_mask")
    verb.add_argument("--side", choices=["right", "left"], default="right", help="where padding goes (default right)")
    verb.add_argument(
        "--laws",
        metavar="NAMES",
        action="append",
        help="laws to check, separated by commas; may be repeated (default: those the module states)",
    )


def run(args: argparse.Namespace) -> int:
    """Check, and show a table of verdicts; 1 if a law is broken."""
    module = _build_module(args.target)
    from wonderland.cli import show
    from wonderland.laws import check

    example = _example(args)
    if example is None and not isinstance(getattr(module, "dim", None), int):
        raise WonderlandError(f"{args.target} has no attribute dim: give the shape of an input with --input 2,17,64.")
    names = None if args.laws is None else [name.strip() for name in ",".join(args.laws).split(",")]
    verdicts = check(module, example, names)
    show.table(
        f"{args.target}: {show.counted(len(verdicts), 'law')}",
        [
            {"law": row["law"], "outcome": row["outcome"], "found": _describe(row)}
            for row in (v.row() for v in verdicts)
        ],
    )
    return 1 if verdicts.broken else 0


def _describe(row: dict[str, str]) -> str:
    measured = f"error {row['error']}, allowed {row['allowed']}" if row["error"] else ""
    if row["outcome"] == "holds" or not row["witness"]:
        return "; ".join(text for text in (measured, row["witness"]) if text)
    return row["witness"]


def _example(args: argparse.Namespace) -> Any:
    from wonderland.laws import Example

    if args.input is None:
        for name in ("integers", "output", "mask"):
            if getattr(args, name) is not None:
                raise WonderlandError(f"--{name} says how to read an input: give its shape with --input 2,17,64 too.")
        return None
    try:
        shape = [int(size) for size in args.input.split(",")]
    except ValueError:
        shape = []
    if not shape or min(shape) < 1:
        raise WonderlandError(f"{args.input!r} is not the shape of an input: write positive sizes such as 2,17,64.")
    if math.prod(shape) > LARGEST or (args.integers or 0) > LARGEST:
        raise WonderlandError(
            f"Laws are checked on inputs of at most {LARGEST:,} numbers: a small input shows the same."
        )
    output = int(args.output) if args.output and args.output.isdigit() else args.output
    options: dict[str, Any] = {"output": output, "mask": args.mask, "side": args.side}
    if args.integers is None:
        return Example.floats(*shape, **options)
    if args.integers < 2:
        raise WonderlandError(f"Integers below {args.integers} leave nothing to change: --integers must be at least 2.")
    return Example.tokens(*shape, vocab=args.integers, **options)


def _build_module(target: str) -> Any:
    """The module behind package.module:Name or path/to/file.py:Name."""
    module = import_target(target, "what builds the module")
    from torch import nn

    if not isinstance(module, nn.Module) and callable(module):
        try:
            module = module()
        except (Exception, SystemExit) as error:
            raise WonderlandError(
                f"{target} could not be called without arguments ({type(error).__name__}: {first_line(error)}): "
                "name a function that builds the module."
            ) from error
    if not isinstance(module, nn.Module):
        raise WonderlandError(f"{target} gives a {type(module).__name__}, and laws are checked on a torch module.")
    return module
