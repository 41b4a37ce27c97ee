"""State of recordings across threads: a stack for each thread, and patches to the process that all threads share."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class ThreadLocalStack(threading.local, Generic[T]):
    """A stack of which every thread has its own; the last entry is the innermost."""

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
    def pushed(self, entry: T) -> Iterator[None]:
        """A context in which `entry` is on top of the stack."""
        self.entries.append(entry)
        try:
            yield
        finally:
            self.entries.pop()


class SharedPatch:
    """A change to the whole process that the first user applies and the last one undoes.

    `apply` makes the change and returns what `undo` needs to reverse it.
    """

    def __init__(self, apply: Callable[[], Any], undo: Callable[[Any], None]):
        self.apply, self.undo = apply, undo
        self.lock, self.users, self.undo_state = threading.Lock(), 0, None

    @contextmanager
    def applied(self) -> Iterator[None]:
        """A context in which the change is in effect."""
        with self.lock:
            if not self.users:
                self.undo_state = self.apply()
            self.users += 1
        try:
            yield
        finally:
            with self.lock:
                self.users -= 1
                if not self.users:
                    self.undo(self.undo_state)
