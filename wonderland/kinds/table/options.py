"""Options of tables."""

from dataclasses import dataclass

from wonderland.core.options import option
from wonderland.kinds.options import FileOptions, RowOptions


@dataclass(frozen=True)
class Options(RowOptions, FileOptions):
    """Rows of numbers, categories, dates and short texts."""

    task: str | None = option(
        help="what is learned (default: inferred)",
        choices=("binary", "multiclass", "classification", "regression", "generate"),
    )
    group: str | None = option(help="rows with the same value stay in one part of the split", metavar="COLUMN")
    time: str | None = option(help="split by this time: train on the past, test on the future", metavar="COLUMN")
    keep: tuple[str, ...] = option(
        (), help="keep a column that looks like the target; may be repeated", metavar="COLUMN"
    )
    blend: bool = option(
        False, help="add linear models to the networks; all are weighted by their scores on held-out rows"
    )
    drop: tuple[str, ...] = option((), help="leave a column out; may be repeated", metavar="COLUMN")
