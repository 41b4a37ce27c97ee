"""Schemas of stored JSON: what each entry of a file must be, checked once when the file is read.

A schema is a function that says what is wrong with a value, or returns None. Entries that a schema does not name are allowed, so
that a file may grow; they are still plain JSON.
"""

from collections.abc import Callable, Mapping
from typing import Any

from wonderland.core.errors import WonderlandError

Schema = Callable[[Any], str | None]


def number(least: float = -1e300, most: float = 1e300) -> Schema:
    """A number within bounds; True and False are none."""

    def check(value: Any) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            return f" must be a number{_within(least, most)}, not {value!r:.60}"
        return None

    return check


def whole(least: int = 0, most: int = (1 << 63) - 1) -> Schema:
    """A whole number within bounds."""

    def check(value: Any) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            return f" must be a whole number{_within(least, most)}, not {value!r:.60}"
        return None

    return check


def text(value: Any) -> str | None:
    """Any text."""
    return None if isinstance(value, str) else f" must be text, not {value!r:.60}"


def true_or_false(value: Any) -> str | None:
    """True or False."""
    return None if isinstance(value, bool) else f" must be true or false, not {value!r:.60}"


def one_of(*values: Any) -> Schema:
    """One of a few values."""
    return lambda value: (
        None if value in values else f" must be one of {', '.join(map(str, values))}, not {value!r:.60}"
    )


def optional(schema: Schema) -> Schema:
    """What the schema asks for, or null."""
    return lambda value: None if value is None else schema(value)


def items(schema: Schema, least: int = 0, most: int = 1 << 24) -> Schema:
    """A list whose entries follow one schema."""

    def check(value: Any) -> str | None:
        if not isinstance(value, list) or not least <= len(value) <= most:
            return f" must be a list{_within(least, most)}, not {value!r:.60}"
        return next((f"[{i}]{wrong}" for i, entry in enumerate(value) if (wrong := schema(entry))), None)

    return check


def values(schema: Schema) -> Schema:
    """An object whose values follow one schema, whatever their names."""

    def check(value: Any) -> str | None:
        if not isinstance(value, dict):
            return f" must be an object, not {value!r:.60}"
        return next((f".{key:.60}{wrong}" for key, entry in value.items() if (wrong := schema(entry))), None)

    return check


def entries(needed: Mapping[str, Schema], more: Mapping[str, Schema] | None = None) -> Schema:
    """An object with these entries, and those of `more` where it has them."""

    def check(value: Any) -> str | None:
        if not isinstance(value, dict):
            return f" must be an object, not {value!r:.60}"
        for name, schema in needed.items():
            if name not in value:
                return f" lacks {name!r}"
            if wrong := schema(value[name]):
                return f".{name}{wrong}"
        for name, schema in (more or {}).items():
            if name in value and (wrong := schema(value[name])):
                return f".{name}{wrong}"
        return None

    return check


def require(value: Any, schema: Schema, file: Any) -> None:
    """Refuse a value that does not follow its schema; the error names the file and the entry.

    >>> require({"rows": "many"}, entries({"rows": whole()}), "trust.json")
    Traceback (most recent call last):
    wonderland.core.errors.WonderlandError: trust.json: rows must be a whole number of at least 0, not 'many': it is damaged or not ours.
    """
    if wrong := schema(value):
        raise WonderlandError(f"{file}: {wrong.lstrip(' .')}: it is damaged or not ours.")


def _within(least: float, most: float) -> str:
    if most < 1 << 24:
        return f" from {least:,} to {most:,}"
    return f" of at least {least:,}" if least > -1e300 else ""
