"""What calibration and conformal prediction need from their arrays, and the sentence when they do not get it."""

from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError


def finite(name: str, value: Any, dims: int | None = None) -> ndarray:
    """The argument `name` as float64, finite and not empty, with `dims` axes where that is asked.

    >>> finite("y", [1, 2], 1)
    array([1., 2.])
    """
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError) as error:
        raise WonderlandError(f"`{name}` is not made of numbers.") from error
    if dims is not None and array.ndim != dims:
        raise WonderlandError(f"`{name}` has shape {array.shape} and needs {dims} {'axis' if dims == 1 else 'axes'}.")
    if not array.size:
        raise WonderlandError(f"`{name}` is empty.")
    wrong = ~np.isfinite(array)
    if wrong.any():
        where = np.argwhere(wrong)[0]
        raise WonderlandError(
            f"`{name}` holds {array[tuple(where)]} at row {where[0] if array.ndim else 0}: only finite numbers can be used."
        )
    return array


def same_rows(first: str, a: ndarray, second: str, b: ndarray) -> None:
    """Raise unless both have as many rows."""
    if len(a) != len(b):
        raise WonderlandError(f"`{second}` has {len(b)} rows where `{first}` has {len(a)}.")


def class_labels(y: Any, classes: int, *, name: str = "y") -> ndarray:
    """Labels from 0 to classes - 1 as integers. Shapes: (n,)."""
    array = finite(name, y, 1)
    wrong = (array != np.round(array)) | (array < 0) | (array >= classes)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise WonderlandError(
            f"`{name}` holds {array[row]:g} at row {row}: labels are whole numbers from 0 to {classes - 1}."
        )
    return array.astype(np.int64)


def class_probabilities(value: Any, *, name: str = "probabilities", sums: bool = True) -> ndarray:
    """Probabilities of classes, which sum to 1 where `sums` says so. Shapes: (n, c), or (n,) for the second of two classes -> (n, c)."""
    array = finite(name, value)
    if array.ndim == 1:
        array = np.stack([1 - array, array], 1)
    if array.ndim != 2 or array.shape[1] < 2:
        raise WonderlandError(
            f"`{name}` has shape {array.shape}: it needs a row for each example and a column for each class."
        )
    if array.min() < 0 or array.max() > 1 + 1e-6:
        raise WonderlandError(
            f"`{name}` holds {array.min() if array.min() < 0 else array.max():g}: probabilities lie between 0 and 1."
        )
    off = np.abs(array.sum(1) - 1)
    if sums and off.max() > 1e-4:
        row = int(off.argmax())
        raise WonderlandError(
            f"`{name}` sums to {array[row].sum():.4g} in row {row}: probabilities of classes sum to 1."
        )
    return array


def class_logits(value: Any, *, name: str = "logits") -> ndarray:
    """Logits of classes. Shapes: (n, c), or (n,) for the log-odds of the second of two classes -> (n, c)."""
    array = finite(name, value)
    if array.ndim == 1:
        array = np.stack([np.zeros_like(array), array], 1)
    if array.ndim != 2 or array.shape[1] < 2:
        raise WonderlandError(
            f"`{name}` has shape {array.shape}: it needs a row for each example and a column for each class."
        )
    return array
