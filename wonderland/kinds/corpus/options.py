"""Options of plain text."""

from dataclasses import dataclass

from wonderland.core.options import option
from wonderland.kinds.options import TokenOptions


@dataclass(frozen=True)
class Options(TokenOptions):
    """Plain text, to train a language model."""

    task: str | None = option(help="what is learned", choices=("language",))
    drop: tuple[str, ...] = option((), help="leave a column out; may be repeated", metavar="COLUMN")
    lines: bool = option(False, help="each line of a text file is a separate document")
    tokenizer: str | None = option(help="use this tokenizer.json, or the one in this folder", metavar="FILE")
