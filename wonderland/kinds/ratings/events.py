"""Events: who chose what, when, and how it was rated; each with what the user had chosen before."""

import hashlib
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from pandas.util import hash_pandas_object  # pyright: ignore[reportPrivateImportUsage]

from wonderland.core import WonderlandError, nearest
from wonderland.data.dataset import Dataset, Finding, counted

NAMES = {
    "user": ("user", "user_id", "userid", "customer", "customer_id", "reviewer", "reviewer_id", "reviewerid", "visitor_id", "visitorid", "session", "session_id"),
    "item": ("item", "item_id", "itemid", "movie", "movie_id", "movieid", "product", "product_id", "productid", "book", "book_id", "song", "track", "article_id", "isbn",
             "asin", "anime_id", "artist_id", "artistid", "song_id", "track_id", "game_id", "film", "business_id", "recipe_id", "course_id"),
    "rating": ("rating", "ratings", "score", "stars", "overall", "book_rating", "user_rating"),
    "when": ("timestamp", "time", "date", "datetime", "when", "unixreviewtime", "unix_timestamp", "ts", "created_at", "event_time", "review_date"),
}  # fmt: skip


PLAIN = re.compile(r"c\d+")
FEWEST = 8
ORDER = ("user", "item", "rating", "when")


def without_header(frame: Any) -> Any:
    """A table without names of columns, as u.data of MovieLens: user, item, rating, time, in this order."""
    plain = 2 <= frame.shape[1] <= 4 and all(PLAIN.fullmatch(str(name)) for name in frame.columns)
    return frame.set_axis(list(ORDER[: frame.shape[1]]), axis=1) if plain else frame


def names_of(cells: Any) -> Any:
    """Users or items as text; whole numbers without a decimal point, however the column holds them."""
    if pd.api.types.is_float_dtype(cells.dtype) and bool((cells % 1 == 0).all()):
        cells = cells.astype("int64")
    return cells.astype(str)


def columns_of(frame: Any, asked: dict[str, str | None]) -> dict[str, str]:
    """Which column is what: as asked, or by its name."""
    folded = {str(name).strip().casefold().replace(" ", "_").replace("-", "_"): str(name) for name in frame.columns}
    chosen = {}
    for role, names in NAMES.items():
        if asked.get(role):
            if asked[role] not in frame.columns:
                raise WonderlandError(
                    f"There is no column {asked[role]!r} (given as {role}).{nearest(str(asked[role]), map(str, frame.columns))}"
                )
            chosen[role] = str(asked[role])
            continue
        for name in names:
            if name in folded and folded[name] not in chosen.values():
                chosen[role] = folded[name]
                break
    return chosen


