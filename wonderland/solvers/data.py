"""Checks of the inputs of linear models: rows, targets, labels, ridge, and independence of columns."""

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, numbers
from wonderland.ops.algebra.conditioning import WORST, condition_number, dependent_columns


def rows(name: str, X: Numbers, features: int | None = None) -> Tensor:
    """A matrix of rows and features, with as many features as the model was fitted on."""
    matrix = numbers(name, X, 2)
    if features is not None and matrix.shape[1] != features:
        raise WonderlandError(f"`{name}` has {matrix.shape[1]} columns, but the model was fitted on {features}.")
    return matrix


def targets(X: Tensor, y: Numbers) -> Tensor:
    """A vector of real targets, one for each row of X."""
    vector = numbers("y", y, 1)
    if len(vector) != len(X):
        raise WonderlandError(f"`y` has {len(vector)} entries, but `X` has {len(X)} rows.")
    return vector


def labels(X: Tensor, y: Numbers, classes: int | None = None) -> Tensor:
    """A vector of integers from 0 (to classes - 1), one for each row of X."""
    vector = targets(X, y)
    wrong = (vector != vector.round()) | (vector < 0) | (vector >= (2**31 if classes is None else classes))
    if bool(wrong.any()):
        index = int(wrong.nonzero()[0])
        raise WonderlandError(
            f"`y` holds {vector[index].item():g} at index {index}: labels are whole numbers from 0"
            f"{'' if classes is None else f' to {classes - 1}'}."
        )
    return vector.long()


def strength(ridge: float) -> float:
    """The strength of a ridge penalty: a finite number, zero or more."""
    value = float(numbers("ridge", ridge, 0))
    if value < 0:
        raise WonderlandError(f"`ridge` has to be 0 or more, not {value:g}.")
    return value


def append_one(X: Tensor) -> Tensor:
    r"""A constant feature 1 as the last column, so that the bias is one of the weights.

    .. math:: w^\top x + b = [w, b]^\top [x, 1]

    Shapes: (n, c) -> (n, c + 1). Book: Alice 4.1.2.

    >>> append_one(torch.tensor([[2.0, 3.0]]))
    tensor([[2., 3., 1.]])
    """
    return torch.cat([X, X.new_ones(len(X), 1)], 1)


def full_rank(X: Tensor, bias: bool) -> None:
    """Refuse linearly dependent columns of X (and the constant column of the bias), and name them."""
    design = torch.cat([X.new_ones(len(X), 1), X], 1) if bias else X
    if len(design) < design.shape[1]:
        raise WonderlandError(
            f"`X` has {len(X)} rows for {design.shape[1]} unknowns: many solutions fit exactly. Pass ridge > 0, or more rows."
        )
    size = design.norm(dim=0)
    if bool((size > 0).all()) and condition_number(design / size) < WORST / 100:
        return
    columns = [index - bias for index in dependent_columns(design)] or ["unknown"]
    raise WonderlandError(
        f"Columns {', '.join(map(str, columns))} of `X` are combinations of the columns before them"
        f"{' and the bias' if bias else ''}: drop them, or pass ridge > 0."
    )
