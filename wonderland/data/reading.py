"""Reading: what the user says about how a table file is written; what is left out is found out."""

import codecs
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from wonderland.core import WonderlandError

DELIMITER_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": r"\s+", "pipe": "|"}


@dataclass(frozen=True)
class Reading:
    """How a file is written: its encoding, the delimiter and quote of its cells, and which of its tables is meant (`sheet`).

    >>> Reading(delimiter="tab").separator
    '\\t'
    """

    encoding: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    sheet: str | None = None

    def __post_init__(self):
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except (LookupError, ValueError) as error:
                raise WonderlandError(
                    f"There is no encoding {self.encoding!r}: name one such as utf-8, cp1252, latin-1, cp1251, utf-16, "
                    "shift_jis or gb18030."
                ) from error
        if self.separator is not None and not _one_character(self.separator) and self.separator != r"\s+":
            raise WonderlandError(
                f"The delimiter is one character, or one of tab, comma, semicolon, pipe and space, not {self.delimiter!r}."
            )
        if self.quote not in (None, "none") and not _one_character(self.quote):
            raise WonderlandError(
                f"The quote is one character, or none where cells are not quoted, not {self.quote!r}."
            )

    @property
    def separator(self) -> str | None:
        """The delimiter as a character; a pattern for blanks of any length; None to find it out."""
        return None if self.delimiter is None else DELIMITER_NAMES.get(self.delimiter.lower(), self.delimiter)

    @property
    def quote_character(self) -> str:
        """The character that quotes cells; "" where none does."""
        return '"' if self.quote is None else "" if self.quote == "none" else self.quote

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Reading":
        """The reading among options that were given."""
        return cls(**{name: options[name] for name in READING if options.get(name) is not None})


READING = tuple(field.name for field in fields(Reading))


def _one_character(text: str) -> bool:
    return len(text) == 1 and text.isascii() and text not in "\r\n\0"


@dataclass
class Written:
    """A source with what the user says about how it is written, and columns to keep as text; `contents` is what was read."""

    source: Any
    reading: Reading
    as_text: tuple[str, ...] = ()
    contents: Any = None
