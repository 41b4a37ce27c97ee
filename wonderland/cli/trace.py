"""trace: show what a function or a module does, primitive by primitive, with its cost and memory."""

import argparse
import inspect
import math
from typing import Any

from wonderland.cli.target import line, named
from wonderland.core.errors import WonderlandError

LARGEST = 100_000_000


def options(verb: argparse.ArgumentParser) -> None:
    """What can be said to trace."""
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
    verb.add_argument("--reverse", action="store_true", help="the program that computes the gradients instead")
    verb.add_argument("--code", action="store_true", help="print Python that runs instead of a table")
    verb.add_argument(
        "--html", metavar="FILE", nargs="?", const="trace.html", help="write a page to look at (default trace.html)"
    )


def run(found: argparse.Namespace) -> int:
    """Trace, and print a table, or Python, or write a page."""
    shapes = [_shape(text) for text in found.shapes]
    thing = named(found.target, "a function of tensors or what builds a module")
    from torch import nn

    from wonderland.autodiff import trace
    from wonderland.core import files

    if not isinstance(thing, nn.Module) and callable(thing) and _builds(thing):
        thing = _built(thing, found.target)
    if not callable(thing):
        raise WonderlandError(f"{found.target} is a {type(thing).__name__}, and a function or a module is traced.")
    inputs = [_input(sizes, vocab) for sizes, vocab in shapes]
    try:
        made = trace(thing, *inputs)
    except WonderlandError:
        raise
    except Exception as error:
        sizes = " ".join(found.shapes) or "no inputs"
        raise WonderlandError(
            f"{found.target} could not be run on {sizes} ({type(error).__name__}: {line(error)}): say its inputs with --shapes."
        ) from error
    made = made.reverse() if found.reverse else made
    if found.html:
        files.write_text(found.html, made.html())
        print(f"The trace is in {found.html}")
    else:
        print(made.code() if found.code else made.table())
    return 0


def _shape(text: str) -> tuple[list[int], int]:
    """(sizes, how many values integers take; 0 for floating point numbers)."""
    sizes, _, vocab = text.partition(":")
    try:
        found = [] if sizes in ("-", "") else [int(size) for size in sizes.split(",")]
        count = int(vocab) if vocab else 0
    except ValueError:
        found, count = [0], 0
    if any(size < 1 for size in found) or count < 0:
        raise WonderlandError(
            f"{text!r} is not the shape of an input: write positive sizes such as 2,17,64, or 2,17:50."
        )
    if math.prod(found) > LARGEST:
        raise WonderlandError(f"Inputs have at most {LARGEST:,} numbers here: a smaller shape shows the same steps.")
    return found, count


def _input(sizes: list[int], vocab: int) -> Any:
    import torch

    generator = torch.Generator().manual_seed(0)
    if vocab:
        return torch.randint(vocab, sizes, generator=generator)
    return torch.randn(sizes, generator=generator)


def _builds(thing: Any) -> bool:
    """Whether something builds what is traced: a class, or a function without arguments."""
    try:
        return isinstance(thing, type) or not inspect.signature(thing).parameters
    except (TypeError, ValueError):
        return False


def _built(kind: Any, target: str) -> Any:
    try:
        return kind()
    except Exception as error:
        raise WonderlandError(
            f"{target} could not be built without arguments ({type(error).__name__}: {line(error)}): "
            "name a module that is built, or a function."
        ) from error
