"""Follow Newton's method and preconditioned descent, and measure how fast they are and where they fail."""

import math
import sys

import torch
from torch import Tensor

from examples.lab import Claim, about, below, equal, lines, plane, run, table
from examples.lab.functions import basin, hills, ripple, turned_valley, valley
from examples.newton.methods import absolute, condition, diagonal, follow, plain, preconditioned, steps_until, whole
from wonderland import autodiff


def at(*place: float) -> Tensor:
    return torch.tensor(place, dtype=torch.float64)


def one(f):
    """A function of a number as one of a vector with one entry."""
    return lambda x: f(x[0])


def pairs(path: Tensor) -> list[tuple[float, float]]:
    return [(a, b) for a, b in path.tolist()]


def d2l() -> list[Claim]:
    """The ends that D2L 12.3 prints."""
    return [
        about("cosh(x/2) from 10, 10 steps of Newton: x", follow(one(basin), at(10.0), 10)[-1].item(), 0, 5e-7),
        about(
            "x cos(0.15πx) from 10, Newton goes wrong where the curvature is negative: x",
            follow(one(ripple), at(10.0), 10)[-1].item(),
            26.834133,
            1e-6,
        ),
        about("with rate 0.5: x", follow(one(ripple), at(10.0), 10, rate=0.5)[-1].item(), 7.269860, 1e-6),
    ]


def speed() -> tuple[list[Claim], dict[str, str]]:
    """The error after a step is a constant times a power of the error before it."""
    lowest = follow(one(ripple), at(7.0), 12)[-1].item()
    second = (follow(one(ripple), at(6.0), 4)[:, 0] - lowest).abs().tolist()
    third = follow(one(basin), at(1.5), 3)[:, 0].abs().tolist()
    slow = (follow(one(ripple), at(6.0), 12, plain, 0.3)[:, 0] - lowest).abs().tolist()
    bend = autodiff.grad(autodiff.grad(ripple))
    constant = (autodiff.grad(bend)(at(lowest)[0]) / (2 * bend(at(lowest)[0]))).abs().item()
    order = lambda errors: math.log(errors[-1] / errors[-2]) / math.log(errors[-2] / errors[-3])  # noqa: E731
    claims = [
        about("x cos(0.15πx): order of Newton's convergence", order(second), 2, 0.05),
        about(
            "x cos(0.15πx): error over squared error, over f'''/2f''", second[4] / second[3] ** 2 / constant, 1, 0.02
        ),
        about("cosh(x/2), whose third derivative is 0 at the minimum: order", order(third), 3, 0.05),
    ]
    shown = {
        "Newton on cosh(x/2)": list(enumerate(third)),
        "Newton on x cos(0.15πx)": list(enumerate(second)),
        "descent on x cos(0.15πx), rate 0.3": list(enumerate(slow)),
    }
    tidy = {name: [(k, max(error, 1e-16)) for k, error in points] for name, points in shown.items()}
    picture = lines(tidy, title="Distance to the minimum", x_label="step", y_label="error", log_y=True)
    return claims, {"speed": picture}


def expected(condition_number: float) -> int:
    """Steps to a thousandth of the distance with the best rate: each shrinks the distance by (k - 1) / (k + 1)."""
    share = (condition_number - 1) / (condition_number + 1)
    return math.ceil(math.log(1e-3) / math.log(share)) if share else 1


def preconditioning() -> tuple[list[Claim], str, dict[str, str]]:
    """Diagonal preconditioning helps for a valley along the axes, not for a rotated one."""
    start, rows, claims, pictures = at(-5.0, -2.0), [], [], {}
    for name, f, after in (("valley", valley, 1.0), ("turned valley", turned_valley, 20.0)):
        curvature = autodiff.hessian(f)(start)
        values = torch.linalg.eigvalsh(curvature)
        inner = torch.linalg.eigvalsh(preconditioned(curvature))
        # The best constant rate, 2 / (smallest + largest eigenvalue).
        rates = [(2 / (bend[0] + bend[-1])).item() for bend in (values, inner)]
        ways = {
            "descent": follow(f, start, 80, plain, rates[0]),
            "diagonal": follow(f, start, 80, diagonal, rates[1]),
            "Newton": follow(f, start, 1, whole),
        }
        counts = [steps_until(path, 1e-3) for path in ways.values()]
        conditions = condition(curvature), condition(preconditioned(curvature))
        rows.append((name, *(f"{entry:.4g}" for entry in conditions), *counts))
        claims += [
            about(f"{name}: condition number", conditions[0], 20, 1e-9),
            about(f"{name}: after preconditioning", conditions[1], after, 1e-9),
            equal(f"{name}: steps of descent to a thousandth of the distance", counts[0], expected(20.0)),
            equal(f"{name}: steps of preconditioned descent", counts[1], expected(after)),
            equal(f"{name}: steps of Newton", counts[2], 1),
        ]
        shown = {name: [pairs(path[:13])] for name, path in ways.items()}
        pictures[name.replace(" ", "_")] = plane(
            f, (-5.6, 1.6), (-4.6, 2.4), paths=shown, title=f"Three ways down the {name}"
        )
    head = ("function", "condition", "after diagonal", "steps: descent", "diagonal", "Newton")
    return claims, table(head, rows), pictures


def saddles() -> tuple[list[Claim], dict[str, str]]:
    """Newton's method converges to any nearby stationary point; with absolute eigenvalues it leaves saddles."""
    start = at(3.3, 4.4)
    ways = {
        "Newton": follow(hills, start, 12),
        "with absolute eigenvalues": follow(hills, start, 30, absolute, 0.5),
        "descent, rate 0.3": follow(hills, start, 80, plain, 0.3),
    }
    claims = [
        about("hills from (3.3, 4.4), Newton's end, a saddle: x₁", ways["Newton"][-1][0].item(), 2.7735, 5e-5),
        about("hills, Newton's end: x₂", ways["Newton"][-1][1].item(), 4.6454, 5e-5),
        below(
            "hills, Newton's end: norm of the gradient", autodiff.grad(hills)(ways["Newton"][-1]).norm().item(), 1e-12
        ),
        about(
            "with absolute eigenvalues the end is as low as",
            hills(ways["with absolute eigenvalues"][-1]).item(),
            -1.76017,
            1e-5,
        ),
        about("and so is descent's", hills(ways["descent, rate 0.3"][-1]).item(), -1.76017, 1e-5),
    ]
    picture = plane(
        hills,
        (2.0, 5.2),
        (3.8, 7.0),
        paths={name: [pairs(path[:25])] for name, path in ways.items()},
        title="From the neighbourhood of a saddle",
    )
    return claims, {"saddle": picture}


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    first, one_picture = speed()
    second, report, pictures = preconditioning()
    last, saddle = saddles()
    return [*d2l(), *first, *second, *last], report, {**one_picture, **pictures, **saddle}


def main(given: list[str] | None = None) -> int:
    """Exit code: 0 if every stated number is reached, 1 if one is missed."""
    return run("newton", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
