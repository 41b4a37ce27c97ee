"""Options of texts that belong together."""

from dataclasses import dataclass

from wonderland.core.options import option
from wonderland.kinds.options import FileOptions


@dataclass(frozen=True)
class Options(FileOptions):
    """Two texts a row that belong together, such as question and answer: learns to find the second by the first (--task matching)."""

    task: str | None = option(help="what is learned", choices=("matching",))
    column: str | None = option(help="the column of queries (default: the first column of sentences)", metavar="COLUMN")
    target: str | None = option(
        help="the column of texts to find (default: the second column of sentences)", metavar="COLUMN"
    )


@dataclass(frozen=True)
class PredictOptions:
    """What can be said to predict for a run that finds texts."""

    top: int = option(10, help="how many texts are shown for each query", least=1, most=1000)
