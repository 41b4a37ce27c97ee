"""Options of questions about texts."""

from dataclasses import dataclass

from wonderland.core.options import option
from wonderland.kinds.options import KindOptions


@dataclass(frozen=True)
class Options(KindOptions):
    """Questions with the text that each is about, answered by a part of it (SQuAD JSON, JSON lines, a table)."""

    column: str | None = option(help="in a table, the column of texts (default: by its name)", metavar="COLUMN")
    question: str | None = option(help="in a table, the column of questions (default: by its name)", metavar="COLUMN")
    target: str | None = option(help="in a table, the column of answers (default: by its name)", metavar="COLUMN")
    encoding: str | None = option(
        help="encoding of the file, such as cp1252 (default: found out, and reported)", metavar="NAME"
    )


@dataclass(frozen=True)
class PredictOptions:
    """What can be said to predict for a run that answers questions."""

    answers: str | None = option(None, help="a .json file for the answers by the id of their question", metavar="FILE")
