"""Settings of a recipe by their path, as `--set` and a search change them: lr, model.dim, optimizer.weight_decay."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from wonderland.core import Spec, WonderlandError, nearest, parse_spec
from wonderland.core.recipe import Recipe
from wonderland.core.strict_json import parse_json

NUMBERS = ("lr", "batch_size", "average", "clip", "accumulate", "patience", "steps")
SPECS = ("model", "optimizer", "schedule", "augment", "task")
NAMED = ("model", "optimizer", "schedule")  # replaced as a whole by the options of these names
FORM = "write PATH=VALUE, such as model.depth=4"


def parse_settings(texts: Iterable[str]) -> dict[str, Any]:
    """Settings from texts such as "model.depth=4": values are JSON, parts as calls, or else plain text.

    >>> parse_settings(["lr=0.01", "model.sigmas=[0.1, 1]", "model.norm=none"])
    {'lr': 0.01, 'model.sigmas': [0.1, 1], 'model.norm': 'none'}
    """
    settings: dict[str, Any] = {}
    for text in texts:
        path, sign, value = text.partition("=")
        path, value = path.strip(), value.strip()
        if not sign or not path or not value:
            raise WonderlandError(f"The setting {text!r} is not understood: {FORM}.")
        if path in settings:
            raise WonderlandError(f"{path} is set twice: keep one of them.")
        settings[path] = _value(value)
    return settings


def _value(text: str) -> Any:
    try:
        return parse_json(text.encode())
    except (ValueError, RecursionError):
        return parse_spec(text) if text.endswith(")") else text


def with_settings(recipe: Recipe, settings: Mapping[str, Any]) -> Recipe:
    """The recipe with some of its settings changed; a number in place of a list of numbers stands for each of them."""
    for path, value in settings.items():
        owner, _, name = path.partition(".")
        if not name:
            recipe = _with_number(recipe, path, value)
        else:
            recipe = _with_argument(recipe, owner, name, value)
    return recipe


def _with_number(recipe: Recipe, path: str, value: Any) -> Recipe:
    if path not in NUMBERS:
        hint = nearest(path, (*NUMBERS, *(f"{owner}." for owner in SPECS)))
        raise WonderlandError(
            f"The recipe has no setting {path!r}.{hint} Known are {', '.join(NUMBERS)}, and arguments such as model.dim."
        )
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise WonderlandError(f"{path} is a number above 0, not {value!r}.")
    whole = path in ("batch_size", "accumulate", "patience", "steps")
    if whole and value != int(value):
        raise WonderlandError(f"{path} is a whole number, not {value!r}.")
    return replace(recipe, **{path: int(value) if whole else float(value)})


def _with_argument(recipe: Recipe, owner: str, name: str, value: Any) -> Recipe:
    if owner not in SPECS:
        raise WonderlandError(f"The recipe has no part {owner!r}.{nearest(owner, SPECS)} Known are {', '.join(SPECS)}.")
    spec = getattr(recipe, owner)
    if not isinstance(spec, Spec):
        raise WonderlandError(f"{owner}.{name} cannot be set: this recipe has no {owner} that is made from a spec.")
    before = spec.arguments.get(name)
    numbers = isinstance(before, list) and all(isinstance(item, int | float) for item in before)
    if numbers and isinstance(before, list) and isinstance(value, int | float) and not isinstance(value, bool):
        value = [value] * len(before)
    return replace(recipe, **{owner: spec.changed(**{name: value})})
