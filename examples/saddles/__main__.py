"""Find and classify the stationary points of the books' functions."""

import math
import sys

import torch

from examples.lab import Claim, about, equal, plane, run, table
from examples.lab.functions import hills, wave
from examples.saddles.search import Point, classify, stationary
from wonderland import autodiff

STATED = {
    "minimum": [
        (4.4113, 2 * math.pi, -1.76017),
        (1.6378, 3.5097, -1.06459),
        (1.6378, 9.0567, -1.06459),
        (7.9210, 2.7735, -1.06459),
        (7.9210, 9.7929, -1.06459),
        (5.1475, 0.0, -0.36901),
    ],
    "maximum": [
        (1.8719, 0.0, 1.76017),
        (8.1550, 2 * math.pi, 1.76017),
        (4.6454, 2.7735, 1.06459),
        (4.6454, 9.7929, 1.06459),
        (1.1357, 2 * math.pi, 0.36901),
        (7.4188, 0.0, 0.36901),
    ],
    "saddle": [(2.7735, 4.6454, -0.69558), (0.0, 1.8719, 0.0)],
}


def number(value: float) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64)


def on_the_hills() -> tuple[list[Claim], list[Point]]:
    """Alice, exercise of chapter 2: every stationary point in [0, 10]²."""
    points = sorted((classify(hills, place) for place in stationary(hills, 0.0, 10.0)), key=lambda point: point.value)
    claims = []
    for kind, count in (("minimum", 6), ("maximum", 6), ("saddle", 12)):
        of_kind = [point for point in points if point.kind == kind]
        claims.append(equal(f"hills in [0, 10]²: points that are a {kind}", len(of_kind), count))
        far = max(_nearest(stated, of_kind) for stated in STATED[kind])
        claims.append(about(f"hills: the stated points of kind {kind}, distance of the farthest", far, 0, 1e-4))
    return claims, points


def _nearest(stated: tuple[float, float, float], points: list[Point]) -> float:
    return min((math.dist(stated, (*point.place, point.value)) for point in points), default=math.inf)


def elsewhere() -> list[Claim]:
    """Alice 2.3.1 and 2.3.2, D2L 12.1."""
    middle = torch.zeros(2, dtype=torch.float64)
    right = classify(wave, number(2.4565949))
    return [
        equal("x³ at 0", classify(lambda x: x**3, number(0.0)).kind, "flat"),
        equal("x₁² − x₂² at 0", classify(lambda x: x[0] ** 2 - x[1] ** 2, middle).kind, "saddle"),
        equal("x sin(2x) at 1.01438", classify(wave, number(1.01438)).kind, "maximum"),
        equal("x sin(2x) at 2.45659", right.kind, "minimum"),
        about("x sin(2x): second derivative at 2.45659", right.curvatures[0], 10.43, 5e-3),
        about("x sin(2x): its value there", right.value, -2.40723, 1e-5),
        about(
            "tanh: derivative at 4, where it has nearly vanished",
            autodiff.grad(torch.tanh)(number(4.0)).item(),
            0.0013,
            5e-5,
        ),
    ]


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    claims, points = on_the_hills()
    rows = [
        (p.kind, f"({p.place[0]:z.4f}, {p.place[1]:z.4f})", f"{p.value:z.5f}", *(f"{c:.4f}" for c in p.curvatures))
        for p in points
    ]
    report = table(("kind", "place", "value", "eigenvalue", "eigenvalue"), rows, left=2)
    marks = {
        name: [(p.place[0], p.place[1]) for p in points if p.kind == kind]
        for kind, name in (("minimum", "6 minima"), ("maximum", "6 maxima"), ("saddle", "12 saddles"))
    }
    picture = plane(hills, (0, 10), (0, 10), marks=marks, title="Stationary points of sin x₁ cos x₂ + sin ½x₁ cos ½x₂")
    return [*claims, *elsewhere()], report, {"hills": picture}


def main(given: list[str] | None = None) -> int:
    """Exit code: 0 if every stated number is reached, 1 if one is missed."""
    return run("saddles", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
