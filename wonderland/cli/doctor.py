"""doctor: run one training step of a model of yours, and report problems with their layer and remedy."""

import argparse
from typing import Any

from wonderland.cli.target import line, named
from wonderland.core.errors import WonderlandError

_RULES = {"adam": "Adam", "adamw": "AdamW", "sgd": "SGD"}


def options(verb: argparse.ArgumentParser) -> None:
    """What can be said to the doctor."""
    verb.add_argument(
        "target",
        metavar="MODULE:FACTORY",
        help="a function that gives (model, batch), (model, batch, loss) or (model, batch, loss, optimizer): "
        "package.module:name or path/to/file.py:name",
    )
    verb.add_argument("--lr", type=float, metavar="RATE", help="try this learning rate for a few steps")
    verb.add_argument("--optimizer", choices=sorted(_RULES), help="the rule to try it with (default adam)")
    verb.add_argument("--steps", type=int, default=8, metavar="N", help="how many steps to try it for (default 8)")
    verb.add_argument("--layers", action="store_true", help="also show the numbers of every module")


def run(found: argparse.Namespace) -> int:
    """Examine, and show the findings; 1 if there are any."""
    if found.lr is not None and not 0 < found.lr < float("inf"):
        raise WonderlandError(f"lr must be a positive number, not {found.lr}.")
    (model, batch, loss, optimizer), written = _made(found.target)
    from wonderland.cli import show
    from wonderland.understand import doctor

    if found.optimizer is not None:
        import torch

        optimizer = getattr(torch.optim, _RULES[found.optimizer])
    diagnosis = doctor(model, batch, loss, optimizer=optimizer, lr=found.lr, steps=found.steps, line=written)
    said = f"{diagnosis}\n{diagnosis.table()}" if found.layers else str(diagnosis)
    for row in said.splitlines():
        show.console.print(show._text(row), markup=False, highlight=False, soft_wrap=True)
    return 0 if diagnosis.healthy else 1


def _made(target: str) -> tuple[tuple[Any, Any, Any, Any], str]:
    """What a factory gives, as model, batch, loss and optimizer; and the line where it is written."""
    thing = named(target, "a function that gives (model, batch)")
    code = getattr(thing, "__code__", None)
    written = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""
    if callable(thing):
        try:
            thing = thing()
        except (Exception, SystemExit) as error:
            raise WonderlandError(
                f"{target} could not be called without arguments ({type(error).__name__}: {line(error)}): "
                "name a function that gives (model, batch)."
            ) from error
    from torch import nn

    if not isinstance(thing, tuple | list) or not 2 <= len(thing) <= 4 or not isinstance(thing[0], nn.Module):
        raise WonderlandError(
            f"{target} gives a {type(thing).__name__}, and the doctor needs (model, batch), (model, batch, loss) "
            "or (model, batch, loss, optimizer)."
        )
    model, batch, loss, optimizer = (*thing, None, None)[:4]
    return (model, batch, loss, optimizer), written
