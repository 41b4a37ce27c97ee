"""A table of paths as a set of images: one column names the files, another one what is learned."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError
from wonderland.data.columns import read_column
from wonderland.data.dataset import MULTILABEL, Finding
from wonderland.data.decode import SUFFIXES
from wonderland.data.folders import Listing, without_broken
from wonderland.data.labels import label_target, read_labels
from wonderland.data.target import choose_target, read_target
from wonderland.kinds.image.images import Images, _size

LOOKED_AT = 50


def path_column(frame: pd.DataFrame, folder: Path) -> str | None:
    """The column of a table that names image files, relative to the table's folder or absolute; None where there is none."""
    for name in frame.columns:
        cells = frame[name].dropna().head(LOOKED_AT)
        names = len(cells) and all(isinstance(cell, str) and _is_image(cell) for cell in cells)
        if names and any((folder / cell.strip()).is_file() for cell in cells):
            return str(name)
    return None


def open_list(path: Path, frame: pd.DataFrame, options: Any, *, size: int | None) -> Images:
    """The images of a table, with classes or values from its target column."""
    column = path_column(frame, path.parent)
    if column is None:
        raise WonderlandError(f"{path} has no column of paths to PNG, JPEG, WebP, GIF, BMP or TIFF files.")
    findings: list[Finding] = []
    names = [str(name) for name in frame.columns]
    columns = label_target(frame, options.target, options.task, (column,))
    if columns is not None:
        task = MULTILABEL
        y, classes, rows = read_labels(frame, columns, findings)
    else:
        target = choose_target(names, options.target, (column,), findings)
        if target not in names:
            raise WonderlandError(f"{path} has no column {target!r}. Its columns are {', '.join(names)}.")
        y, task, classes, rows = read_target(read_column(target, pd.Series(frame[target])), options.task, findings)
    cells = frame[column].astype("string")
    listing = Listing(path.parent, path.stem)
    for row in rows:
        if pd.isna(cells.iloc[row]):
            raise WonderlandError(f"{path} has no path in row {int(row) + 1}. Fill it in, or remove the row.")
        file = path.parent / str(cells.iloc[row]).strip()
        if not file.is_file() and not options.skip_broken:
            raise WonderlandError(
                f"{path} names {cells.iloc[row]} in row {int(row) + 1}, and there is no such file beside it. Correct the path, "
                "or leave out what cannot be read with skip_broken (--skip-broken)."
            )
        listing.files.append((file, str(row)))
    if options.skip_broken:
        listing, broken = without_broken(listing)
        findings += broken
    kept = np.array([int(label) for _, label in listing.files], np.int64)
    values = y[kept].astype(np.int64) if classes is not None and y.ndim == 1 else y[kept]
    images = Images.from_listing(listing, values, classes, task, size=_size(size))
    images.findings = [*findings, *images.findings]
    images.origin = {"kind": "image", "source": "list", "path": str(path), "size": [images.height, images.width]}
    return images


def _is_image(cell: str) -> bool:
    return Path(cell.strip()).suffix.casefold() in SUFFIXES
