"""trace: show the primitives that a function or a module computes, with cost and memory."""

import argparse
import inspect
import math
from typing import Any

from wonderland.cli.target import first_line, import_target
from wonderland.core.errors import WonderlandError, printable

LARGEST = 100_000_000


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of trace."""
    verb.add_argument(
        "target",
        metavar="MODULE:FUNCTION",
        help="a function of tensors, a module, or a class or function that builds one: package.module:name or file.py:name",
    )
    verb.add_argument(
        "--shapes",
        nargs="*",
        metavar="SIZES",
        default=[],
        help="one for each input, such as 2,17,64; 2,17:50 for integers below 50; - for a number without axes",
    )
    verb.add_argument("--reverse", action="store_true", help="show the program that computes the gradients")
    verb.add_argument("--code", action="store_true", help="print runnable Python instead of a table")
    verb.add_argument(
        "--html", metavar="FILE", nargs="?", const="trace.html", help="write an HTML page (default trace.html)"
    )


def run(args: argparse.Namespace) -> int:
    """Trace, and print a table, or Python, or write a page."""
    shapes = [_parse_shape(text) for text in args.shapes]
    function = import_target(args.target, "a function of tensors or what builds a module")
    from torch import nn

    from wonderland.autodiff import trace
    from wonderland.core import files

    if not isinstance(function, nn.Module) and callable(function) and _is_factory(function):
        function = _build_module(function, args.target)
    if not callable(function):
        raise WonderlandError(f"{args.target} is a {type(function).__name__}, and a function or a module is traced.")
    inputs = [_random_input(sizes, vocab) for sizes, vocab in shapes]
    try:
        program = trace(function, *inputs)
    except WonderlandError:
        raise
    except Exception as error:
        sizes = " ".join(args.shapes) or "no inputs"
        raise WonderlandError(
            f"{args.target} could not be run on {sizes} ({type(error).__name__}: {first_line(error)}): give its inputs with --shapes."
        ) from error
    program = program.reverse() if args.reverse else program
    if args.html:
        files.write_text(args.html, program.html())
        print(printable(f"The trace is in {args.html}"))
    else:
        print(printable(program.code() if args.code else program.table(), "\n\t"))
    return 0


def _parse_shape(text: str) -> tuple[list[int], int]:
    """Sizes, and the number of values that integers take; 0 for floating point numbers."""
    sizes, _, vocab = text.partition(":")
    try:
        shape = [] if sizes in ("-", "") else [int(size) for size in sizes.split(",")]
        count = int(vocab) if vocab else 0
    except ValueError:
        shape, count = [0], 0
    if any(size < 1 for size in shape) or count < 0:
        raise WonderlandError(
            f"{text!r} is not the shape of an input: write positive sizes such as 2,17,64, or 2,17:50."
        )
    if math.prod(shape) > LARGEST:
        raise WonderlandError(f"Inputs have at most {LARGEST:,} numbers here: a smaller shape shows the same steps.")
    return shape, count


def _random_input(sizes: list[int], vocab: int) -> Any:
    import torch

    generator = torch.Generator().manual_seed(0)
    if vocab:
        return torch.randint(vocab, sizes, generator=generator)
    return torch.randn(sizes, generator=generator)


def _is_factory(value: Any) -> bool:
    """Whether a value builds the module to trace: a class, or a function without arguments."""
    try:
        return isinstance(value, type) or not inspect.signature(value).parameters
    except (TypeError, ValueError):
        return False


def _build_module(factory: Any, target: str) -> Any:
    try:
        return factory()
    except Exception as error:
        raise WonderlandError(
            f"{target} could not be built without arguments ({type(error).__name__}: {first_line(error)}): "
            "name a module that is built, or a function."
        ) from error
