"""Tables in databases: SQLite files by the standard library, other databases through SQLAlchemy, by a URL."""

import re
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pandas as pd

from wonderland.core import WonderlandError, nearest, need
from wonderland.core.limits import VARIABLE, beyond, check, limit
from wonderland.data.bounds import check_names
from wonderland.data.json_table import frame_of

SUFFIXES = (".db", ".sqlite", ".sqlite3")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+]*://")
_BATCH = 1_000
_SECRET = re.compile(r"(?<=[?&])([^=&#]*(?:password|passwd|pwd|secret|token)[^=&#]*)=[^&#]*", re.IGNORECASE)


def is_url(source: Any) -> bool:
    """Whether a source is the URL of a database.

    >>> is_url("sqlite:///sales.db?table=orders"), is_url("sales.db")
    (True, False)
    """
    return isinstance(source, str) and _SCHEME.match(source) is not None


def recorded_url(url: str) -> str:
    """The URL as a run records it: without passwords.

    >>> recorded_url("postgresql://ann:secret@host/db?table=t")
    'postgresql://ann@host/db?table=t'
    >>> recorded_url("postgresql://host/db?password=secret&table=t")
    'postgresql://host/db?password=&table=t'
    """
    scheme, _, rest = url.partition("://")
    place = re.split(r"[/?#]", rest, maxsplit=1)[0]
    user, at, host = place.rpartition("@")
    options = _SECRET.sub(r"\1=", rest[len(place) :])
    return f"{scheme}://{user.split(':')[0]}{at}{host}{options}"


def read_url(url: str, sheet: str | None = None) -> tuple[pd.DataFrame, str]:
    """The table or query that a URL names, and what to call it."""
    shown = recorded_url(url)
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise WonderlandError(f"{shown} is not a valid URL ({error}).") from error
    given = {key: values[-1] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
    table, query = given.pop("table", None) or sheet, given.pop("query", None)
    if table is not None and query is not None:
        raise WonderlandError(f"{shown} names both a table and a query: give one of them.")
    if parts.scheme == "sqlite":
        path = Path(unquote(parts.path[1:]))
        return read_sqlite(path, table, query), f"{path.name} {table or 'query'}"
    if parts.scheme in ("http", "https", "ftp", "s3", "file"):
        raise WonderlandError(f"{shown} is an address, and only files and databases are read: save it to a file first.")
    rest = "&".join(f"{key}={quote(value)}" for key, value in given.items())
    bare = re.split(r"[?#]", url, maxsplit=1)[0] + (f"?{rest}" if rest else "")
    frame = _by_sqlalchemy(bare, shown, table, query)
    return frame, f"{parts.path.strip('/') or parts.scheme} {table or 'query'}"


def read_sqlite(path: Path, table: str | None = None, query: str | None = None) -> pd.DataFrame:
    """A table of a SQLite file, which is opened for reading only; the only one there, where none is named."""
    if not path.is_file():
        raise WonderlandError(f"There is no file {path}.")
    check("table_bytes", path.stat().st_size, path)
    try:
        connection = sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True)
    except sqlite3.Error as error:
        raise WonderlandError(f"{path} cannot be opened as a SQLite database ({error}).") from error
    try:
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(limit("line_bytes"), 1_000_000_000))
        # A view in the file, or a query that the config.json of a run brings, may compute without end.
        end = time.monotonic() + limit("query_seconds")
        connection.set_progress_handler(lambda: time.monotonic() > end, 100_000)
        listed = connection.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name"
        )
        names = [str(name) for (name,) in listed]
        if query is None:
            chosen = _chosen(table, names, str(path))
            query = 'SELECT * FROM "{}"'.format(chosen.replace('"', '""'))
        elif not query.lstrip().lower().startswith(("select", "with")):
            raise WonderlandError(f"The query of {path} does not begin with SELECT or WITH: only reading is possible.")
        cursor = connection.execute(query)
        return _fetched(cursor, [column[0] for column in cursor.description], str(path))
    except sqlite3.Error as error:
        if "interrupted" in str(error):
            allowed = limit("query_seconds")
            raise WonderlandError(
                f"{path}: reading took more than {allowed:,} s. Name a table, not a view. If you trust it, raise the limit: "
                f"{VARIABLE}=query_seconds={max(60, 10 * allowed)}."
            ) from error
        raise WonderlandError(f"{path} cannot be read as a SQLite database ({error}).") from error
    finally:
        connection.close()


def _by_sqlalchemy(url: str, shown: str, table: str | None, query: str | None) -> pd.DataFrame:
    sql = need("sqlalchemy", extra="sql", why="to read databases")
    try:
        engine = sql.create_engine(url)
    except ImportError as error:
        raise WonderlandError(f"{shown} needs a driver that is not installed ({error}).") from error
    except sql.exc.SQLAlchemyError as error:
        raise WonderlandError(f"{shown} is not the URL of a database that is known: {_first_line(error)}") from error
    try:
        with engine.connect() as connection:
            if query is None:
                names = sorted(sql.inspect(connection).get_table_names() + sql.inspect(connection).get_view_names())
                schema, dot, plain = (table or "").rpartition(".")
                chosen = plain if dot else _chosen(table, names, shown)
                statement = sql.select(sql.text("*")).select_from(sql.table(chosen, schema=schema or None))
            else:
                statement = sql.text(query)
            result = connection.execution_options(stream_results=True).execute(statement)
            return _fetched(result, list(result.keys()), shown)
    except sql.exc.SQLAlchemyError as error:
        raise WonderlandError(f"{shown} cannot be read: {_first_line(error)}") from error
    finally:
        engine.dispose()


def _chosen(table: str | None, names: Sequence[str], where: str) -> str:
    """The table that is named, or the only one."""
    known = ", ".join(map(repr, names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    if table is not None:
        if table not in names:
            raise WonderlandError(f"{where} has no table {table!r}.{nearest(table, names)} Its tables are {known}.")
        return table
    if not names:
        raise WonderlandError(f"{where} has no tables.")
    if len(names) > 1:
        raise WonderlandError(
            f"{where} has {len(names)} tables: {known}. Name one with --sheet, or ?table=NAME in a URL."
        )
    return names[0]


def _fetched(cursor: Any, names: list[str], where: str) -> pd.DataFrame:
    """The rows of a cursor, fetched in batches and never more cells than the limit."""
    check_names(names, where)
    rows: list[Any] = []
    size, most = 0, limit("table_bytes")
    while batch := cursor.fetchmany(_BATCH):
        rows += batch
        size += sum(len(cell) for row in batch for cell in row if isinstance(cell, str | bytes))
        if len(rows) * len(names) > limit("table_cells"):
            raise beyond("table_cells", where)
        if size > most:
            raise beyond("table_bytes", where)
    if not rows:
        raise WonderlandError(f"{where} has no rows. Add rows, or name another table.")
    cells = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    return frame_of({name: [_text(cell) for cell in column] for name, column in cells.items()})


def _text(cell: Any) -> Any:
    return bytes(cell).decode("utf-8", "replace") if isinstance(cell, bytes | bytearray | memoryview) else cell


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
