"""Studies in databases: which URLs are read, and the files that belong to a study on each machine."""

import contextlib
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from wonderland.core import WonderlandError, write_text
from wonderland.core.files import read_json
from wonderland.data.sql import is_url, recorded_url
from wonderland.search.presence import PLACE

if TYPE_CHECKING:
    from wonderland.search.postgresql import PostgreSQL
    from wonderland.search.sqlite import SQLite

SCHEMES = ("postgresql", "postgres", "sqlite")


class LostDatabase(WonderlandError):
    """The database did not answer; it may answer later."""


def is_database(location: object) -> bool:
    """Whether the place of a study is the URL of a database."""
    return is_url(location)


def open_database(url: str, name: str) -> "PostgreSQL | SQLite":
    """The journal of a study in a database: postgresql://user@host/database, or sqlite:///path/of/file.db."""
    if not re.fullmatch(r"[^\x00-\x1f]{1,200}", name):
        raise WonderlandError(f"The name of a study is a line of at most 200 characters, not {name!r}.")
    try:
        scheme, path = urlsplit(url).scheme, urlsplit(url).path
    except ValueError as error:
        raise WonderlandError(f"{recorded_url(url)} is not a valid URL ({error}).") from error
    if scheme == "sqlite":
        from wonderland.search.sqlite import SQLite

        if len(path) < 2:
            raise WonderlandError("A study in SQLite needs a file: write sqlite:///studies.db.")
        return SQLite(Path(unquote(path[1:])), name)
    if scheme in ("postgresql", "postgres"):
        from wonderland.search.postgresql import PostgreSQL

        return PostgreSQL(url, name)
    raise WonderlandError(
        f"A study lies in a folder, in postgresql://user@host/database, or in sqlite:///file.db, not in {scheme}://."
    )


def folder_of(name: str, identity: str) -> Path:
    """The folder on this machine for the weights of a study in a database: that of an earlier worker, or a free one."""
    stem = re.sub(r"[^\w.-]+", "-", name).strip(".-") or "study"
    for number in range(1, 10_000):
        folder = Path("studies") / (stem if number == 1 else f"{stem}-{number}")
        if not folder.exists() or not any(folder.iterdir()) or _study_of(folder) == identity:
            return folder
    raise WonderlandError(f"There are ten thousand folders called {stem} in studies: remove some.")


def _study_of(folder: Path) -> str | None:
    try:
        return read_json(folder / f"{PLACE}.json")["study"]
    except (WonderlandError, LookupError, TypeError):
        return None


def place_in(folder: Path, identity: str) -> str:
    """The random name of this folder, written at its first use: workers with the same one see the same weights."""
    path = folder / f"{PLACE}.json"
    if _study_of(folder) != identity:
        if path.exists():
            raise WonderlandError(f"{folder} holds the weights of another study: work in another folder.")
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f".{PLACE}.{os.getpid()}.json"
        write_text(part, json.dumps({"study": identity, "place": os.urandom(8).hex()}))
        try:
            with contextlib.suppress(FileExistsError):
                os.link(part, path)  # the first of several workers names the place
        finally:
            part.unlink()
    try:
        place = read_json(path)["place"]
        if not re.fullmatch(r"[0-9a-f]{16}", place):
            raise ValueError(place)
    except (LookupError, TypeError, ValueError) as error:
        raise WonderlandError(f"{path} is damaged: remove the folder, its trials begin again elsewhere.") from error
    return place
