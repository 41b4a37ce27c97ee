"""Images given as arrays: numbers of any range as uint8 pixels, and targets as class codes or values."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from wonderland.core import WonderlandError, nearest
from wonderland.data.dataset import MULTILABEL, TASKS, Finding, counted
from wonderland.data.folders import natural

LARGEST_SIDE = 4096


def from_numbers(
    x: Any, name: str, layout: str | None, value_range
) -> tuple[np.ndarray, tuple[float, float], list[Finding]]:
    """Arrays of any numbers as uint8 (n, c, h, w), the range that became 0..255, and findings about the conversion."""
    x = np.asarray(x)
    if x.dtype == object or x.dtype.kind not in "buif":
        raise WonderlandError(
            f"{name} holds no numbers of one shape: images of different sizes belong in a folder of files."
        )
    x = _channels_first(x, name, layout)
    if 0 in x.shape:
        raise WonderlandError(f"{name} is empty: its shape is {x.shape}.")
    if max(x.shape[2:]) > LARGEST_SIDE:
        raise WonderlandError(
            f"{name} has images of {x.shape[2]} x {x.shape[3]} pixels; the limit is {LARGEST_SIDE} a side."
        )
    if x.dtype == np.uint8 and value_range is None:
        return np.ascontiguousarray(x), (0.0, 255.0), []
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        row = int(np.flatnonzero(~np.isfinite(x).all((1, 2, 3)))[0])
        raise WonderlandError(f"{name}[{row}] holds NaN or infinite pixels. Repair or remove that image.")
    low, high = _range(x) if value_range is None else (float(value_range[0]), float(value_range[1]))
    if not (np.isfinite([low, high]).all() and low < high):
        raise WonderlandError(f"value_range must be two finite numbers, the lower first, not {value_range!r}.")
    scaled = (x.astype(np.float64) - low) * (255 / (high - low))
    pixels = np.ascontiguousarray(np.clip(np.rint(scaled), 0, 255).astype(np.uint8))
    findings = []
    if (low, high) != (0.0, 255.0):
        findings.append(Finding("scale", name, len(x), f"Pixel values from {low:g} to {high:g} were scaled to 0..255."))
    if outside := int(((scaled < -0.5) | (scaled > 255.5)).any((1, 2, 3)).sum()):
        text = (
            f"{counted(outside, 'image has', 'images have')} values outside of {low:g} to {high:g}, which were cut off."
        )
        findings.append(Finding("cut off", name, outside, text))
    return pixels, (low, high), findings


def _range(x: np.ndarray) -> tuple[float, float]:
    """The values that become 0 and 255: the usual ranges 0..1 and 0..255 where they fit, otherwise minimum and maximum."""
    low, high = float(x.min()), float(x.max())
    if low < 0:
        return low, high if high > low else low + 1
    if 0.5 < high <= 1:
        return 0.0, 1.0
    return 0.0, 255.0 if high == 0 or 128 <= high <= 255 else high


def _channels_first(x: np.ndarray, name: str, layout: str | None) -> np.ndarray:
    """Images as (n, c, h, w), whatever the layout they come in."""
    if layout not in (None, "nhw", "nhwc", "nchw"):
        raise WonderlandError(f"layout is 'nhw', 'nhwc' or 'nchw', not {layout!r}.")
    if x.ndim == 3 and layout in (None, "nhw"):
        return x[:, None]
    if x.ndim != 4 or layout == "nhw":
        raise WonderlandError(
            f"{name} has the shape {x.shape}; images come as (n, h, w), (n, h, w, c) or (n, c, h, w)."
        )
    first, last = x.shape[1] in (1, 3), x.shape[3] in (1, 3)
    if layout is None and first and last:
        raise WonderlandError(
            f"{name} has the shape {x.shape}, where channels may be first or last: say layout='nchw' or 'nhwc'."
        )
    layout = layout or ("nchw" if first else "nhwc")
    if not (first if layout == "nchw" else last):
        raise WonderlandError(
            f"{name} has the shape {x.shape}; images have 1 channel (grey) or 3 (colour), first or last."
        )
    return x if layout == "nchw" else x.transpose(0, 3, 1, 2)


def labels(y: Any, n: int, name: str, classes: Sequence[str] | None, task: str | None):
    """Targets as class codes or values, with the classes, the task, and a finding where the task was inferred."""
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if (
        y.ndim == 2
        and len(y) == n
        and y.dtype.kind in "biuf"
        and task in (None, MULTILABEL)
        and np.isin(y, (0, 1)).all()
    ):
        named = [str(code) for code in range(y.shape[1])] if classes is None else [str(label) for label in classes]
        if len(named) != y.shape[1]:
            raise WonderlandError(f"{name} has {y.shape[1]} labels for each image and {len(named)} names for them.")
        text = f"Each image has any number of {len(named)} labels: the task is multilabel."
        return y.astype(np.float64), named, MULTILABEL, [Finding("task", name, len(named), text)]
    if y.ndim != 1 or len(y) != n:
        raise WonderlandError(
            f"{name} has {n} images and targets of the shape {y.shape}: give one target for each image."
        )
    if task is not None and task not in TASKS:
        raise WonderlandError(
            f"task is 'binary', 'multiclass' or 'regression', not {task!r}.{nearest(str(task), TASKS)}"
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise WonderlandError(f"The target of {name}[{int(np.flatnonzero(~np.isfinite(y))[0])}] is NaN or infinite.")
    if y.dtype == object and any(value is None or value != value for value in y):
        row = next(i for i, value in enumerate(y) if value is None or value != value)
        raise WonderlandError(f"The target of {name}[{row}] is missing.")
    findings = []
    if task is None and classes is None and y.dtype.kind in "iuf":
        whole, distinct = bool((y == np.rint(y)).all()), len(np.unique(y))
        if not whole or distinct > max(20, n // 2):
            task = "regression"
            text = f"The target has {distinct:,} different numbers, so values are predicted (regression), not classes."
            findings.append(Finding("task", name, distinct, text))
    if task == "regression":
        if y.dtype.kind not in "biuf":
            raise WonderlandError(f"A regression needs numbers, and the targets of {name} are text.")
        if n > 1 and y.min() == y.max():
            raise WonderlandError(f"Every target of {name} is {float(y[0]):g}: there is nothing to learn.")
        return y.astype(np.float64), None, task, findings
    if classes is not None:
        classes = [str(label) for label in classes]
        if len(set(classes)) != len(classes):
            raise WonderlandError("classes names one class twice.")
        if y.dtype.kind not in "biu" or y.min() < 0 or y.max() >= len(classes):
            raise WonderlandError(
                f"With {len(classes)} classes, the targets of {name} are whole numbers from 0 to {len(classes) - 1}."
            )
        codes = y.astype(np.int64)
    else:
        names = [name_of(value) for value in y]
        classes = sorted(set(names), key=natural)
        code_of = {label: code for code, label in enumerate(classes)}
        codes = np.array([code_of[label] for label in names], np.int64)
    if len(np.unique(codes)) < 2:
        classes = [classes[codes[0]]]
    return codes, classes, class_task(classes, task, f"{name} holds images of"), findings


def class_task(classes: list[str], task: str | None, start: str) -> str:
    """Binary or multiclass by the number of classes, checked against the `task` asked for; `start` begins error messages."""
    if len(classes) < 2:
        raise WonderlandError(f"{start} one class only, {classes[0]!r}: there is nothing to tell apart.")
    if task is not None and task not in TASKS:
        raise WonderlandError(
            f"task is 'binary', 'multiclass' or 'regression', not {task!r}.{nearest(str(task), TASKS)}"
        )
    if task == "binary" and len(classes) != 2:
        raise WonderlandError(f"{start} {len(classes)} classes: that is a multiclass task, not a binary one.")
    return task or ("binary" if len(classes) == 2 else "multiclass")


def fingerprint_of_arrays(pixels: np.ndarray, y: np.ndarray | None, classes: Sequence[str] | None) -> str:
    """SHA-256 over pixels, targets and class names."""
    digest = hashlib.sha256(f"{pixels.shape}|{list(classes) if classes is not None else None}|".encode())
    digest.update(pixels.data)
    if y is not None:
        digest.update(f"|{y.dtype}|".encode())
        digest.update(np.ascontiguousarray(y).data)
    return digest.hexdigest()


def name_of(value: Any) -> str:
    """A label as its user would write it: 3.0 is '3'."""
    number = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if number else str(value)


def is_side(value: Any) -> bool:
    """Whether a value is a possible height or width in pixels."""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LARGEST_SIDE
