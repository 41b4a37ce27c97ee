"""The allowed ranges of optimizer options, in one table, and the errors for values outside them."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from wonderland.core import WonderlandError, nearest

# Name: smallest value, upper bound, whether the upper bound is allowed, what goes wrong outside.
_RANGES: dict[str, tuple[float, float, bool, str]] = {
    "lr": (0, math.inf, False, "a negative rate climbs"),
    "lr_decay": (0, math.inf, False, "the rate would grow"),
    "momentum": (0, 1, False, "old gradients would grow instead of fading"),
    "alpha": (0, 1, False, "an average needs a share of the new in it"),
    "rho": (0, 1, False, "an average needs a share of the new in it"),
    "betas": (0, 1, False, "an average needs a share of the new in it"),
    "eps": (0, math.inf, False, "a denominator could become zero"),
    "eps_root": (0, math.inf, False, "a root could become imaginary"),
    "weight_decay": (0, math.inf, False, "weights would grow instead of decaying"),
    "initial_accumulator_value": (0, math.inf, False, "squares are not negative"),
    "decay": (0, 1, True, "an average is a blend of old and new"),
    "pull": (0, 1, True, "the slow weights go part of the way to the fast ones"),
    "norm": (0, math.inf, False, "a length is not negative"),
    "value": (0, math.inf, False, "it bounds a size"),
}
_COUNTS = {"ns_steps": 1, "warmup_steps": 0, "every": 1, "start": 0, "steps": 1}
_CHOICES = {"precision": ("bfloat16", "float32", "float64")}


def check(owner: str, options: Mapping[str, Any]) -> None:
    """Refuse options outside their range, naming the argument.

    >>> check("AdamW", {"lr": -1.0})
    Traceback (most recent call last):
    wonderland.core.errors.WonderlandError: AdamW: lr must be a finite number of at least 0, not -1.0: a negative rate climbs.
    """
    for name, value in options.items():
        if name == "betas":
            if not isinstance(value, (tuple, list)) or len(value) != 2:
                raise WonderlandError(f"{owner}: betas must be two numbers such as (0.9, 0.999), not {value!r}.")
            for i, item in enumerate(value):
                _in_range(owner, f"betas[{i}]", item, *_RANGES["betas"])
        elif name in _RANGES:
            _in_range(owner, name, value, *_RANGES[name])
        elif name in _COUNTS and (not isinstance(value, int) or isinstance(value, bool) or value < _COUNTS[name]):
            raise WonderlandError(f"{owner}: {name} must be a whole number of at least {_COUNTS[name]}, not {value!r}.")
        elif name in _CHOICES and value not in _CHOICES[name]:
            raise WonderlandError(
                f"{owner}: {name} must be one of {', '.join(_CHOICES[name])}, not {value!r}.{nearest(str(value), _CHOICES[name])}"
            )


def known(owner: str, options: Iterable[str], choices: Iterable[str]) -> None:
    """Refuse options that a rule does not have, with a hint for misspelt ones."""
    choices = list(choices)
    for name in options:
        if name not in choices:
            raise WonderlandError(
                f"{owner} has no option {name!r}; it has {', '.join(choices)}.{nearest(name, choices)}"
            )


def _in_range(owner: str, name: str, value: Any, low: float, high: float, closed: bool, why: str) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if number and low <= value and (value < high or (closed and value == high)):
        return
    upper = "" if high == math.inf else f" and {'at most' if closed else 'below'} {high}"
    raise WonderlandError(f"{owner}: {name} must be a finite number of at least {low}{upper}, not {value!r}: {why}.")
