"""Compare errors and costs of derivatives: finite differences, symbolic, products of Jacobians, jvp and vjp."""

import sys
from statistics import median

import torch

from examples.derivatives import ways
from examples.derivatives.functions import SUBJECTS, Subject, nested
from examples.derivatives.ways import Result, compare, truth
from examples.lab import Claim, about, above, below, equal, lines, run, table
from wonderland import autodiff
from wonderland.autodiff.numeric import SCHEMES, numerical_gradient
from wonderland.autodiff.symbolic import Swell, swell, symbolic_derivative
from wonderland.autodiff.tangents import literal_forward, literal_reverse
from wonderland.autodiff.trace import trace

BOUNDS = {
    ways.FORWARD: 1e-6,
    ways.CENTRAL: 1e-8,
    ways.COMPLEX: 1e-14,
    ways.SYMBOLIC: 1e-15,
    ways.LITERAL: 1e-12,
    ways.LITERAL_BACK: 1e-12,
    ways.PRODUCTS: 1e-12,
    ways.REVERSE: 1e-12,
}


def errors(results: list[Result]) -> list[Claim]:
    claims = []
    for way, bound in BOUNDS.items():
        worst = max(result.error for result in results if result.way == way)
        claims.append(below(f"{way}: worst relative error on the {len(SUBJECTS)} functions", worst, bound))
    for way, bound in ((ways.FORWARD, 1e-7), (ways.CENTRAL, 1e-10), (ways.COMPLEX, 1e-15)):
        middle = median(result.error for result in results if result.way == way)
        claims.append(below(f"{way}: median of the errors", middle, bound))
    rough = min(result.error for result in results if result.way == ways.FORWARD)
    return [*claims, above(f"{ways.FORWARD}: the best of them, all the same", rough, 1e-10)]


def swelling() -> tuple[list[Claim], list[Swell]]:
    """Alice 6.1.2: a formula writes again what a program computes once."""
    rows = swell(lambda x: x * torch.sin(x), range(1, 8))
    formula = symbolic_derivative(lambda x, a, b: a * torch.sin(x) + b * x * torch.sin(x), "x", "a", "b")
    last = rows[-1]
    return [
        equal("the book's formula (C.6.1)", str(formula), "a*cos(x) + b*x*cos(x) + b*sin(x)"),
        equal(
            "x sin x repeated 1 to 7 times: operations that the derivative writes",
            [r.derivative for r in rows],
            [4, 24, 88, 272, 768, 2048, 5248],
        ),
        equal("the steps of its trace", [r.steps for r in rows], [2, 4, 6, 8, 10, 12, 14]),
        below("steps of value and gradient over those of the value, 7 times", last.reverse / last.steps, 4),
        above("operations written over steps of value and gradient, 7 times", last.derivative / last.reverse, 50),
    ], rows


def literal_costs() -> tuple[list[Claim], dict[str, list[tuple[float, float]]]]:
    """Alice 6.2 and 6.3: forward mode pays for inputs, reverse mode for outputs; a chain takes l (l - 1) / 2 updates."""

    def chain(width: int, depth: int = 5):
        generator = torch.Generator().manual_seed(0)
        weights = [torch.randn(width, width, dtype=torch.float64, generator=generator) for _ in range(depth)]
        layers = [lambda h, w: torch.tanh(w @ h)] * depth
        return [*layers, torch.sum], torch.ones(width, dtype=torch.float64), *weights, None

    widths = (2, 3, 4, 6, 8)
    curves: dict[str, list[tuple[float, float]]] = {
        "literal forward": [],
        "literal reverse": [],
        "reverse by products": [],
    }
    for width in widths:
        functions, x, *weights = chain(width)
        forward, back = literal_forward(functions, x, *weights), literal_reverse(functions, x, *weights)
        given = [weight for weight in weights if weight is not None]

        def whole(x, *given):
            for weight in given:
                x = torch.tanh(weight @ x)
            return x.sum()

        curves["literal forward"].append((width, forward.products))
        curves["literal reverse"].append((width, back.products))
        curves["reverse by products"].append((width, trace(whole, x, *given).reverse().flops))
    functions, x, *weights = chain(8)
    forward, back = literal_forward(functions, x, *weights), literal_reverse(functions, x, *weights)
    gradients = zip(forward.gradients()[:6], back.gradients()[:6], strict=True)
    apart = max(((a - b).norm() / b.norm()).item() for a, b in gradients if a is not None and b is not None)
    return [
        below("5 layers of width 8: literal forward against literal reverse", apart, 1e-12),
        equal("literal forward: updates (for the weights 6·5/2, for x 5)", forward.updates, 15 + 5),
        equal("literal reverse: updates (two for each layer)", back.updates, 10),
        above("products, literal forward over literal reverse", forward.products / back.products, 15),
        above(
            "products, literal reverse over reverse by products",
            back.products / curves["reverse by products"][-1][1],
            2,
        ),
    ], curves


