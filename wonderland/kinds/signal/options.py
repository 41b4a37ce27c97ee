"""Options of signals."""

from dataclasses import dataclass

from wonderland.core.options import option
from wonderland.kinds.options import KindOptions


@dataclass(frozen=True)
class Options(KindOptions):
    """Many series with a class or a number each: a .ts file, a long table, a folder of tables."""

    task: str | None = option(
        help="what is learned (default: inferred)", choices=("binary", "multiclass", "regression")
    )
    target: str | None = option(help="the column to predict (default: inferred)", metavar="COLUMN")
    series: str | None = option(help="the column that names the series, where there are several", metavar="COLUMN")
    time: str | None = option(
        help="the column of times: a table is split by it, a series runs along it (default for series: by its name)",
        metavar="COLUMN",
    )
    group: str | None = option(help="rows with the same value stay in one part of the split", metavar="COLUMN")
