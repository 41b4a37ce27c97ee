"""Flags of the shell from classes of options: names, types, bounds and help have one owner."""

import argparse
from collections.abc import Iterable
from typing import Any

from wonderland.core.options import Option, described


def add(group: Any, owners: Iterable[type], *, skip: Iterable[str] = ()) -> list[str]:
    """Add a flag for each option of the owners; one that several have is added once. Gives the names of the options."""
    names = []
    for owner in owners:
        for name, about in described(owner).items():
            if name in names or name in skip:
                continue
            _add(group, about)
            names.append(name)
    return names


def chosen(given: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """The options that were given."""
    return {name: vars(given)[name] for name in names if name in vars(given)}


def _add(group: Any, about: Option) -> None:
    how: dict[str, Any] = {"dest": about.name, "help": about.help, "default": argparse.SUPPRESS}
    if bool in about.types:
        group.add_argument(about.flag, action="store_true", **how)
        return
    if tuple in about.types:
        group.add_argument(about.flag, action="append", metavar=about.metavar, **how)
        return
    if about.choices is not None:
        how["metavar"] = "{" + ",".join(about.choices) + "}"
    elif about.metavar is not None:
        how["metavar"] = about.metavar
    group.add_argument(about.flag, type=Reader(about), **how)


class Reader:
    """Turns the word of a flag into a value: a number where it is one and may be one. As text, it says what it reads."""

    def __init__(self, about: Option):
        self.about = about

    def __call__(self, text: str) -> Any:
        if self.about.name == "budget":
            return text
        for kind in (int, float):
            if kind in self.about.types:
                try:
                    return kind(text)
                except ValueError:
                    continue
        if str in self.about.types:
            return text
        raise ValueError(text)

    def __str__(self) -> str:
        return self.about.words
