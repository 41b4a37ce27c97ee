"""What belongs to one thread, and what all threads share while any of them records."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Pile(threading.local, Generic[T]):
    """A list that every thread has its own of; the last entry is the innermost."""

    def __init__(self):
        self.entries: list[T] = []

    def __iter__(self) -> Iterator[T]:
        return iter(self.entries)

    def __bool__(self) -> bool:
        return bool(self.entries)

    @property
    def last(self) -> T:
        """The innermost entry."""
        return self.entries[-1]

    @contextmanager
    def holding(self, entry: T) -> Iterator[None]:
        """With one entry more."""
        self.entries.append(entry)
        try:
            yield
        finally:
            self.entries.pop()


class Shared:
    """A change to the whole process that is made by the first who needs it and undone by the last."""

    def __init__(self, make: Callable[[], Any], undo: Callable[[Any], None]):
        self.make, self.undo = make, undo
        self.lock, self.users, self.before = threading.Lock(), 0, None

    @contextmanager
    def held(self) -> Iterator[None]:
        """With the change made."""
        with self.lock:
            if not self.users:
                self.before = self.make()
            self.users += 1
        try:
            yield
        finally:
            with self.lock:
                self.users -= 1
                if not self.users:
                    self.undo(self.before)
