"""The entries of a study in a database: what studies in PostgreSQL and SQLite share."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from wonderland.core import WonderlandError

TABLE = "wonderland_journal"
MOST_ENTRY = 8 << 20


class EntryTable(ABC):
    """The entries that were read, in order, and the connection, closed at the end; with the interface of `Journal`.

    An entry is a row of the table; its number is its key, so that no two writers can write the same one.
    """

    one_place = False
    restore: ClassVar[str]  # what a user does about damaged entries

    def __init__(self, study: str, about: str):
        self.study, self.about = study, about
        self.entries: list[dict[str, Any]] = []
        self._connection: Any = None

    @abstractmethod
    def _guarded(self) -> Any:
        """A context of the connection, made anew where it was lost; errors of the driver as sentences."""

    @abstractmethod
    def _read(self, session: Any) -> None:
        """Read the entries that others wrote since."""

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
        self._connection, self.entries = None, []

    def __del__(self):
        if getattr(self, "_connection", None) is not None:
            self.close()

    def _take(self, rows: Iterable[tuple[int, Any]]) -> None:
        """Add rows (number, text), which follow the entries that were read."""
        for number, text in rows:
            check_size(text, self.about)
            try:
                entry = json.loads(text)
            except (ValueError, RecursionError):
                entry = None
            if number != len(self.entries) or not isinstance(entry, dict):
                raise WonderlandError(f"{self.about} is damaged at entry {len(self.entries)}: {self.restore}.")
            self.entries.append(entry)

    def append(self, entry: dict[str, Any]) -> None:
        """Write one entry; only while `locked`."""
        assert self._connection is not None
        text = json.dumps(entry, allow_nan=False)
        check_size(text, self.about)
        self._insert(len(self.entries), text)
        self.entries.append(json.loads(text))

    @abstractmethod
    def _insert(self, number: int, text: str) -> None:
        """Write one row."""

    @contextmanager
    def _undone(self) -> Iterator[None]:
        """Forget the entries that are added within if it ends in an error, as the database does."""
        before = len(self.entries)
        try:
            yield
        except BaseException:
            del self.entries[before:]
            raise


def check_size(text: object, about: str) -> None:
    """Refuse an entry that no study writes."""
    if not isinstance(text, str) or len(text) > MOST_ENTRY:
        raise WonderlandError(f"{about} has an entry that is no text of at most {MOST_ENTRY:,} characters.")
