"""Repeat the traces that D2L prints, then run every optimizer on the books' functions with its best learning rate."""

import math
import sys

import torch
from torch import Tensor

from examples.lab import Claim, about, above, below, lines, plane, run, table
from examples.lab.functions import bowl, hills, ripple, turned_valley, valley, wave
from examples.optimizer_race.rules import RACERS, ROOT, Function, fastest, path
from wonderland import autodiff, optim
from wonderland.optim import rules

START = (-5.0, -2.0)


def at(*place: float) -> Tensor:
    return torch.tensor(place, dtype=torch.float64)


def pairs(points: Tensor) -> list[tuple[float, float]]:
    return [(a, b) for a, b in points.tolist()]


def traces() -> list[Claim]:
    """The ends that D2L prints for 0.1 x1² + 2 x2² from (-5, -2), 20 steps; and for x² from 10, 10 steps."""
    printed = [
        ("gradient descent 0.4", optim.SGD, {"lr": 0.4}, (-0.943467, -0.000073)),
        ("gradient descent 0.6", optim.SGD, {"lr": 0.6}, (-0.387814, -1673.365109)),
        ("momentum 0.5, rate 0.6", optim.Momentum, {"lr": 0.6, "momentum": 0.5}, (0.007188, 0.002553)),
        ("momentum 0.25, rate 0.6", optim.Momentum, {"lr": 0.6, "momentum": 0.25}, (-0.126340, -0.186632)),
        ("AdaGrad 0.4", optim.AdaGrad, {"lr": 0.4, **ROOT}, (-2.382563, -0.158591)),
        ("AdaGrad 2", optim.AdaGrad, {"lr": 2.0, **ROOT}, (-0.002295, 0.0)),
        ("RMSProp 0.9, rate 0.4", optim.RMSProp, {"lr": 0.4, "alpha": 0.9, **ROOT}, (-0.010599, 0.0)),
    ]
    claims = []
    for name, kind, options, ends in printed:
        end = path(kind, valley, at(*START), 20, **options)[-1].tolist()
        claims += [about(f"{name}: D2L's x{k + 1}", end[k], ends[k], 5.1e-7) for k in range(2)]
    for rate, end in ((0.2, 0.060466), (0.05, 3.486784), (1.1, 61.917364)):
        last = path(optim.SGD, torch.square, at(10.0), 10, lr=rate)[-1].item()
        claims.append(about(f"x² with rate {rate}: D2L's x", last, end, 5.1e-7))
    return claims


def newton(f: Function, start: Tensor, steps: int) -> Tensor:
    """The end of some steps of Newton's method: near a minimum, the minimum to the last bit."""
    x = start
    for _ in range(steps):
        x = x + rules.newton(autodiff.grad(lambda x: f(x).sum())(x), autodiff.hessian(lambda x: f(x).sum())(x))
    return x


def turning() -> list[Claim]:
    """The rotated valley is twice the valley in coordinates rotated by 45 degrees: rotation-invariant optimizers follow the rotated path."""
    turn = at(1, 1, 1, -1).reshape(2, 2) / math.sqrt(2)
    claims = []
    for name, kind, options in (
        ("gradient descent", optim.SGD, {}),
        ("momentum 0.5", optim.Momentum, {"momentum": 0.5}),
        ("Nesterov 0.5", optim.Nesterov, {"momentum": 0.5}),
    ):
        straight = path(kind, valley, at(*START), 20, lr=0.2, **options)
        turned = path(kind, turned_valley, turn @ at(*START), 20, lr=0.1, **options)
        claims.append(
            below(
                f"{name} does not see a turn: distance of the paths",
                (straight @ turn - turned).abs().max().item(),
                1e-12,
            )
        )
    for name, kind, rate in (("AdaGrad", optim.AdaGrad, 1.0), ("Adam", optim.Adam, 0.5)):
        straight = path(kind, valley, at(*START), 20, lr=rate)
        turned = path(kind, turned_valley, turn @ at(*START), 20, lr=rate)
        claims.append(above(f"{name} does: distance of the paths", (straight @ turn - turned).abs().max().item(), 0.5))
    return claims


