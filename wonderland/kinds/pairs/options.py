"""Options of pairs of texts."""

from dataclasses import dataclass

from wonderland.core.options import option
from wonderland.kinds.options import RowOptions, TokenOptions


@dataclass(frozen=True)
class Options(TokenOptions, RowOptions):
    """Pairs of texts: one is read, the other written."""

    task: str | None = option(help="what is learned", choices=("translation",))
    drop: tuple[str, ...] = option((), help="leave a column out; may be repeated", metavar="COLUMN")
