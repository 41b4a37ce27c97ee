"""What limits each layer on this machine: its arithmetic, or the memory that it moves."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import torch

from wonderland.core import WonderlandError
from wonderland.understand.cost import Cost
from wonderland.understand.step_cost import clock

FLOAT = 4  # bytes


@dataclass(frozen=True)
class Machine:
    """Measured bounds: products and sums a second, bytes a second, and seconds that the smallest operation takes."""

    flops: float
    bandwidth: float
    latency: float

    @property
    def ridge(self) -> float:
        """The arithmetic intensity, in FLOPs a byte, from which arithmetic is the limit."""
        return self.flops / self.bandwidth


@dataclass(frozen=True)
class Bound:
    """A layer under the roofline: its intensity, the shortest time of a forward pass, and what limits it."""

    name: str
    intensity: float
    seconds: float
    limit: str


def measure_machine(*, size: int = 768, seconds: float = 0.1) -> Machine:
    """Measure this machine with the present number of threads: a matrix product, a sum of large arrays, an empty operation."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    large = torch.randn(16 << 20)
    out, tiny = torch.empty_like(large), torch.zeros(1)
    product = _best(lambda: torch.mm(a, b), seconds)
    moved = _best(lambda: torch.add(large, 1.0, out=out), seconds)
    return Machine(
        2 * size**3 / product, 2 * FLOAT * large.numel() / moved, _best(lambda: tiny.add_(0.0), seconds / 10)
    )


def roofline(cost: Cost, machine: Machine, *, rows: int = 1) -> list[Bound]:
    r"""The bound of each layer of a model for a batch of so many rows, in float32.

    .. math:: t \ge \max\Big(\frac{\text{FLOPs}}{P}, \frac{\text{bytes}}{B}, t_0\Big), \qquad \text{intensity} = \frac{\text{FLOPs}}{\text{bytes}}

    Bytes are those of the weights, once a batch, and of the output, written and read once for each row. Book: D2L 13.4.
    Paper: Williams et al., 2009.
    """
    if rows < 1:
        raise WonderlandError(f"A batch has at least one row, not {rows}.")
    bounds = []
    for layer in cost.by_layer:
        output = 0 if layer.output is None else prod(layer.output)
        flops = layer.flops * rows
        moved = FLOAT * (layer.parameters + 2 * output * rows)
        times = {
            "arithmetic": flops / machine.flops,
            "memory": moved / machine.bandwidth,
            "latency": machine.latency,
        }
        limit = max(times, key=lambda name: times[name])
        bounds.append(Bound(layer.name, flops / moved if moved else 0.0, times[limit], limit))
    return bounds


def _best(call: Callable[[], object], seconds: float) -> float:
    """The shortest of repeated calls, over a time."""
    call()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end or best == float("inf"):
        began = clock()
        call()
        best = min(best, clock() - began)
    return best
