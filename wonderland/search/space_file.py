"""Space files: TOML with one table for each setting."""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wonderland.core import WonderlandError, nearest, read_bytes
from wonderland.search.space import Choice, Float, Integer, Setting, Space, checked

KEYS = ("low", "high", "log", "choices", "when")
MOST_BYTES = 1 << 20
FORM = "write low and high, or choices, such as [lr] with low = 1e-4, high = 0.1, log = true"


def read_space(path: str | Path) -> Space:
    """The space in a TOML file.

    Each table is a setting: `low`, `high` and `log` for a number (whole if both ends are), `choices` for a choice, and
    `when = {other = [values]}` for a setting that exists only beside some values of a choice above it.
    """
    try:
        written = tomllib.loads(read_bytes(path, MOST_BYTES).decode())
    except UnicodeDecodeError as error:
        raise WonderlandError(f"{path} is not UTF-8 text: a space is a TOML file.") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise WonderlandError(f"{path} is not valid TOML: {error}.") from error
    try:
        return parse_space(written)
    except WonderlandError as error:
        raise WonderlandError(f"{path}: {error}") from None


def parse_space(written: Mapping[str, Any]) -> Space:
    """The space that a space file, or `Space.to_json`, describes."""
    settings: dict[str, Setting] = {}
    when: dict[str, tuple[str, tuple[Any, ...]]] = {}
    for name, about in _tables(written, ""):
        for key in about:
            if key not in KEYS:
                raise WonderlandError(f"{name} has no key {key!r}.{nearest(key, KEYS)} Known are {', '.join(KEYS)}.")
        settings[name] = checked(name, _setting(name, about))
        if "when" in about:
            when[name] = _condition(name, about["when"], settings)
    return Space(settings, when)


def _tables(written: Any, prefix: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Settings by name: [model.dim] and ["model.dim"] mean the same."""
    for key, value in written.items():
        name = f"{prefix}{key}"
        if not isinstance(value, Mapping):
            raise WonderlandError(f"{name} is {value!r}, not a setting: {FORM}.")
        inner = [item for other, item in value.items() if other != "when"]
        if inner and all(isinstance(item, Mapping) for item in inner):
            yield from _tables(value, f"{name}.")
        else:
            yield name, value


def _setting(name: str, about: Mapping[str, Any]) -> Setting:
    if "choices" in about:
        choices = about["choices"]
        if "low" in about or "high" in about or "log" in about:
            raise WonderlandError(f"{name} has choices and bounds: keep one of them.")
        plain = isinstance(choices, list) and all(isinstance(item, str | int | float | bool) for item in choices)
        if not plain:
            raise WonderlandError(
                f"The choices of {name} are a list of texts, numbers, true or false, not {choices!r}."
            )
        return Choice(tuple(choices))
    for key in ("low", "high"):
        if key not in about:
            raise WonderlandError(f"{name} has no {key}: {FORM}.")
        if not isinstance(about[key], int | float) or isinstance(about[key], bool):
            raise WonderlandError(f"{key} of {name} is a number, not {about[key]!r}.")
    log = about.get("log", False)
    if not isinstance(log, bool):
        raise WonderlandError(f"log of {name} is true or false, not {log!r}.")
    low, high = about["low"], about["high"]
    if isinstance(low, int) and isinstance(high, int):
        if max(abs(low), abs(high)) > 1 << 53:
            raise WonderlandError(f"{name} goes from {low} to {high}: whole numbers beyond 2^53 are not searched.")
        return Integer(low, high, log)
    return Float(float(low), float(high), log)


def _condition(name: str, when: Any, settings: Mapping[str, Setting]) -> tuple[str, tuple[Any, ...]]:
    if not isinstance(when, Mapping) or len(when) != 1:
        raise WonderlandError(f'when of {name} names one choice and its values, such as {{model = ["TextCNN"]}}.')
    [(other, values)] = when.items()
    values = tuple(values) if isinstance(values, list) else (values,)
    parent = settings.get(other)
    if other == name or not isinstance(parent, Choice):
        raise WonderlandError(f"{name} exists when {other} has a value, but {other} is not a choice above it.")
    for value in values:
        if value not in parent.choices:
            raise WonderlandError(f"{name} exists when {other} is {value!r}, which is not among its choices.")
    return other, values
