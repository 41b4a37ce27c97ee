"""Time budgets: measured once, before the first step, and turned into a number of steps."""

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
    """A length of time as people write it.

    >>> seconds("90s"), seconds("1.5m"), seconds("2h"), seconds(30)
    (90.0, 90.0, 7200.0, 30.0)
    """
    if isinstance(text, int | float):
        found = float(text)
    elif not isinstance(text, str):
        raise WonderlandError(f"{text!r} is not a length of time: write 90s, 5m or 1h.")
    else:
        number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz ")
        unit = text.strip()[len(number) :].strip() or "s"
        try:
            found = float(number) * _UNITS[unit]
        except (ValueError, KeyError):
            raise WonderlandError(f"{text!r} is not a length of time: write 90s, 5m or 1h.") from None
    if not 0 < found < 1e7:
        raise WonderlandError(f"A time budget must be more than nothing and less than a few months, not {text!r}.")
    return found


def steps_within(
    budget: float, step: Step, state: State, batches: Any, evaluate: Evaluate | None = None, evaluate_every: int = 1
) -> int:
    """How many steps fit into `budget` seconds, evaluation included; nothing of the real training moves."""
    before = random_state()
    twin = copy.deepcopy(state)
    limit = time.monotonic() + max(0.5, 0.1 * budget)
    spent: list[float] = []
    for batch in stream(batches, 0, 12):
        spent.append(_timed(lambda batch=batch: step(twin, batch)))
        twin.step += 1
        if time.monotonic() > limit and len(spent) > 2:
            break
    pace = median(spent[1:])
    if evaluate:
        pace += _timed(lambda: evaluate(twin)) / evaluate_every
    set_random_state(before)
    return max(1, int(budget / pace))


def _timed(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