class Events(Dataset):
    """Rows in order of time: codes of users and items from 1, ratings where there are, and the place of each in its user's history."""

    kind, noun, task = "ratings", "events", "recommendation"
    classes = None

    def __init__(self, frame: pd.DataFrame, asked: dict[str, str | None], *, name: str, origin: dict[str, Any], goal: str | None,
                 known: tuple[list[str], list[str]] | None = None, need: tuple[str, ...] = ("user", "item")):  # fmt: skip
        self.name, self.origin, self.findings = name, origin, []
        self.roles = columns_of(frame, asked)
        for role in need:
            if role not in self.roles:
                raise WonderlandError(f"{name} has no column of {role}s: name it with {role} (--{role}).")
        table: Any = pd.DataFrame({role: frame[column] for role, column in self.roles.items()})
        if "item" not in table:
            table["item"] = None
        self.goal = goal or "ranking"
        table = self._tidy(table, need)
        self.frame = table
        table["user"] = users = names_of(table["user"])
        items = names_of(table["item"])
        self.user_names = sorted(users.unique()) if known is None else known[0]
        self.item_names = sorted(items.unique()) if known is None else known[1]
        self.users = codes(users, self.user_names)
        self.local = pd.factorize(users)[0]  # new users share the code 0, and still have histories of their own
        self.items = codes(items, self.item_names)
        self.ratings = table["rating"].to_numpy(np.float64) if "rating" in table else None
        self.times = table["when"].to_numpy(np.float64)
        self.y = self.ratings if self.goal == "rating" else self.items
        if known is None and "item" in need:
            self._check()
        digest = hashlib.sha256(self.goal.encode())
        for column in table:
            hashed: Any = hash_pandas_object(table[column].astype(str), index=False)  # pyright: ignore[reportCallIssue]
            digest.update(hashed.to_numpy().tobytes())
        self.fingerprint = digest.hexdigest()

    def _tidy(self, table: Any, need: tuple[str, ...]) -> Any:
        empty = table[list(need)].isna().any(axis=1)
        if empty.any():
            table = table[~empty]
            self._note(
                "missing",
                int(empty.sum()),
                f"{counted(int(empty.sum()), 'row has', 'rows have')} no user or no item and {'is' if empty.sum() == 1 else 'are'} left out.",
            )
        if "rating" in table:
            cells: Any = pd.to_numeric(table["rating"], errors="coerce")
            numbers: Any = cells.replace([np.inf, -np.inf], np.nan)
            bad = numbers.isna()
            if self.goal == "rating" and bad.all():
                example = str(table["rating"].iloc[0])[:40] if len(table) else ""
                raise WonderlandError(
                    f"Ratings must be numbers, and {self.roles['rating']!r} holds {example!r}: rank items instead (--goal ranking)."
                )
            if bad.all():
                table = table.drop(columns="rating")
                self._note(
                    "text",
                    int(bad.sum()),
                    f"Column {self.roles['rating']!r} holds no numbers, so every row counts as a choice.",
                )
            elif bad.any():
                table, numbers = table[~bad], numbers[~bad]
                self._note(
                    "rating",
                    int(bad.sum()),
                    f"{counted(int(bad.sum()), 'rating is', 'ratings are')} no number and {'is' if bad.sum() == 1 else 'are'} left out.",
                )
                table = table.assign(rating=numbers)
            else:
                table = table.assign(rating=numbers)
        elif self.goal == "rating":
            raise WonderlandError(
                f"{self.name} has no column of ratings: name it with rating (--rating), or rank items (--goal ranking)."
            )
        table = table.assign(when=self._times(table))
        table = table.sort_values("when", kind="stable")
        if "item" in need:
            twice = table.duplicated(["user", "item"], keep="last")
            if twice.any():
                table = table[~twice]
                self._note(
                    "duplicate",
                    int(twice.sum()),
                    f"{counted(int(twice.sum()), 'row repeats', 'rows repeat')} a user and an item; the last of each is kept.",
                )
        if not len(table):
            raise WonderlandError(f"{self.name} has no rows with a user and an item.")
        return table.reset_index(drop=True)

    def _times(self, table: Any) -> np.ndarray:
        if "when" not in table:
            if "user" in table and "item" in self.roles:
                self._note(
                    "time", 1, "There is no column of times: rows are taken to be in order of time (--when COLUMN)."
                )
            return np.arange(len(table), dtype=np.float64)
        numbers: Any = pd.to_numeric(table["when"], errors="coerce")
        if numbers.isna().any():
            moments: Any = pd.to_datetime(table["when"], errors="coerce", utc=True, format="mixed")
            numbers = (moments - pd.Timestamp("1970-01-01", tz="UTC")).dt.total_seconds()
        if numbers.isna().any():
            raise WonderlandError(
                f"Column {self.roles['when']!r} holds {counted(int(numbers.isna().sum()), 'cell', 'cells')} that are no times: clean them, or name another with when (--when)."
            )
        if "user" in table and "item" in self.roles and numbers.nunique() < 4 and len(numbers) >= FEWEST:
            self._note(
                "time",
                1,
                f"Column {self.roles['when']!r} holds {counted(numbers.nunique(), 'time', 'different times')}: rows are taken to be in order of time.",
            )
            return np.arange(len(table), dtype=np.float64)
        return numbers.to_numpy(np.float64)

    def _check(self) -> None:
        for noun, names in (("user", self.user_names), ("item", self.item_names)):
            if len(names) < 2:
                raise WonderlandError(f"There is only one {noun} in {self.name}, so there is nothing to tell apart.")
        if self.goal == "rating" and self.ratings is not None and np.ptp(self.ratings) == 0:
            raise WonderlandError(
                "Every rating is the same, so there is nothing to learn: rank items instead (--goal ranking)."
            )

    def _note(self, kind: str, count: int, text: str) -> None:
        self.findings.append(Finding(kind, self.name, count, text))

    def __len__(self) -> int:
        return len(self.frame)

    def summary(self) -> list[dict[str, Any]]:
        rows = [{"name": self.roles.get("user", "user"), "role": "user", "distinct": len(set(self.users.tolist()))},
                {"name": self.roles.get("item", "item"), "role": "item", "distinct": len(set(self.items.tolist()))}]  # fmt: skip
        if self.ratings is not None:
            rows.append({"name": self.roles["rating"], "role": "rating", "distinct": len(np.unique(self.ratings))})
        return rows

    def headline(self) -> str:
        """The events in one line."""
        return f"{self.name}: {len(self):,} events, {len(self.user_names):,} users, {len(self.item_names):,} items, {self.goal}"

    def example(self, i: int) -> dict[str, Any]:
        return {
            name: value.item() if isinstance(value, np.generic) else value for name, value in self.frame.iloc[i].items()
        }


