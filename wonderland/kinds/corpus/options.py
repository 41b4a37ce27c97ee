"""Options of plain text."""

from dataclasses import dataclass

from wonderland.core.options import option
from wonderland.kinds.options import TokenOptions


@dataclass(frozen=True)
class Options(TokenOptions):
    """Plain text, to learn a language from."""

    task: str | None = option(help="what is learned", choices=("language",))
    drop: tuple[str, ...] = option((), help="leave a column out; may be repeated", metavar="COLUMN")
    lines: bool = option(False, help="each line of a text file is a document of its own")
    tokenizer: str | None = option(help="cut text with this tokenizer.json, or the one in this folder", metavar="FILE")