def small_numbers() -> list[Claim]:
    """Alice 2.2.2 and 2.2.3 (C.2.6)."""
    bend = lambda x: x**2 - 1.5 * x  # noqa: E731
    at, value = torch.tensor(0.5, dtype=torch.float64), torch.tensor(0.51, dtype=torch.float64)
    out, gradient = autodiff.linearize(bend, at)
    x, v = torch.tensor([1.0, 2.0], dtype=torch.float64), torch.tensor([3.0, 4.0], dtype=torch.float64)
    return [
        about("x² − 1.5x at 0.51", bend(value).item(), -0.5049, 1e-12),
        about("its linearisation at 0.5", (out + gradient(value - at)).item(), -0.5050, 1e-12),
        about(
            "sum of squares at (1, 2) along (3, 4)",
            autodiff.directional(lambda x: (x**2).sum(), x, v).item(),
            22,
            1e-12,
        ),
    ]


def steps_picture() -> str:
    """How the error of differences depends on the step: too long truncates, too short rounds."""
    subject = Subject("", nested, (2.125,))
    true, _, _ = truth(subject)
    curves = {}
    for scheme in SCHEMES:
        points = []
        for power in range(-28, -1):
            step = 10.0 ** (power / 2)
            gradient = numerical_gradient(nested, subject.x, scheme=scheme, step=step)
            points.append((step, max(((gradient - true).norm() / true.norm()).item(), 1e-17)))
        best = min(points, key=lambda point: point[1])[0]
        curves["complex step" if scheme == "complex" else f"{scheme}, best at {best:.0e}"] = points
    return lines(curves, title="Error of differences", x_label="step", y_label="relative error", log_x=True, log_y=True)


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    results = [result for subject in SUBJECTS for result in compare(subject)]
    rows = [(r.subject, r.way, f"{r.error:.1e}", r.passes, r.operations, f"{r.milliseconds:.1f}") for r in results]
    swollen, lengths = swelling()
    costs, curves = literal_costs()
    report = table(("function", "way", "relative error", "passes", "operations", "ms"), rows, left=2)
    pictures = {
        "steps": steps_picture(),
        "swell": lines(
            {
                "written by the derivative": [(row.depth, row.derivative) for row in lengths],
                "after naming common parts": [(row.depth, row.shared) for row in lengths],
                "steps of value and gradient": [(row.depth, row.reverse) for row in lengths],
            },
            title="Expression swell of x sin x, repeated",
            x_label="times repeated",
            y_label="operations",
            log_y=True,
        ),
        "costs": lines(
            curves,
            title="Five layers: what the gradient costs",
            x_label="width of the layers",
            y_label="products",
            log_y=True,
        ),
    }
    return [*errors(results), *swollen, *costs, *small_numbers()], report, pictures


def main(given: list[str] | None = None) -> int:
    """Exit code: 0 if every stated number is reached, 1 if one is missed."""
    return run("derivatives", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
