"""Options that kinds of data share. Plain dataclasses: the shell reads them before torch is loaded."""

from dataclasses import dataclass

from wonderland.core.options import option

TOKENS = ("characters", "words", "bpe", "wordpiece", "unigram")
METHODS = ("full", "head", "lora", "qlora", "ia3", "bias")


@dataclass(frozen=True)
class KindOptions:
    """Options that every kind has; a kind adds its own in a subclass. Flags, checks and tables of docs derive from the fields."""

    strict: bool = option(False, help="stop at faults in the data instead of repairing them")


@dataclass(frozen=True)
class FileOptions(KindOptions):
    """How a table file is written, where that is not found out right; `wonderland.data.reading.Reading` has the same fields."""

    encoding: str | None = option(
        help="encoding of the file, such as cp1252 (default: found out, and reported)", metavar="NAME"
    )
    delimiter: str | None = option(
        help="what separates cells: a character, or tab, comma, semicolon, pipe, space (default: found out)",
        metavar="CHARACTER",
    )
    quote: str | None = option(
        help='the character around cells that hold the delimiter, or none (default ")', metavar="CHARACTER"
    )
    sheet: str | None = option(
        help="the sheet of a workbook, table of a database, or file in a zip file (default: the first that holds rows)",
        metavar="NAME",
    )


@dataclass(frozen=True)
class RowOptions(KindOptions):
    """Options of kinds that have rows with a target column."""

    target: str | None = option(help="the column to predict (default: inferred)", metavar="COLUMN")
    split: str | None = option(
        help="a column that says train, validation, calibration or test for each row; rows with an empty cell take no part",
        metavar="COLUMN",
    )


@dataclass(frozen=True)
class TokenOptions(KindOptions):
    """Options of kinds of text: how it becomes tokens, and a checkpoint to begin with."""

    column: str | None = option(help="the column or field that holds the text", metavar="COLUMN")
    tokens: str | None = option(help="kind of tokens (default: by size)", choices=TOKENS)
    vocab: int | None = option(help="largest size of the vocabulary", least=2)
    context: int | None = option(help="the context length in tokens", metavar="TOKENS", least=1)
    start: str | None = option(
        help="start from the checkpoint in this folder, saved by the transformers library",
        metavar="CHECKPOINT",
        flag="--from",
    )
    method: str | None = option(
        help="what is trained of a checkpoint (default full): everything, its head, or an adapter that is merged at the end",
        choices=METHODS,
    )

    def token_options(self) -> dict[str, str | int]:
        """The token options that were given: kind of tokens, size of the vocabulary, context."""
        asked = {"tokens": self.tokens, "vocab": self.vocab, "context": self.context}
        return {name: value for name, value in asked.items() if value is not None}
