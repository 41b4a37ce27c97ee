"""The optimizers, their learning rates to choose from, and the path of each."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from wonderland import optim

Function = Callable[[Tensor], Tensor]
Kind = Callable[..., torch.optim.Optimizer]
ROOT = {"eps": 0.0, "eps_root": 1e-6}  # D2L adds epsilon under the root
RATES = tuple(sorted(a * 10.0**b for a in (1, 2, 5) for b in range(-3, 1)))

RACERS: dict[str, tuple[Kind, dict[str, Any]]] = {
    "gradient descent": (optim.SGD, {}),
    "momentum 0.5": (optim.Momentum, {"momentum": 0.5}),
    "momentum 0.9": (optim.Momentum, {"momentum": 0.9}),
    "Nesterov 0.9": (optim.Nesterov, {"momentum": 0.9}),
    "AdaGrad": (optim.AdaGrad, ROOT),
    "RMSProp 0.9": (optim.RMSProp, {"alpha": 0.9, **ROOT}),
    "Adadelta 0.9": (optim.Adadelta, {"rho": 0.9, "eps": 1e-5}),
    "Adam": (optim.Adam, {}),
    "Yogi": (optim.Yogi, {}),
    "Lion": (optim.Lion, {}),
    "schedule-free": (optim.ScheduleFree, {}),
}


def path(kind: Kind, f: Function, start: Tensor, steps: int, **options: Any) -> Tensor:
    """All points of a descent: (d) -> (steps + 1, d)."""
    x = nn.Parameter(start.clone())
    optimizer = kind([x], **options)
    points = [start]
    for _ in range(steps):
        optimizer.zero_grad()
        f(x).sum().backward()
        optimizer.step()
        points.append(x.detach().clone())
    return torch.stack(points)


def steps_to(points: Tensor, goal: Tensor, within: float, stay: int = 10) -> int | None:
    """After how many steps a path comes within a distance of the goal for `stay` points in a row; None if it does not."""
    near = ((points - goal).norm(dim=-1) <= within).float()
    whole = near.unfold(0, stay, 1).amin(1)
    return int(whole.argmax()) if whole.any() else None


def fastest(
    name: str, f: Function, start: Tensor, goal: Tensor, *, within: float, steps: int
) -> tuple[int | None, float]:
    """The fewest steps over all rates, and the rate that does it."""
    kind, options = RACERS[name]
    best: tuple[int | None, float] = None, RATES[0]
    for rate in RATES:
        needed = steps_to(path(kind, f, start, steps, lr=rate, **options), goal, within)
        if needed is not None and (best[0] is None or needed < best[0]):
            best = needed, rate
    return best
