"""Options of pairs of texts."""

from dataclasses import dataclass

from wonderland.core.options import option
from wonderland.kinds.options import FileOptions, RowOptions, TokenOptions


@dataclass(frozen=True)
class Options(TokenOptions, RowOptions, FileOptions):
    """Pairs of texts: a source that is read, and a target to write."""

    task: str | None = option(help="what is learned", choices=("translation",))
    drop: tuple[str, ...] = option((), help="leave a column out; may be repeated", metavar="COLUMN")
