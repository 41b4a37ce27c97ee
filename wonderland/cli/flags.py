"""Flags of the shell, derived from the option dataclasses of kinds and of training."""

import argparse
from collections.abc import Iterable
from typing import Any

from wonderland.core.options import Option, described


def add(group: Any, owners: Iterable[type], *, skip: Iterable[str] = ()) -> list[str]:
    """Add a flag for each option of the owners; an option that several owners have is added once. Returns the names of the options."""
    names = []
    for owner in owners:
        for name, option in described(owner).items():
            if name in names or name in skip:
                continue
            _add_flag(group, option)
            names.append(name)
    return names


def chosen(args: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """The options that were given."""
    return {name: vars(args)[name] for name in names if name in vars(args)}


def _add_flag(group: Any, option: Option) -> None:
    settings: dict[str, Any] = {"dest": option.name, "help": option.help, "default": argparse.SUPPRESS}
    if bool in option.types:
        group.add_argument(option.flag, action="store_true", **settings)
        return
    if tuple in option.types:
        group.add_argument(option.flag, action="append", metavar=option.metavar, **settings)
        return
    if option.choices is not None:
        settings["metavar"] = "{" + ",".join(option.choices) + "}"
    elif option.metavar is not None:
        settings["metavar"] = option.metavar
    group.add_argument(option.flag, type=FlagType(option), **settings)


class FlagType:
    """The argparse type of an option: converts text to int, float or str, whichever the option allows. `str()` describes it in errors."""

    def __init__(self, option: Option):
        self.option = option

    def __call__(self, text: str) -> Any:
        if self.option.name == "budget":
            return text
        for kind in (int, float):
            if kind in self.option.types:
                try:
                    return kind(text)
                except ValueError:
                    continue
        if str in self.option.types:
            return text
        raise ValueError(text)

    def __str__(self) -> str:
        return self.option.words
