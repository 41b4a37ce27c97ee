"""The learning-rate finder: raise the rate until training diverges, and suggest one below the best."""

import copy
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wonderland.core import WonderlandError
from wonderland.optim import constant
from wonderland.train.guard import NonFinite
from wonderland.train.loop import stream
from wonderland.train.state import State, random_state, set_random_state
from wonderland.train.supervised import Supervised


@dataclass(frozen=True)
class FoundRate:
    """The suggested learning rate, and the loss for each rate that was tried."""

    lr: float
    rates: list[float]
    losses: list[float]


def find_lr(
    step: Supervised, state: State, batches: Any, *, low: float = 1e-6, high: float = 1.0, count: int = 80
) -> FoundRate:
    r"""Train a copy with a rate that grows from `low` to `high`, and suggest a peak rate from the smoothed loss.

    .. math:: \eta_s = \eta_{low} (\eta_{high} / \eta_{low})^{s / (S - 1)}

    Stops when the smoothed loss exceeds four times its minimum. The suggestion is a third of the rate with the smallest smoothed
    loss, a safe peak for a schedule with warm-up. Paper: Smith, 2017.
    """
    rng = random_state()
    trial = copy.deepcopy(state)
    rates: list[float] = []
    losses: list[float] = []
    average = 0.0
    try:
        for index, batch in enumerate(stream(batches, 0, count)):
            rate = low * (high / low) ** (index / (count - 1))
            loss = replace(step, lr=rate, schedule=constant)(trial, batch)["loss"]
            average = 0.8 * average + 0.2 * loss if math.isfinite(loss) else math.inf
            debiased = average / (1 - 0.8 ** (index + 1))
            if not math.isfinite(debiased) or (losses and debiased > 4 * min(losses)):
                break
            rates.append(rate)
            losses.append(debiased)
    except NonFinite:
        pass  # the search ends at the rate where training diverges
    finally:
        set_random_state(rng)
    if len(rates) < 10:
        raise WonderlandError(
            "The loss diverged at once, so no learning rate could be found: look at the data and the model first."
        )
    return FoundRate(rates[int(np.argmin(losses))] / 3, rates, losses)
