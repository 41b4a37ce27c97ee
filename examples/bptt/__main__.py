"""Measure what truncation does to the gradient of a recurrent network: a bias, or a variance."""

import math
import sys

from torch import Tensor

from examples.bptt.recurrent import LENGTH, at_random, by_hand, gradients, problem, reach, regular, whole
from examples.lab import Claim, about, above, below, equal, lines, run, table

DRAWS, KEEP = 4096, 0.8
WINDOWS = (1, 2, 3, 4, 6, 8, 12, 24)
SIZES = (1, 4, 16, 64, 256, 1024)


def relative_error(gradient: Tensor, true: Tensor) -> float:
    """The distance of a gradient from the true one, relative to the norm of that."""
    return ((gradient - true).norm() / true.norm()).item()


def cut_regularly(true: Tensor) -> tuple[list[Claim], list[tuple[int, float, float]]]:
    """Truncation at regular places: the same error every time."""
    given = problem()
    rows = []
    for window in WINDOWS:
        gradient = gradients(regular(window), given)[0]
        angle = math.degrees(math.acos(min(1.0, ((gradient * true).sum() / gradient.norm() / true.norm()).item())))
        rows.append((window, relative_error(gradient, true), angle))
    biases = {window: bias for window, bias, _ in rows}
    return [
        above("cut every 4 steps: bias, relative to the whole gradient", biases[4], 0.25),
        above("cut every 12 steps: bias", biases[12], 0.01),
        equal(f"cut every {LENGTH} steps, which is nowhere: bias", biases[24], 0.0),
    ], rows


def _error(draws: Tensor, true: Tensor, size: int) -> tuple[float, float, float]:
    """The root mean square error of means of `size` draws, relative, with two standard errors below and above."""
    groups = draws.reshape(-1, size, *true.shape).mean(1)
    squares = ((groups - true).flatten(1).norm(dim=1) / true.norm()) ** 2
    middle, doubt = squares.mean().item(), 2 * squares.std().item() / math.sqrt(len(squares))
    return math.sqrt(middle), math.sqrt(max(middle - doubt, middle / 10)), math.sqrt(middle + doubt)


def cut_at_random(true: Tensor, truncated: Tensor) -> tuple[list[Claim], list[tuple[int, float, float, float]], float]:
    """Truncation at random places: right on average, with error bars."""
    draws = gradients(at_random(DRAWS, KEEP), problem())
    mean, spread = draws.mean(0), draws.std(0) / math.sqrt(DRAWS)
    scores = (mean - true) / spread
    # The bias of regular truncation, in standard errors of this mean.
    bias = ((truncated - true) / spread).pow(2).mean().sqrt().item()
    curve = [(size, *_error(draws, true, size)) for size in SIZES]
    slope = math.log(curve[-2][1] / curve[0][1]) / math.log(curve[-2][0] / curve[0][0])
    return (
        [
            below(
                f"cut at random, {DRAWS} draws: the largest of 16 deviations, in standard errors",
                scores.abs().max().item(),
                4,
            ),
            about("cut at random: root mean square of them", scores.pow(2).mean().sqrt().item(), 1, 0.6),
            above("cut every 4 steps: deviation in the same standard errors", bias, 10),
            about("cut at random: error falls with the number of draws to the power", slope, -0.5, 0.05),
            above(
                "cut at random, one draw: error over the bias of a cut every 4 steps",
                curve[0][1] / relative_error(truncated, true),
                1,
            ),
        ],
        curve,
        relative_error(mean, true),
    )


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    given = problem()
    true = gradients(whole(), given)[0]
    first, rows = cut_regularly(true)
    second, curve, left = cut_at_random(true, gradients(regular(4), given)[0])
    claims = [
        below("whole gradient: engine against the recursion by hand", relative_error(true, by_hand(given)), 1e-12),
        *first,
        *second,
    ]
    shown = [(f"cut every {window}", f"{bias:.4f}", f"{angle:.1f}°") for window, bias, angle in rows]
    shown.append((f"cut at random, one draw of {DRAWS}", f"{curve[0][1]:.4f}", ""))
    shown.append((f"cut at random, mean of {DRAWS}", f"{left:.4f}", ""))
    flat = [(size, rows[3][1]) for size in (SIZES[0], SIZES[-1])]
    lower = [(size, rows[5][1]) for size in (SIZES[0], SIZES[-1])]
    pictures = {
        "bias": lines(
            {"cut regularly": [(window, bias) for window, bias, _ in rows]},
            marks={"each length": [(window, bias) for window, bias, _ in rows]},
            title="Bias of regular truncation",
            x_label="steps between cuts",
            y_label="distance from the whole gradient, relative",
        ),
        "random": lines(
            {
                "cut at random, mean of so many": [(size, error) for size, error, _, _ in curve],
                "cut every 4 steps": flat,
                "cut every 8 steps": lower,
            },
            title="A bias stays, a variance is averaged away",
            x_label="draws in the mean",
            y_label="distance from the whole gradient, relative",
            log_x=True,
            log_y=True,
            whiskers={"cut at random, mean of so many": [(size, low, high) for size, _, low, high in curve]},
        ),
        "reach": lines(
            {"norm of the derivative": [(k, size) for k, size in enumerate(reach(given).tolist())]},
            title="How far back the last state sees",
            x_label="steps back",
            y_label="norm of ∂h(T) / ∂h(T − k)",
            log_y=True,
        ),
    }
    return claims, table(("gradient", "distance", "angle"), shown), pictures


def main(given: list[str] | None = None) -> int:
    """Exit code: 0 if every stated number is reached, 1 if one is missed."""
    return run("bptt", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
