"""A study in PostgreSQL: one table of entries, advisory locks for turns and for workers that are alive."""

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from wonderland.core import WonderlandError, need
from wonderland.data.sql import recorded_url
from wonderland.search.database import LostDatabase
from wonderland.search.entry_table import TABLE, EntryTable

BEAT = 3.0  # seconds between two signs of life to the server
# The server ends the session of a machine that is gone after 25 to 30 seconds, and with it the locks.
SESSION = """
SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; SET tcp_user_timeout = 30000;
SET lock_timeout = '120s'; SET idle_in_transaction_session_timeout = '60s'; SET synchronous_commit = on
"""


class PostgreSQL(EntryTable):
    """Entries of one study of a database.

    Writers take turns by an advisory lock of a transaction. A worker is alive while its session holds an advisory lock, which the server
    releases when the session ends.
    """

    restore = f"restore the table {TABLE}"

    def __init__(self, url: str, study: str):
        super().__init__(study, f"the study {study} in {recorded_url(url)}")
        self.url = url
        self._driver: Any = need("psycopg", extra="search", why="for a study in PostgreSQL")

    def connect(self) -> Any:
        """A new session."""
        try:
            connection = self._driver.connect(
                self.url, connect_timeout=10, autocommit=True, keepalives_idle=10, keepalives_interval=5,
                keepalives_count=3, application_name="wonderland", client_encoding="UTF8",
            )  # fmt: skip
            connection.execute(SESSION)
            return connection
        except self._driver.Error as error:
            raise LostDatabase(
                f"The database {recorded_url(self.url)} cannot be reached: {_sentence(error)} Check address, user and server."
            ) from error

    @contextmanager
    def _guarded(self) -> Iterator[Any]:
        """The session, made anew where it was lost; errors of the driver as sentences."""
        if self._connection is None or self._connection.closed:
            self._connection = self.connect()
        try:
            yield self._connection
        except (self._driver.OperationalError, self._driver.InterfaceError, self._driver.InternalError) as error:
            self.close()
            full = getattr(error, "sqlstate", None) in ("53100", "53200", "53400", "58030")
            kind = WonderlandError if full else LostDatabase
            raise kind(
                f"The database {recorded_url(self.url)} could not be used: {_sentence(error)} "
                "What was written before is kept; go on with the same command."
            ) from error
        except self._driver.Error as error:
            self.close()
            raise WonderlandError(
                f"The database {recorded_url(self.url)} refuses a study: {_sentence(error)} The user needs to create and write "
                f"the table {TABLE}."
            ) from error

    def exists(self) -> bool:
        """Whether the study was begun."""
        return bool(self.read())

    def names(self) -> list[str]:
        """The studies of the database."""
        with self._guarded() as session:
            if not self._has_table(session):
                return []
            return [row[0] for row in session.execute(f"SELECT DISTINCT study FROM {TABLE} ORDER BY study").fetchall()]

    def _has_table(self, session: Any) -> bool:
        return session.execute("SELECT to_regclass(%s)", (TABLE,)).fetchone()[0] is not None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """A transaction in which no other writes; it is committed, on disk, at the end."""
        with self._guarded() as session, session.transaction():
            session.execute("SELECT pg_advisory_xact_lock(%s)", (self._key("turn"),))
            if not self.entries:
                session.execute(
                    f"CREATE TABLE IF NOT EXISTS {TABLE} (study text, number bigint, entry text NOT NULL, PRIMARY KEY (study, number))"
                )
            self._read(session)
            with self._undone():
                yield

    def read(self) -> list[dict[str, Any]]:
        """All entries, those of others included."""
        with self._guarded() as session:
            if self.entries or self._has_table(session):
                self._read(session)
        return self.entries

    def _read(self, session: Any) -> None:
        rows = session.execute(
            f"SELECT number, entry FROM {TABLE} WHERE study = %s AND number >= %s ORDER BY number",
            (self.study, len(self.entries)),
        ).fetchall()
        self._take(rows)

    def _insert(self, number: int, text: str) -> None:
        self._connection.execute(
            f"INSERT INTO {TABLE} (study, number, entry) VALUES (%s, %s, %s)", (self.study, number, text)
        )

    def _key(self, name: str) -> int:
        """A number for an advisory lock: 64 bits of a digest."""
        return int.from_bytes(hashlib.sha256(f"{self.study}\0{name}".encode()).digest()[:8], signed=True)

    @contextmanager
    def present(self, name: str, place: str | None = None) -> Iterator[None]:
        """Be seen as alive, by a session of its own that is made anew when it is lost."""
        over = threading.Event()
        session = self._hold(name, place)
        keeper = threading.Thread(target=self._keep, args=(session, lambda: self._hold(name, place), over), daemon=True)
        keeper.start()
        try:
            yield
        finally:
            over.set()
            keeper.join(timeout=15)

    def _hold(self, name: str, place: str | None) -> Any:
        session = self.connect()
        try:
            session.execute("SELECT pg_advisory_lock(%s)", (self._key(name),))
            session.execute("SELECT pg_advisory_lock_shared(%s)", (self._key(f"place {place}"),))
        except self._driver.Error as error:
            session.close()
            raise LostDatabase(
                f"The database {recorded_url(self.url)} went away while a worker registered: {_sentence(error)} Go on with the same command."
            ) from error
        return session

    def _keep(self, session: Any, again: Callable[[], Any], over: threading.Event) -> None:
        while not over.wait(BEAT):
            try:
                session.execute("SELECT 1")
            except self._driver.Error:
                session.close()
                while not over.is_set():
                    try:
                        session = again()
                        break
                    except LostDatabase:
                        time.sleep(1)
        session.close()

    def is_alive(self, name: str | None) -> bool:
        """Whether the session of a worker still holds its lock."""
        return name is not None and self._is_held(name)

    def is_inhabited(self, place: str | None) -> bool:
        """Whether any worker that keeps its weights at a place is alive."""
        return place is not None and self._is_held(f"place {place}")

    def _is_held(self, name: str) -> bool:
        key = self._key(name)
        with self._guarded() as session:
            if not session.execute("SELECT pg_try_advisory_lock(%s)", (key,)).fetchone()[0]:
                return True
            session.execute("SELECT pg_advisory_unlock(%s)", (key,))
            return False


def _sentence(error: Exception) -> str:
    """The first line of what a driver says, as a sentence."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " ".join((lines[-1] if lines else type(error).__name__).split())[:200]
    return text if text.endswith((".", "?")) else f"{text}."
