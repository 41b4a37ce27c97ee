"""The last guard where a folder of unknown origin is read: what no check foresaw still ends in a sentence."""

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from wonderland.core.errors import WonderlandError


@contextmanager
def refuse_damaged(file: Any, remedy: str = "it is damaged or not ours") -> Iterator[None]:
    """Inside, any exception is a `WonderlandError` that names the file; keyboard interrupts and exits pass.

    Readers check what they read and say what is wrong. This is for what is left, so the message can only give the reason.

    >>> with refuse_damaged("preprocess.json"):
    ...     [][0]
    Traceback (most recent call last):
    wonderland.core.errors.WonderlandError: preprocess.json cannot be used (IndexError: list index out of range): it is damaged or not ours.
    """
    try:
        yield
    except WonderlandError:
        raise
    except BaseException as error:
        # A panic of a Rust library is no Exception, and its class has no public name.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise WonderlandError(f"{file} cannot be used ({first_line(error)}): {remedy}.") from error


def guard_calls(thing: Any, file: Any, remedy: str) -> Any:
    """The same object with `refuse_damaged` around its public methods, also where they yield."""
    kind = type(thing)

    def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            inspect.signature(function).bind(*args, **kwargs)  # arguments that do not fit are no damage
            with refuse_damaged(file, remedy):
                result = function(*args, **kwargs)
            return within(result) if inspect.isgenerator(result) else result

        return call

    def within(pieces: Iterator[Any]) -> Iterator[Any]:
        with refuse_damaged(file, remedy):
            yield from pieces

    methods = {
        name: method
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if name == "__call__" or name[0] != "_"
    }
    thing.__class__ = type(
        kind.__name__,
        (kind,),
        {"__module__": kind.__module__} | {name: guarded(method) for name, method in methods.items()},
    )
    return thing


def first_line(error: BaseException) -> str:
    """The type of an error and the first line of its message, shortened."""
    line = (str(error).splitlines() or [""])[0][:200].rstrip(".")
    return f"{type(error).__name__}: {line}" if line else type(error).__name__
