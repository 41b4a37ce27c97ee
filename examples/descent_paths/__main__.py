"""Descend the books' functions and check every number on the way."""

import sys

import torch
from torch import Tensor

from examples.descent_paths.descent import descend, lowest_curvature, steepest
from examples.lab import Claim, about, above, below, equal, lines, plane, run, table
from examples.lab.functions import bowl, hills, ripple, valley, wave
from wonderland import autodiff


def number(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


def pairs(path: Tensor) -> list[tuple[float, float]]:
    return [(a, b) for a, b in path.tolist()]


def momentum_on_a_wave() -> tuple[list[Claim], dict[str, str]]:
    """Alice 2.3.2: x sin(2x) from 1 + 0.05, momentum 0.3."""
    plain, fast = (descend(wave, number(1.05), 0.05, 50, momentum) for momentum in (0.0, 0.3))
    starts = torch.tensor([1.01, 1.02], dtype=torch.float64)
    sides = descend(wave, starts, 0.05, 250)[-1]
    swinging = descend(wave, number(1.05), 0.2, 301)[-2:].sort().values
    calm = descend(wave, number(1.05), 0.2, 100, 0.3)[-1]
    claims = [
        about("wave, rate 0.05, 10 steps: plain descent is at", plain[10].item(), 1.461, 5e-4),
        about("wave, with momentum 0.3", fast[10].item(), 1.775, 5e-4),
        about("wave, 50 steps: plain descent is at", plain[50].item(), 2.4566, 5e-5),
        about("wave, with momentum", fast[50].item(), 2.4566, 5e-5),
        about("wave, from 1.01 (left of the maximum at 1.01438): the end is", sides[0].item(), 0, 1e-8),
        about("wave, from 1.02: the end is", sides[1].item(), 2.45659, 1e-5),
        about("wave, rate 0.2: plain descent swings between", swinging[0].item(), 2.239, 5e-4),
        about("wave, rate 0.2: and", swinging[1].item(), 2.641, 5e-4),
        about("wave, rate 0.2: momentum still converges to", calm.item(), 2.45659, 1e-5),
    ]
    grid = torch.linspace(-0.3, 3.0, 120, dtype=torch.float64)
    shown = {"x sin(2x)": list(zip(grid.tolist(), wave(grid).tolist(), strict=True))}
    dots = {
        f"{name}, 10 steps": list(zip(path[:11].tolist(), wave(path[:11]).tolist(), strict=True))
        for name, path in (("plain descent", plain), ("momentum 0.3", fast))
    }
    picture = lines(shown, marks=dots, title="Descent of x sin(2x), rate 0.05", x_label="x", y_label="f(x)")
    return claims, {"wave": picture}


def traces_of_d2l() -> tuple[list[Claim], dict[str, str], list[tuple[str, float, float, int, str]]]:
    """The ends that D2L prints in 12.3 and 12.6."""
    start = torch.tensor([-5.0, -2.0], dtype=torch.float64)
    runs = [
        ("x²", torch.square, number(10.0), 0.2, 0.0, 10, (0.060466,)),
        ("x²", torch.square, number(10.0), 0.05, 0.0, 10, (3.486784,)),
        ("x²", torch.square, number(10.0), 1.1, 0.0, 10, (61.917364,)),
        ("x cos(0.15πx)", ripple, number(10.0), 2.0, 0.0, 10, (-1.528166,)),
        ("x₁² + 2x₂²", bowl, start, 0.1, 0.0, 20, (-0.057646, -0.000073)),
        ("0.1x₁² + 2x₂²", valley, start, 0.4, 0.0, 20, (-0.943467, -0.000073)),
        ("0.1x₁² + 2x₂²", valley, start, 0.6, 0.0, 20, (-0.387814, -1673.365109)),
        ("0.1x₁² + 2x₂²", valley, start, 0.6, 0.5, 20, (0.007188, 0.002553)),
        ("0.1x₁² + 2x₂²", valley, start, 0.6, 0.25, 20, (-0.126340, -0.186632)),
    ]
    claims, rows = [], []
    for name, f, begin, rate, momentum, steps, ends in runs:
        path = descend(f, begin, rate, steps, momentum)
        end = path[-1].reshape(-1).tolist()
        rows.append((name, rate, momentum, steps, ", ".join(f"{entry:.6f}" for entry in end)))
        for k, (entry, stated) in enumerate(zip(end, ends, strict=True)):
            place = f"x{k + 1}" if len(ends) > 1 else "x"
            claims.append(about(f"{name}, rate {rate}, momentum {momentum}: D2L's {place}", entry, stated, 1e-6))
    ways = {
        "plain, rate 0.4": [pairs(descend(valley, start, 0.4, 20))],
        "momentum 0.5, rate 0.6": [pairs(descend(valley, start, 0.6, 20, 0.5))],
        "plain, rate 0.6, diverges": [pairs(descend(valley, start, 0.6, 4))],
    }
    picture = plane(valley, (-5.6, 1.4), (-2.6, 2.6), paths=ways, title="Descent of 0.1x₁² + 2x₂² from (−5, −2)")
    return claims, {"valley": picture}, rows


def stability() -> list[Claim]:
    """D2L 12.6: on (λ/2) x² descent converges when rate times λ is below 2, with momentum below 2 + 2 momentum."""
    claims = []
    for momentum in (0.0, 0.5, 0.9):
        edge = 2 + 2 * momentum
        curvature = edge * torch.tensor([0.99, 1.01], dtype=torch.float64)
        under, over = (
            descend(lambda x, c=curvature: c / 2 * x**2, torch.ones_like(curvature), 1.0, 300, momentum)[-1]
            .abs()
            .tolist()
        )
        claims.append(below(f"λx²/2, momentum {momentum}, rate times λ 1 % under {edge:g}: the end", under, 1e-2))
        claims.append(above(f"λx²/2, momentum {momentum}, rate times λ 1 % over {edge:g}: the end", over, 1e2))
    return claims


def orthogonality() -> list[Claim]:
    """Alice 2.3: with exact line search, each gradient is orthogonal to the one before."""
    path, gradients = steepest(valley, torch.tensor([-5.0, -2.0], dtype=torch.float64), 8)
    units = gradients / gradients.norm(dim=1, keepdim=True)
    angles = (units[1:] * units[:-1]).sum(1).abs().max().item()
    falls = (valley(path[1:]) < valley(path[:-1])).all().item()
    return [
        below("exact line search: cosine between consecutive gradients", angles, 1e-12),
        equal("exact line search: the value falls at each", falls, True),
    ]


def many_starts() -> tuple[list[Claim], dict[str, str]]:
    """Alice, exercise of chapter 2: descent from many starts in [0, 10]²; the gradient's norm tends to 0."""
    generator = torch.Generator().manual_seed(0)
    starts = 10 * torch.rand(60, 2, dtype=torch.float64, generator=generator)
    path = descend(hills, starts, 0.2, 300, 0.3)
    norms = torch.stack([autodiff.grad(lambda x: hills(x).sum())(points).norm(dim=1) for points in path[::10]])
    ends = path[-1]
    outside = ((ends < 0) | (ends > 10)).any(1).sum().item()
    lowest = (hills(ends) + 1.76017).abs() < 1e-4
    claims = [
        below("hills, 60 starts, 300 steps: the largest gradient norm", norms[-1].max().item(), 1e-8),
        above(
            "hills: the smallest eigenvalue of the Hessian at the ends (all are minima)",
            lowest_curvature(hills, ends).min().item(),
            0.1,
        ),
        above("hills: ends outside of the box, which nothing enforces", outside, 0),
        above("hills: share of the starts that reach the lowest value, -1.76017", lowest.double().mean().item(), 0.2),
    ]
    thin = path[:41].transpose(0, 1)
    minima = [
        (a, b)
        for a, b in sorted({(round(a, 3), round(b, 3)) for a, b in ends.tolist()})
        if 0 <= a <= 10 and 0 <= b <= 10
    ]
    picture = plane(
        hills,
        (0, 10),
        (0, 10),
        paths={"descent, rate 0.2, momentum 0.3": [pairs(one) for one in thin]},
        marks={"where they end": minima},
        title="sin x₁ cos x₂ + sin ½x₁ cos ½x₂",
    )
    curve = [(10 * k, max(row.median().item(), 1e-16)) for k, row in enumerate(norms)]
    top = [(10 * k, max(row.max().item(), 1e-16)) for k, row in enumerate(norms)]
    norm = lines(
        {"median of 60 starts": curve, "largest": top},
        title="Norm of the gradient on the hills",
        x_label="step",
        y_label="norm of the gradient",
        log_y=True,
    )
    return claims, {"hills": picture, "gradient_norm": norm}


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    first, one = momentum_on_a_wave()
    second, two, rows = traces_of_d2l()
    last, three = many_starts()
    report = table(("function", "rate", "momentum", "steps", "end"), rows)
    return [*first, *second, *stability(), *orthogonality(), *last], report, {**one, **two, **three}


def main(given: list[str] | None = None) -> int:
    """Exit code: 0 if every stated number is reached, 1 if one is missed."""
    return run("descent_paths", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
