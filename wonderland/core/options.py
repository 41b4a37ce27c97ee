"""Options: a dataclass whose fields carry their help, bounds and choices; flags, checks and tables of docs derive from it."""

import dataclasses
import math
import shlex
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from wonderland.core.errors import WonderlandError, nearest

Made = TypeVar("Made")
_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "True or False", tuple: "names of columns"}


def option(
    default: Any = None,
    *,
    help: str,
    metavar: str | None = None,
    choices: tuple[str, ...] | None = None,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    flag: str | None = None,
    words: str | None = None,
) -> Any:
    """A field of an options class.

    `least` and `most` are allowed values, `above` is not; `choices` are all that may be said; `flag` is the option of the
    shell where it is not the field's name; `words` says what the value is in an error.
    """
    metadata = {"help": help, "metavar": metavar, "choices": choices, "least": least, "most": most, "above": above,
                "flag": flag, "words": words}  # fmt: skip
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True)
class Option:
    """One option, as its field describes it."""

    name: str
    types: tuple[type, ...]
    default: Any
    help: str
    metavar: str | None
    choices: tuple[str, ...] | None
    least: float | None
    most: float | None
    above: float | None
    flag: str
    words: str

    def check(self, value: Any) -> None:
        """Refuse a value that cannot be meant."""
        if value is None and self.default is None:
            return
        allowed = (*self.types, int) if float in self.types else self.types
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in self.types):
            raise WonderlandError(f"{self.name} must be {self.words}, not {value!r}.")
        if isinstance(value, float) and not math.isfinite(value):
            raise WonderlandError(f"{self.name} must be a finite number, not {value}.")
        if self.choices is not None and value not in self.choices:
            known = ", ".join(self.choices)
            raise WonderlandError(
                f"There is no {self.name} {value!r}.{nearest(str(value), self.choices)} Known are {known}."
            )
        if not isinstance(value, int | float) or isinstance(value, bool):
            return
        if self.above is not None and value <= self.above:
            raise WonderlandError(f"{self.name} must be more than {self.above:,}, not {value:,}.")
        if self.least is not None and value < self.least:
            raise WonderlandError(f"{self.name} must be at least {self.least:,}, not {value:,}.")
        if self.most is not None and value > self.most:
            raise WonderlandError(f"{self.name} must be at most {self.most:,}, not {value:,}.")


def described(owner: type) -> dict[str, Option]:
    """The options of a class by name."""
    hints = typing.get_type_hints(owner)
    options = {}
    for field in dataclasses.fields(owner):
        about = dict(field.metadata)
        kinds = _types(hints[field.name])
        words = about.pop("words", None) or " or ".join(_WORDS[kind] for kind in kinds)
        flag = about.pop("flag", None) or "--" + field.name.replace("_", "-")
        options[field.name] = Option(field.name, kinds, field.default, flag=flag, words=words, **about)
    return options


def check(options: Any) -> None:
    """Refuse options of which one cannot be meant."""
    for name, about in described(type(options)).items():
        about.check(getattr(options, name))


def make(owner: type[Made], given: Mapping[str, Any]) -> Made:
    """Checked options from what was given; lists of names become tuples."""
    known = described(owner)
    for name in given:
        if name not in known:
            raise WonderlandError(f"There is no option {name!r}.{nearest(name, known)}")
    options = owner(**{name: tidy(value, known[name]) for name, value in given.items()})
    check(options)
    return options


def given(options: Any) -> dict[str, Any]:
    """What differs from the defaults, as plain JSON."""
    changed = {name: getattr(options, name) for name, about in described(type(options)).items()
               if getattr(options, name) != about.default}  # fmt: skip
    return {name: list(value) if isinstance(value, tuple) else value for name, value in changed.items()}


def flags(owner: type, values: Mapping[str, Any]) -> Iterator[str]:
    """The words of a command line that say these values, quoted for the shell."""
    known = described(owner)
    for name, value in values.items():
        about = known[name]
        if value is None or value is False or value == about.default:
            continue
        if value is True:
            yield about.flag
            continue
        for item in value if isinstance(value, list | tuple) else [value]:
            yield from (about.flag, shlex.quote(str(item)))


def tidy(value: Any, about: Option) -> Any:
    """A value as its option keeps it: one name or a list of them becomes a tuple."""
    if tuple not in about.types:
        return value
    if isinstance(value, str):
        return (value,)
    value = tuple(value) if isinstance(value, list | set | tuple) else value
    for name in value if isinstance(value, tuple) else ():
        if not isinstance(name, str):
            raise WonderlandError(f"{about.name} holds {name!r}, which is not a column name.")
    return () if value is None else value


def _types(hint: Any) -> tuple[type, ...]:
    """The plain types of an annotation, None left out."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(kind for part in typing.get_args(hint) for kind in _types(part))
    kind = typing.get_origin(hint) or hint
    return () if kind is type(None) else (kind,)
