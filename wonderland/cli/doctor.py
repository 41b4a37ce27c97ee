"""doctor: run one training step of a model of yours, and report problems with their layer and remedy."""

import argparse
from typing import Any

from wonderland.cli.target import first_line, import_target
from wonderland.core.errors import WonderlandError

_OPTIMIZERS = {"adam": "Adam", "adamw": "AdamW", "sgd": "SGD"}


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of doctor."""
    verb.add_argument(
        "target",
        metavar="MODULE:FACTORY",
        help="a function that gives (model, batch), (model, batch, loss) or (model, batch, loss, optimizer): "
        "package.module:name or path/to/file.py:name",
    )
    verb.add_argument("--lr", type=float, metavar="RATE", help="try this learning rate for a few steps")
    verb.add_argument("--optimizer", choices=sorted(_OPTIMIZERS), help="the optimizer for --lr (default adam)")
    verb.add_argument("--steps", type=int, default=8, metavar="N", help="number of steps for --lr (default 8)")
    verb.add_argument("--layers", action="store_true", help="also show the numbers of every module")


def run(args: argparse.Namespace) -> int:
    """Examine, and show the findings; 1 if there are any."""
    if args.lr is not None and not 0 < args.lr < float("inf"):
        raise WonderlandError(f"lr must be a positive number, not {args.lr}.")
    (model, batch, loss, optimizer), location = _call_factory(args.target)
    from wonderland.cli import show
    from wonderland.understand import doctor

    if args.optimizer is not None:
        import torch

        optimizer = getattr(torch.optim, _OPTIMIZERS[args.optimizer])
    diagnosis = doctor(model, batch, loss, optimizer=optimizer, lr=args.lr, steps=args.steps, line=location)
    text = f"{diagnosis}\n{diagnosis.table()}" if args.layers else str(diagnosis)
    for row in text.splitlines():
        show.console.print(show.printable_cell(row), markup=False, highlight=False, soft_wrap=True)
    return 0 if diagnosis.healthy else 1


def _call_factory(target: str) -> tuple[tuple[Any, Any, Any, Any], str]:
    """Model, batch, loss and optimizer from the user's factory, and the location of its source."""
    result = import_target(target, "a function that gives (model, batch)")
    code = getattr(result, "__code__", None)
    location = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""
    if callable(result):
        try:
            result = result()
        except (Exception, SystemExit) as error:
            raise WonderlandError(
                f"{target} could not be called without arguments ({type(error).__name__}: {first_line(error)}): "
                "name a function that gives (model, batch)."
            ) from error
    from torch import nn

    if not isinstance(result, tuple | list) or not 2 <= len(result) <= 4 or not isinstance(result[0], nn.Module):
        raise WonderlandError(
            f"{target} gives a {type(result).__name__}, and the doctor needs (model, batch), (model, batch, loss) "
            "or (model, batch, loss, optimizer)."
        )
    model, batch, loss, optimizer = (*result, None, None)[:4]
    return (model, batch, loss, optimizer), location
