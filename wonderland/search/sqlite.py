"""A study in a SQLite file: one table of entries, a transaction for each turn."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wonderland.core import WonderlandError
from wonderland.search.database import LostDatabase
from wonderland.search.entry_table import TABLE, EntryTable
from wonderland.search.presence import LockFiles

PATIENCE = 120.0  # seconds to wait for the turn of another writer


class SQLite(EntryTable):
    """Entries of one study of a SQLite file on a local disk; workers lock files beside it."""

    restore = "restore the file"

    def __init__(self, path: Path, study: str):
        super().__init__(study, f"the study {study} in {path}")
        self.path = path
        locks = LockFiles(path.with_name(f"{path.name}.workers"))
        self.present, self.is_alive, self.is_inhabited = locks.present, locks.is_alive, locks.is_inhabited

    @contextmanager
    def _guarded(self) -> Iterator[sqlite3.Connection]:
        try:
            if self._connection is None:
                if not self.path.parent.is_dir():
                    raise WonderlandError(f"There is no folder {self.path.parent} for the database {self.path.name}.")
                self._connection = sqlite3.connect(
                    self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
                )
                self._connection.execute("PRAGMA synchronous = FULL")
                self._connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {TABLE} (study TEXT, number INTEGER, entry TEXT NOT NULL, PRIMARY KEY (study, number))"
                )
            yield self._connection
        except sqlite3.Error as error:
            self.close()
            text = str(error)
            if "full" in text:
                raise WonderlandError(
                    f"No room left to write {self.path}. Free some space and try again; what was saved before is intact."
                ) from OSError(28, "No space left on device")
            kind = LostDatabase if "locked" in text or "busy" in text else WonderlandError
            raise kind(
                f"{self.path} cannot be used as a SQLite database ({text}). Choose another file with --study."
            ) from error

    def exists(self) -> bool:
        """Whether the study was begun."""
        return self.path.is_file() and bool(self.read())

    def names(self) -> list[str]:
        """The studies of the file."""
        if not self.path.is_file():
            return []
        with self._guarded() as session:
            return [row[0] for row in session.execute(f"SELECT DISTINCT study FROM {TABLE} ORDER BY study")]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """A transaction in which no other writes; it is committed, on disk, at the end."""
        with self._guarded() as session:
            session.execute("BEGIN IMMEDIATE")
            try:
                self._read(session)
                with self._undone():
                    yield
                    session.execute("COMMIT")
            except BaseException:
                if self._connection is not None and session.in_transaction:
                    session.execute("ROLLBACK")
                raise

    def read(self) -> list[dict[str, Any]]:
        """All entries, those of others included."""
        with self._guarded() as session:
            self._read(session)
        return self.entries

    def _read(self, session: sqlite3.Connection) -> None:
        rows = session.execute(
            f"SELECT number, entry FROM {TABLE} WHERE study = ? AND number >= ? ORDER BY number",
            (self.study, len(self.entries)),
        ).fetchall()
        self._take(rows)

    def _insert(self, number: int, text: str) -> None:
        self._connection.execute(
            f"INSERT INTO {TABLE} (study, number, entry) VALUES (?, ?, ?)", (self.study, number, text)
        )
