"""The learning-rate finder: raise the rate until training breaks, and take the rate where the loss fell fastest."""

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
class Found:
    """A learning rate to start from, and the curve it was read from."""

    lr: float
    rates: list[float]
    losses: list[float]


def find_lr(
    step: Supervised, state: State, batches: Any, *, low: float = 1e-6, high: float = 1.0, count: int = 80
) -> Found:
    r"""Train a copy with a rate that grows from `low` to `high`, and read a good peak from the smoothed loss.

    .. math:: \eta_s = \eta_{low} (\eta_{high} / \eta_{low})^{s / (S - 1)}

    Stops when the loss exceeds four times its least value. The suggestion is a third of the rate with the least smoothed
    loss, which a warm-up to the peak survives. Paper: Smith, 2017.
    """
    before = random_state()
    twin = copy.deepcopy(state)
    rates: list[float] = []
    losses: list[float] = []
    smooth = 0.0
    try:
        for index, batch in enumerate(stream(batches, 0, count)):
            rate = low * (high / low) ** (index / (count - 1))
            loss = replace(step, lr=rate, schedule=constant)(twin, batch)["loss"]
            smooth = 0.8 * smooth + 0.2 * loss if math.isfinite(loss) else math.inf
            debiased = smooth / (1 - 0.8 ** (index + 1))
            if not math.isfinite(debiased) or (losses and debiased > 4 * min(losses)):
                break
            rates.append(rate)
            losses.append(debiased)
    except NonFinite:
        pass  # the rate at which training breaks is where the search ends
    finally:
        set_random_state(before)
    if len(rates) < 10:
        raise WonderlandError(
            "The loss diverged at once, so no learning rate could be found: look at the data and the model first."
        )
    return Found(rates[int(np.argmin(losses))] / 3, rates, losses)
