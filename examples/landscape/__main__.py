"""Train a small network, and plot its loss around the minimum and along the training path."""

import sys

import torch
from torch import Tensor

from examples.lab import Claim, above, below, equal, lines, plane, run, table
from examples.landscape.network import Loss, loss, moons, polish, random_direction, score, start, swapped, train
from wonderland import autodiff


def curvature(f: Loss, weights: Tensor, direction: Tensor, h: float = 1e-3) -> float:
    """The curvature along a direction, by a second difference."""
    ends = f(torch.stack([weights + h * direction, weights, weights - h * direction]))
    return ((ends[0] - 2 * ends[1] + ends[2]) / h**2).item()


def around(f: Loss, weights: Tensor, one: Tensor, other: Tensor):
    """The loss as a function of the plane through the weights."""
    return lambda points: f(weights + points @ torch.stack([one, other]))


def learned(f: Loss, path: Tensor, end: Tensor) -> list[Claim]:
    points, sign = moons()
    right = (score(end, points).sign() == sign).double().mean().item()
    return [
        below("loss at the end over loss at the beginning", (f(end) / f(path[0])).item(), 0.15),
        equal("share of the points that it gets right", right, 1.0),
        below("norm of the gradient at the end", autodiff.grad(f)(end).norm().item(), 1e-10),
    ]


def curved(f: Loss, end: Tensor) -> tuple[list[Claim], Tensor, Tensor]:
    """Curvatures along directions agree with the Hessian."""
    values, vectors = torch.linalg.eigh(autodiff.hessian(f)(end))
    rows = []
    for name, direction in (
        ("steepest", vectors[:, -1]),
        ("flattest", vectors[:, 0]),
        ("random", random_direction(end, 0)),
    ):
        product = (direction @ autodiff.hvp(f, (end,), (direction,))[1]).item()
        rows.append((name, product, curvature(f, end, direction)))
    worst = max(abs(seen / said - 1) for _, said, seen in rows)
    claims = [
        above("smallest eigenvalue of the Hessian: the end is a minimum", values[0].item(), 0),
        above("condition number: steep one way, flat another", (values[-1] / values[0]).item(), 100),
        below("curvature of the picture against the Hessian's", worst, 1e-3),
    ]
    return claims, values, vectors


def twins(f: Loss, end: Tensor) -> tuple[list[Claim], str]:
    """Permuted units are the same function: two minima of equal loss, with a barrier between them."""
    other = swapped(end)
    shares = torch.linspace(0, 1, 81, dtype=torch.float64)
    between = f(end + shares[:, None] * (other - end))
    claims = [
        below("two orders of the units: difference of the losses", (f(end) - f(other)).abs().item(), 1e-14),
        above("between them the loss rises, over that of the ends", (between.max() / f(end)).item(), 3),
    ]
    curve = list(zip(shares.tolist(), between.tolist(), strict=True))
    ends = [curve[0], curve[-1]]
    picture = lines(
        {"loss": curve},
        marks={"the same function, its units in another order": ends},
        title="From a minimum to its twin",
        x_label="share of the way",
        y_label="loss",
    )
    return claims, picture


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    f = loss()
    path = train(f, start())
    end = polish(f, path[-1])
    claims = learned(f, path, end)
    more, values, vectors = curved(f, end)
    last, picture = twins(f, end)
    away = path - end
    _, sizes, principal = torch.linalg.svd(away, full_matrices=False)
    share = ((sizes[:2] ** 2).sum() / (sizes**2).sum()).item()
    seen = away @ principal[:2].T
    reach = 0.35 * seen.abs().amax(0)
    spans = torch.stack([torch.minimum(1.12 * seen.amin(0), -reach), torch.maximum(1.12 * seen.amax(0), reach)], 1)
    one, other = random_direction(end, 0), random_direction(end, 1)
    here = {"the minimum": [(0.0, 0.0)]}
    steep = [3 / values[k].sqrt().item() for k in (-1, -2)]
    axes = steep[0] * vectors[:, -1], steep[1] * vectors[:, -2]
    pictures = {
        "random": plane(
            around(f, end, one, other),
            (-1, 1),
            (-1, 1),
            marks=here,
            names=("one random direction", "another"),
            title="The loss along two random directions",
        ),
        "steepest": plane(
            around(f, end, *axes),
            (-0.5, 0.5),
            (-0.5, 0.5),
            marks=here,
            names=("steepest direction", "second steepest"),
            title="The loss along its steepest directions",
        ),
        "path": plane(
            around(f, end, principal[0], principal[1]),
            *(tuple(span) for span in spans.tolist()),
            paths={"training": [[(a, b) for a, b in seen[::4].tolist()]]},
            marks=here,
            names=("first principal direction", "second"),
            title="The way of training",
        ),
        "twins": picture,
    }
    claims += [*more, above("share of the path that two principal directions show", share, 0.8), *last]
    report = table(
        ("", "loss"), [("beginning", f(path[0]).item()), ("400 steps", f(path[-1]).item()), ("end", f(end).item())]
    )
    return claims, report, pictures


def main(given: list[str] | None = None) -> int:
    """Exit code: 0 if every stated number is reached, 1 if one is missed."""
    return run("landscape", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
