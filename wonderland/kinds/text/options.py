"""Options of texts with classes or numbers."""

from dataclasses import dataclass

from wonderland.core.options import option
from wonderland.kinds.options import FileOptions, RowOptions, TokenOptions


@dataclass(frozen=True)
class Options(TokenOptions, RowOptions, FileOptions):
    """Texts with a class or a number each."""

    task: str | None = option(
        help="what is learned (default: inferred)",
        choices=("binary", "multiclass", "classification", "multilabel", "regression"),
    )
    vectors: str | None = option(
        help="begin with the word vectors of this text file (GloVe, word2vec, fastText)", metavar="FILE"
    )
    keep: tuple[str, ...] = option(
        (), help="use a column that looks uninformative, such as row numbers; may be repeated", metavar="COLUMN"
    )
    drop: tuple[str, ...] = option((), help="leave a column out; may be repeated", metavar="COLUMN")
