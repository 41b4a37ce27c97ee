"""Training on many machines, on paper: time of a step, memory of a device, stragglers, failures and checkpoints."""

import math
from dataclasses import dataclass

import numpy as np

from wonderland.core import WonderlandError


@dataclass(frozen=True)
class Device:
    """What a device does: operations a second that training reaches, bytes of memory, bytes a second to others, mean seconds between failures."""

    flops: float
    memory: float
    link: float
    between_failures: float = math.inf


@dataclass(frozen=True)
class StepPlan:
    """A training step on some devices: seconds of arithmetic and of sums over devices, and bytes on each device."""

    devices: int
    compute: float
    exchange: float
    memory: float

    @property
    def seconds(self) -> float:
        """Arithmetic and exchange, of which the backward pass (two thirds of the arithmetic) hides as much as fits."""
        return self.compute + max(0.0, self.exchange - 2 / 3 * self.compute)

    @property
    def efficiency(self) -> float:
        """The share of the time in which devices compute."""
        return self.compute / self.seconds


def step_plan(
    device: Device,
    devices: int,
    *,
    parameters: float,
    tokens: float,
    activations: float = 0.0,
    sharded: bool = False,
    width: int = 2,
) -> StepPlan:
    r"""The step of data-parallel training with so many tokens in all, weights of `width` bytes, and moments in float32.

    .. math:: t_c = \frac{6 N D}{n P}, \qquad t_e = 2 \, \frac{n - 1}{n} \, \frac{w N}{B}

    A ring moves each gradient twice; sharded weights are gathered in the forward and the backward pass and their gradients divided: three
    times. `activations` are bytes for each token. Book: D2L 13.5, 13.7.

    >>> plan = step_plan(Device(1e14, 8e10, 1e11), 8, parameters=1e9, tokens=1e6)
    >>> round(plan.compute, 2), round(plan.exchange, 3)
    (7.5, 0.035)
    """
    if devices < 1 or min(parameters, tokens) <= 0:
        raise WonderlandError("A step takes at least one device, and parameters and tokens above 0.")
    compute = 6 * parameters * tokens / (devices * device.flops)
    times = 3 if sharded else 2
    exchange = times * (devices - 1) / devices * width * parameters / device.link
    states = parameters * (2 * width + 12)  # weights, gradients, and weights and two moments in float32
    memory = states / (devices if sharded else 1) + activations * tokens / devices
    return StepPlan(devices, compute, exchange, memory)


def young_interval(save: float, between_failures: float) -> float:
    r"""The time between checkpoints that loses least, where saving is short beside the time between failures.

    .. math:: \tau = \sqrt{2 \delta M}

    Paper: Young, 1974.

    >>> round(young_interval(60.0, 72_000.0))
    2939
    """
    _positive(save, between_failures)
    return math.sqrt(2 * save * between_failures)


def daly_interval(save: float, between_failures: float) -> float:
    r"""The same to higher order, for failures that come often.

    .. math:: \tau = \sqrt{2 \delta M} \left( 1 + \tfrac{1}{3} \sqrt{\tfrac{\delta}{2 M}} + \tfrac{1}{9} \tfrac{\delta}{2 M} \right) - \delta, \qquad \delta < 2 M

    Paper: Daly, 2006.
    """
    _positive(save, between_failures)
    if save >= 2 * between_failures:
        return between_failures
    part = save / (2 * between_failures)
    return math.sqrt(2 * save * between_failures) * (1 + math.sqrt(part) / 3 + part / 9) - save


def expected_share(interval: float, save: float, restart: float, between_failures: float) -> float:
    r"""The share of time that is training and not saved again, restarted or lost, with failures of a Poisson process.

    .. math:: \frac{\tau}{M e^{R/M} \left( e^{(\tau + \delta)/M} - 1 \right)}

    >>> round(expected_share(3000.0, 60.0, 300.0, 72_000.0), 3)
    0.956
    """
    _positive(interval, between_failures)
    m = between_failures
    if math.isinf(m):
        return interval / (interval + save)
    return interval / (m * math.exp(restart / m) * math.expm1((interval + save) / m))


def simulated_share(
    interval: float, save: float, restart: float, between_failures: float, *, hours: float = 10_000.0, seed: int = 0
) -> float:
    """The same share, counted in a simulation of work, checkpoints, failures and restarts."""
    _positive(interval, between_failures)
    draw = np.random.Generator(np.random.Philox(seed))
    end, now, kept = hours * 3600.0, 0.0, 0.0
    failure = now + draw.exponential(between_failures)
    while now < end:
        done = now + interval + save
        if done <= failure:
            now, kept = done, kept + interval
            continue
        while True:  # what was done since the last checkpoint is lost, and a restart may fail too
            now, failure = failure, failure + draw.exponential(between_failures)
            if now + restart <= failure:
                now += restart
                break
    return kept / now


def straggler_factor(devices: int, spread: float, *, draws: int = 2000, seed: int = 0) -> float:
    """How much longer a step takes where all wait for the slowest of devices, whose times vary by a lognormal spread around their mean.

    >>> straggler_factor(1, 0.1), straggler_factor(8, 0.0)
    (1.0, 1.0)
    """
    if devices < 1 or spread < 0:
        raise WonderlandError("Stragglers are counted among at least one device, with a spread from 0.")
    if devices == 1 or spread == 0:
        return 1.0
    draw = np.random.Generator(np.random.Philox(seed))
    sigma = math.sqrt(math.log1p(spread**2))
    slowest = [draw.lognormal(-0.5 * sigma**2, sigma, devices).max() for _ in range(draws)]
    return float(np.mean(slowest))


def _positive(*values: float) -> None:
    if not all(value > 0 for value in values):
        raise WonderlandError(f"Times of saving, work and failures are above 0, not {values}.")
