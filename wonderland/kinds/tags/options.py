"""Options of tagged words."""

from dataclasses import dataclass

from wonderland.core.options import option
from wonderland.kinds.options import KindOptions


@dataclass(frozen=True)
class Options(KindOptions):
    """Words with a tag each (CoNLL columns, a table, JSON of tokens), or texts with marked spans (JSON lines)."""

    column: str | None = option(help="the column (from 1, or by name) or field that holds the words", metavar="COLUMN")
    target: str | None = option(
        help="the column or field that holds the tags or spans (default: inferred)", metavar="COLUMN"
    )
    encoding: str | None = option(
        help="encoding of the file, such as cp1252 (default: found out, and reported)", metavar="NAME"
    )


@dataclass(frozen=True)
class PredictOptions:
    """What can be said to predict for a run that tags."""

    tagged: str | None = option(
        None, help="a .conll or .tsv file for words with tags, or a .jsonl file for texts with spans", metavar="FILE"
    )