def race() -> tuple[list[Claim], str]:
    """Steps to a thousandth of the initial distance, with the best of twelve learning rates."""
    courses = {
        "x₁² + 2x₂²": (bowl, at(*START), at(0, 0)),
        "valley": (valley, at(*START), at(0, 0)),
        "turned valley": (turned_valley, at(*START), at(0, 0)),
        "hills": (hills, at(3.0, 5.0), newton(hills, at(4.41, 6.28), 5)),
        "x sin 2x": (wave, at(1.05), newton(wave, at(2.45), 5)),
        "x cos 0.15πx": (ripple, at(2.0), newton(ripple, at(7.2), 5)),
    }
    steps_needed: dict[str, dict[str, int | None]] = {}
    rows = []
    for name in RACERS:
        ends = {
            course: fastest(name, f, start, goal, within=5e-3, steps=300)
            for course, (f, start, goal) in courses.items()
        }
        steps_needed[name] = {course: steps for course, (steps, _) in ends.items()}
        rows.append((name, *("-" if steps is None else f"{steps} ({rate:g})" for steps, rate in ends.values())))
    claims = [
        below(f"Newton, one step on the {name}: distance", newton(f, start, 1).norm().item(), 1e-12)
        for name, (f, start, _) in courses.items()
        if name.endswith("valley")
    ]
    claims += [
        below(
            "momentum 0.5 beats plain descent on the valley: steps over steps",
            ratio(steps_needed["momentum 0.5"]["valley"], steps_needed["gradient descent"]["valley"]),
            1,
        ),
        below(
            "rates for each coordinate help along the axes, not across them: AdaGrad's valley over its turned valley",
            ratio(steps_needed["AdaGrad"]["valley"], steps_needed["AdaGrad"]["turned valley"]),
            1,
        ),
    ]
    return claims, table(("rule", *courses), rows)


def ratio(a: int | None, b: int | None) -> float:
    return math.nan if a is None or b is None else a / b


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    claims, report = race()
    shown = {
        "gradient descent 0.4": [pairs(path(optim.SGD, valley, at(*START), 20, lr=0.4))],
        "momentum 0.5, rate 0.6": [pairs(path(optim.Momentum, valley, at(*START), 20, lr=0.6, momentum=0.5))],
        "RMSProp 0.9, rate 0.4": [pairs(path(optim.RMSProp, valley, at(*START), 20, lr=0.4, alpha=0.9, **ROOT))],
    }
    adaptive = {
        f"{name}, rate {rate:g}": [pairs(path(kind, turned_valley, at(*START), 40, lr=rate, **options))]
        for name, kind, rate, options in (
            ("AdaGrad", optim.AdaGrad, 1.0, ROOT),
            ("Adam", optim.Adam, 0.5, {}),
            ("Lion", optim.Lion, 0.2, {}),
        )
    }
    climbing = {
        name: [pairs(path(kind, hills, at(3.0, 5.0), 60, lr=rate, **options))]
        for name, kind, rate, options in (
            ("gradient descent 0.2", optim.SGD, 0.2, {}),
            ("Nesterov 0.9, rate 0.05", optim.Nesterov, 0.05, {"momentum": 0.9}),
            ("Yogi 0.1", optim.Yogi, 0.1, {}),
        )
    }
    loss = {
        name: [(k, max(value, 1e-12)) for k, value in enumerate(valley(points).tolist())]
        for name, points in (
            ("gradient descent 0.4", path(optim.SGD, valley, at(*START), 60, lr=0.4)),
            ("momentum 0.5, rate 0.6", path(optim.Momentum, valley, at(*START), 60, lr=0.6, momentum=0.5)),
            ("AdaGrad 2", path(optim.AdaGrad, valley, at(*START), 60, lr=2.0, **ROOT)),
            ("Adam 0.5", path(optim.Adam, valley, at(*START), 60, lr=0.5)),
        )
    }
    pictures = {
        "valley": plane(valley, (-5.6, 1.4), (-2.6, 3.2), paths=shown, title="Three rules on 0.1x₁² + 2x₂²"),
        "turned_valley": plane(
            turned_valley, (-5.6, 1.9), (-5.0, 1.9), paths=adaptive, title="Rates by coordinate on the turned valley"
        ),
        "hills": plane(hills, (2.0, 6.5), (4.0, 7.6), paths=climbing, title="Three rules on the hills"),
        "loss": lines(loss, title="Height on the way down the valley", x_label="step", y_label="f", log_y=True),
    }
    return (
        [*traces(), *turning(), *claims],
        f"{report}\n\nsteps until within 0.005 of the minimum for ten points in a row (best rate of twelve)",
        pictures,
    )


def main(given: list[str] | None = None) -> int:
    """Exit code: 0 if every stated number is reached, 1 if one is missed."""
    return run("optimizer_race", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