def codes(names: Any, known: list[str]) -> np.ndarray:
    """The place of each name among those known, from 1; 0 for a new one."""
    place = {name: code for code, name in enumerate(known, 1)}
    return np.array([place.get(name, 0) for name in names], np.int64)


class Past:
    """What each user chose before a moment: earlier events of these rows, after those that were known already.

    `known` is (begins, items): the items of user u are items[begins[u] : begins[u + 1]].
    """

    def __init__(self, events: Events, known: tuple[np.ndarray, np.ndarray] | None = None):
        times = np.asarray(events.times)
        order = np.lexsort((np.arange(len(events)), times, events.local))
        self.items, self.known, self.users = events.items[order], known, events.users
        moments, users = times[order], events.local[order]
        self.begin, self.stop = np.zeros(len(events), np.int64), np.zeros(len(events), np.int64)
        edges = np.searchsorted(users, np.arange(users.max(initial=-1) + 2))
        for begin, stop in pairwise(edges):
            # Events of one moment do not know of each other.
            earlier = np.searchsorted(moments[begin:stop], moments[begin:stop], side="left")
            self.begin[order[begin:stop]], self.stop[order[begin:stop]] = begin, begin + earlier

    def before(self, row: int) -> np.ndarray:
        """Items that the user of a row had chosen before it, oldest first."""
        recent, user = self.items[self.begin[row] : self.stop[row]], self.users[row]
        return recent if self.known is None else np.concatenate([of_user(self.known, user), recent])


def of_user(known: tuple[np.ndarray, np.ndarray], user: int) -> np.ndarray:
    """The items of a user that are known; none for a new one."""
    begins, items = known
    return items[begins[user] : begins[user + 1]] if 0 < user < len(begins) - 1 else items[:0]


class Queries(Dataset):
    """Users that ask for recommendations, each once, with what they chose."""

    kind, noun, task = "ratings", "users", None
    classes, y = None, None

    def __init__(self, events: Events, known: tuple[np.ndarray, np.ndarray]):
        self.name, self.origin, self.findings, self.fingerprint = (
            events.name,
            events.origin,
            events.findings,
            events.fingerprint,
        )
        names = events.frame["user"].astype(str).to_numpy()
        self.names, first = np.unique(names, return_index=True)
        self.users = events.users[first]
        given = [events.items[(names == name) & (events.items > 0)] for name in self.names]
        self.past = [
            np.concatenate([of_user(known, user), items]) for user, items in zip(self.users, given, strict=True)
        ]
        every = sum(not len(np.setdiff1d(np.arange(1, len(events.item_names) + 1), items)) for items in self.past)
        if every:
            self.findings = [*self.findings, Finding("all chosen", self.name, every,
                f"{counted(every, 'user has', 'users have')} chosen every item already, so nothing is left to recommend.")]  # fmt: skip
        fresh = int((self.users == 0).sum())
        if fresh:
            self.findings = [
                *self.findings,
                Finding(
                    "new",
                    self.name,
                    fresh,
                    f"{counted(fresh, 'user is', 'users are')} new: what is recommended rests on the items in this file, or on what is chosen most.",
                ),
            ]

    def __len__(self) -> int:
        return len(self.names)

    def summary(self) -> list[dict[str, Any]]:
        return [{"name": "user", "distinct": len(self)}]

    def example(self, i: int) -> dict[str, Any]:
        return {"user": str(self.names[i]), "items": len(self.past[i])}
