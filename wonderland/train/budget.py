"""Time budgets: the time of a step is measured before training, which turns seconds into a number of steps."""

import copy
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from wonderland.core import WonderlandError
from wonderland.train.loop import Evaluate, Step, stream
from wonderland.train.state import State, random_state, set_random_state

_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def seconds(text: str | float) -> float:
    """A duration in seconds, from a number or from text such as "5m".

    >>> seconds("90s"), seconds("1.5m"), seconds("2h"), seconds(30)
    (90.0, 90.0, 7200.0, 30.0)
    """
    if isinstance(text, int | float):
        value = float(text)
    elif not isinstance(text, str):
        raise WonderlandError(f"{text!r} is not a length of time: write 90s, 5m or 1h.")
    else:
        digits = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz ")
        unit = text.strip()[len(digits) :].strip() or "s"
        try:
            value = float(digits) * _UNITS[unit]
        except (ValueError, KeyError):
            raise WonderlandError(f"{text!r} is not a length of time: write 90s, 5m or 1h.") from None
    if not 0 < value < 1e7:
        raise WonderlandError(f"A time budget must be more than nothing and less than a few months, not {text!r}.")
    return value


def steps_within(
    budget: float, step: Step, state: State, batches: Any, evaluate: Evaluate | None = None, evaluate_every: int = 1
) -> int:
    """How many steps fit into `budget` seconds, evaluation included; measured on a copy of the state."""
    rng = random_state()
    trial = copy.deepcopy(state)
    limit = time.monotonic() + max(0.5, 0.1 * budget)
    durations: list[float] = []
    for batch in stream(batches, 0, 12):
        durations.append(_timed(lambda batch=batch: step(trial, batch)))
        trial.step += 1
        if time.monotonic() > limit and len(durations) > 2:
            break
    seconds_per_step = median(durations[1:])
    if evaluate:
        seconds_per_step += _timed(lambda: evaluate(trial)) / evaluate_every
    set_random_state(rng)
    return max(1, int(budget / seconds_per_step))


def _timed(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
