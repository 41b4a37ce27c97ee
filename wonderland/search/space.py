"""Search spaces: what each setting may be, and how points of the unit cube become settings and back."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wonderland.core import WonderlandError, mix

DIGITS = 6  # significant digits of a number: enough for a setting, and short in a table
MOST_SETTINGS, MOST_CHOICES = 100, 1000


@dataclass(frozen=True)
class Float:
    """A number between `low` and `high`, on a linear or a logarithmic scale.

    >>> Float(1e-4, 1.0, log=True).value(0.5)
    0.01
    """

    low: float
    high: float
    log: bool = False

    def value(self, unit: float) -> float:
        """The number at a place in [0, 1]."""
        if self.log:
            number = math.exp(math.log(self.low) + unit * (math.log(self.high) - math.log(self.low)))
        else:
            number = self.low + unit * (self.high - self.low)
        return min(max(float(f"{number:.{DIGITS}g}"), self.low), self.high)

    def place(self, value: Any) -> float:
        """The place in [0, 1] of a number."""
        if self.log:
            return (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (value - self.low) / (self.high - self.low)

    def encode(self, value: Any) -> list[float]:
        """As numbers for a Gaussian process."""
        return [0.5 if value is None else self.place(value)]

    def grid(self, points: int) -> list[float]:
        """Evenly spread values, both ends included."""
        return [self.value(i / (points - 1) if points > 1 else 0.5) for i in range(points)]


@dataclass(frozen=True)
class Integer:
    """A whole number from `low` to `high`, both included.

    >>> [Integer(1, 4).value(u) for u in (0.0, 0.3, 0.99)]
    [1, 2, 4]
    """

    low: int
    high: int
    log: bool = False

    def _ends(self) -> tuple[float, float]:
        ends = self.low - 0.5, self.high + 0.5
        return (math.log(ends[0]), math.log(ends[1])) if self.log else ends

    def value(self, unit: float) -> int:
        """The number at a place in [0, 1]."""
        low, high = self._ends()
        position = low + unit * (high - low)
        return min(max(round(math.exp(position) if self.log else position), self.low), self.high)

    def place(self, value: Any) -> float:
        """The place in [0, 1] of a number."""
        low, high = self._ends()
        return ((math.log(value) if self.log else value) - low) / (high - low)

    def encode(self, value: Any) -> list[float]:
        """As numbers for a Gaussian process."""
        return [0.5 if value is None else self.place(value)]

    def grid(self, points: int) -> list[int]:
        """Evenly spread values, both ends included; all of them where there are few."""
        if self.high - self.low < points:
            return list(range(self.low, self.high + 1))
        return sorted({self.value(i / (points - 1) if points > 1 else 0.5) for i in range(points)})


@dataclass(frozen=True)
class Choice:
    """One of several values, which have no order."""

    choices: tuple[Any, ...]

    def value(self, unit: float) -> Any:
        """The value at a place in [0, 1]."""
        return self.choices[min(int(unit * len(self.choices)), len(self.choices) - 1)]

    def place(self, value: Any) -> float:
        """The place in [0, 1] of a value."""
        return (self.choices.index(value) + 0.5) / len(self.choices)

    def encode(self, value: Any) -> list[float]:
        """As numbers for a Gaussian process: one for each choice, so that all are equally far apart."""
        return [math.sqrt(0.5) * (choice == value and type(choice) is type(value)) for choice in self.choices]

    def grid(self, points: int) -> list[Any]:
        """Every value."""
        return list(self.choices)


Setting = Float | Integer | Choice


@dataclass(frozen=True)
class Space:
    """Settings by name, in order. `when` says for which values of an earlier choice a setting exists.

    >>> space = Space({"optimizer": Choice(("SGD()", "Adam()")), "lr": Float(1e-3, 1.0, log=True),
    ...                "optimizer.momentum": Float(0.0, 0.9)}, {"optimizer.momentum": ("optimizer", ("SGD()",))})
    >>> space.at([0.9, 0.0, 0.5])
    {'optimizer': 'Adam()', 'lr': 0.001}
    """

    settings: Mapping[str, Setting]
    when: Mapping[str, tuple[str, tuple[Any, ...]]] = field(default_factory=dict)

    def __post_init__(self):
        if not self.settings:
            raise WonderlandError("The space is empty: give at least one setting to search over.")
        if len(self.settings) > MOST_SETTINGS:
            raise WonderlandError(f"The space has {len(self.settings)} settings: at most {MOST_SETTINGS} are searched.")

    @staticmethod
    def of(value: "Space | Mapping[str, Any]") -> "Space":
        """From the short form of `Kind.space`: ("log", low, high), ("float", low, high), ("integer", low, high), ("choice", [...])."""
        if isinstance(value, Space):
            return value
        settings: dict[str, Setting] = {}
        for name, about in value.items():
            if isinstance(about, Float | Integer | Choice):
                settings[name] = about
                continue
            try:
                form, *rest = about
                if form == "choice":
                    settings[name] = Choice(tuple(rest[0]))
                elif form == "integer":
                    settings[name] = checked(name, Integer(int(rest[0]), int(rest[1])))
                else:
                    settings[name] = checked(
                        name, Float(_short(rest[0]), _short(rest[1]), {"log": True, "float": False}[form])
                    )
            except (TypeError, ValueError, LookupError) as error:
                raise WonderlandError(
                    f"The space of {name} is not understood: give ('log', low, high), ('float', low, high), "
                    "('integer', low, high) or ('choice', [...])."
                ) from error
        return Space(settings)

    @property
    def names(self) -> list[str]:
        """The names of all settings."""
        return list(self.settings)

    def exists(self, name: str, settings: Mapping[str, Any]) -> bool:
        """Whether a setting exists beside these values of the others."""
        if name not in self.when:
            return True
        other, values = self.when[name]
        return other in settings and settings[other] in values

    def at(self, units: Sequence[float]) -> dict[str, Any]:
        """The settings at a point of the unit cube. Shapes: (d,)."""
        settings: dict[str, Any] = {}
        for (name, setting), unit in zip(self.settings.items(), units, strict=True):
            if self.exists(name, settings):
                settings[name] = setting.value(float(unit))
        return settings

    def place(self, settings: Mapping[str, Any]) -> list[float]:
        """A point of the unit cube that gives these settings. Shapes: -> (d,)."""
        return [setting.place(settings[name]) if name in settings else 0.5 for name, setting in self.settings.items()]

    def narrowed(self, settings: Mapping[str, Any]) -> dict[str, Any] | None:
        """Settings of another space as those of this one; None where one is missing or outside.

        >>> Space({"lr": Float(0.0, 1.0)}).narrowed({"lr": 0.5, "depth": 3}), Space({"lr": Float(0.0, 1.0)}).narrowed({"lr": 2.0})
        ({'lr': 0.5}, None)
        """
        settings_inside: dict[str, Any] = {}
        for name, setting in self.settings.items():
            if not self.exists(name, settings_inside):
                continue
            value = settings.get(name)
            if isinstance(setting, Choice):
                inside = value in setting.choices
            else:
                inside = isinstance(value, int | float) and setting.low <= value <= setting.high
            if not inside:
                return None
            settings_inside[name] = value
        return settings_inside

    def encode(self, settings: Mapping[str, Any]) -> list[float]:
        """Numbers for a Gaussian process: places of numbers, one number for each choice."""
        return [number for name, setting in self.settings.items() for number in setting.encode(settings.get(name))]

    def sample(self, seed: int, number: int) -> dict[str, Any]:
        """Random settings, a function of (seed, number) alone.

        >>> space = Space({"lr": Float(0.0, 1.0)})
        >>> space.sample(0, 3) == space.sample(0, 3), space.sample(0, 3) == space.sample(0, 4)
        (True, False)
        """
        return self.at(np.random.Generator(np.random.Philox(mix(seed, number))).random(len(self.settings)).tolist())

    def grid(self, points: int) -> list[dict[str, Any]]:
        """Every combination of `points` values of each number and all choices; settings that do not exist are left out once."""
        lists = {name: setting.grid(points) for name, setting in self.settings.items()}
        size = math.prod(map(len, lists.values()))
        if size > 100_000:
            raise WonderlandError(f"The grid has {size:,} points: search fewer settings, or take another tuner.")
        combinations: dict[str, dict[str, Any]] = {}
        for values in itertools.product(*lists.values()):
            settings: dict[str, Any] = {}
            for name, value in zip(lists, values, strict=True):
                if self.exists(name, settings):
                    settings[name] = value
            combinations.setdefault(repr(settings), settings)
        return list(combinations.values())

    def to_json(self) -> dict[str, Any]:
        """As plain JSON, in the form of a space file."""
        written: dict[str, Any] = {}
        for name, setting in self.settings.items():
            if isinstance(setting, Choice):
                about: dict[str, Any] = {"choices": list(setting.choices)}
            else:
                end = float if isinstance(setting, Float) else int  # what a reader tells them apart by
                about = {"low": end(setting.low), "high": end(setting.high), "log": setting.log}
            if name in self.when:
                other, values = self.when[name]
                about["when"] = {other: list(values)}
            written[name] = about
        return written


def _short(value: Any) -> float:
    return float(f"{float(value):.{DIGITS}g}")


def checked(name: str, setting: Setting) -> Setting:
    """The setting, if its bounds can be searched."""
    if isinstance(setting, Choice):
        if not 1 <= len(setting.choices) <= MOST_CHOICES:
            raise WonderlandError(f"{name} has {len(setting.choices)} choices: give between 1 and {MOST_CHOICES}.")
        return setting
    if not (math.isfinite(setting.low) and math.isfinite(setting.high) and setting.low < setting.high):
        raise WonderlandError(
            f"{name} goes from {setting.low} to {setting.high}: low has to be less than high, both finite."
        )
    if setting.log and not setting.low > 0:
        raise WonderlandError(f"{name} has a logarithmic scale from {setting.low}: low has to be above 0.")
    return setting
