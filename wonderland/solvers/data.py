"""Rows and targets as linear models take them, and the sentence when they are not."""

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, numbers
from wonderland.ops.algebra.conditioning import WORST, condition_number, dependent_columns


def rows(name: str, X: Numbers, features: int | None = None) -> Tensor:
    """A matrix of rows and features, with as many features as the model was fitted on."""
    found = numbers(name, X, 2)
    if features is not None and found.shape[1] != features:
        raise WonderlandError(f"`{name}` has {found.shape[1]} columns where the model was fitted on {features}.")
    return found


def targets(X: Tensor, y: Numbers) -> Tensor:
    """A vector of real targets, one a row of X."""
    found = numbers("y", y, 1)
    if len(found) != len(X):
        raise WonderlandError(f"`y` has {len(found)} entries where `X` has {len(X)} rows.")
    return found


def labels(X: Tensor, y: Numbers, classes: int | None = None) -> Tensor:
    """A vector of whole numbers from 0 (to classes - 1), one a row of X."""
    found = targets(X, y)
    wrong = (found != found.round()) | (found < 0) | (found >= (2**31 if classes is None else classes))
    if bool(wrong.any()):
        where = int(wrong.nonzero()[0])
        raise WonderlandError(
            f"`y` holds {found[where].item():g} at index {where}: labels are whole numbers from 0"
            f"{'' if classes is None else f' to {classes - 1}'}."
        )
    return found.long()


def strength(ridge: float) -> float:
    """The strength of a ridge penalty: a finite number, zero or more."""
    found = float(numbers("ridge", ridge, 0))
    if found < 0:
        raise WonderlandError(f"`ridge` has to be 0 or more, not {found:g}.")
    return found


def append_one(X: Tensor) -> Tensor:
    r"""The bias absorbed into the weights: a constant 1 as the last feature.

    .. math:: w^\top x + b = [w, b]^\top [x, 1]

    Shapes: (n, c) -> (n, c + 1). Book: Alice 4.1.2.

    >>> append_one(torch.tensor([[2.0, 3.0]]))
    tensor([[2., 3., 1.]])
    """
    return torch.cat([X, X.new_ones(len(X), 1)], 1)


def full_rank(X: Tensor, bias: bool) -> None:
    """Raise unless the columns of X (and the constant of the bias) are independent, naming those that are not."""
    design = torch.cat([X.new_ones(len(X), 1), X], 1) if bias else X
    if len(design) < design.shape[1]:
        raise WonderlandError(
            f"`X` has {len(X)} rows for {design.shape[1]} unknowns: many solutions fit exactly. Pass ridge > 0, or more rows."
        )
    size = design.norm(dim=0)
    if bool((size > 0).all()) and condition_number(design / size) < WORST / 100:
        return
    found = [index - bias for index in dependent_columns(design)] or ["unknown"]
    raise WonderlandError(
        f"Columns {', '.join(map(str, found))} of `X` are combinations of the columns before them"
        f"{' and the bias' if bias else ''}: drop them, or pass ridge > 0."
    )
