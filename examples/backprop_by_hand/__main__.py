"""Compare gradients derived by hand with those of autodiff, and train with both."""

import math
import sys
from functools import partial

import torch
from torch import Tensor

from examples.backprop_by_hand.network import ACTIVATIONS, LOSSES, by_hand, objective
from examples.backprop_by_hand.picture import graph
from examples.lab import Claim, about, below, equal, lines, run, table
from wonderland import autodiff
from wonderland.autodiff.trace import trace

DECAY = 0.1


def problem(samples: int = 20, inputs: int = 5, hidden: int = 7, outputs: int = 3) -> tuple[Tensor, ...]:
    """Weights, inputs, and one-hot targets."""
    generator = torch.Generator().manual_seed(0)
    sizes = ((hidden, inputs), (outputs, hidden), (samples, inputs))
    w1, w2, x = (torch.randn(size, dtype=torch.float64, generator=generator) for size in sizes)
    y = torch.eye(outputs, dtype=torch.float64)[torch.randint(outputs, (samples,), generator=generator)]
    return w1, w2, x, y


def difference(actual: tuple[Tensor, ...], expected: tuple[Tensor, ...]) -> float:
    """The largest difference, relative to the expected norm."""
    return max(((a - b).norm() / b.norm()).item() for a, b in zip(actual, expected, strict=True))


def agreement() -> tuple[list[Claim], str]:
    w1, w2, x, y = problem()
    rows, claims = [], []
    for loss in LOSSES:
        for activation in ACTIVATIONS:
            engine = autodiff.grad(partial(objective, decay=DECAY, activation=activation, loss=loss), (0, 1, 2))
            pair = by_hand(w1, w2, x, y, DECAY, activation, loss), engine(w1, w2, x, y)
            rows.append((activation, loss, *(difference((a,), (b,)) for a, b in zip(*pair, strict=True))))
            claims.append(below(f"{activation}, {loss}: hand against engine", difference(*pair), 1e-12))
    return claims, table(("activation", "loss", "W1", "W2", "x"), rows, left=2)


def training(steps: int = 80, rate: float = 0.3) -> tuple[list[Claim], dict[str, str]]:
    """Gradient descent with both gradients gives equal paths; and units with equal initial weights stay equal."""
    w1, w2, x, y = problem()
    f = partial(objective, x=x, y=y, decay=0.01, activation="tanh", loss="cross-entropy")
    engine = autodiff.grad(f, (0, 1))
    hand = lambda a, b: by_hand(a, b, x, y, 0.01, "tanh", "cross-entropy")[:2]  # noqa: E731

    def descend(gradients, a: Tensor, b: Tensor) -> tuple[list[float], Tensor, Tensor]:
        curve = [f(a, b).item()]
        for _ in range(steps):
            da, db = gradients(a, b)
            a, b = a - rate * da, b - rate * db
            curve.append(f(a, b).item())
        return curve, a, b

    mine, a, b = descend(hand, w1, w2)
    theirs, c, d = descend(engine, w1, w2)
    # Equal hidden units: the same row of W1 and the same column of W2 for each.
    alike, e, _ = descend(hand, w1[:1].expand_as(w1).clone(), w2[:, :1].expand_as(w2).clone())
    claims = [
        below(f"{steps} steps with each: distance of the weights", difference((a, b), (c, d)), 1e-12),
        below("units that begin alike: how far apart they are after training", (e - e[:1]).abs().max().item(), 1e-14),
        below("loss after training, over that of units that begin alike", mine[-1] / alike[-1], 0.6),
    ]
    shown = {"by hand": mine, "by the engine": theirs, "by hand, all units alike": alike}
    picture = lines(
        {name: list(enumerate(curve)) for name, curve in shown.items()},
        title="Training with gradients derived by hand",
        x_label="step",
        y_label="objective",
    )
    return claims, {"training": picture}


def cost() -> list[Claim]:
    """D2L 5.3: the backward pass takes about twice the operations of the forward pass."""
    w1, w2, x, y = problem(64, 32, 48, 16)
    f = partial(objective, decay=DECAY, activation="relu", loss="squared")
    forward = trace(f, w1, w2, x, y)
    return [
        about(
            "operations of the backward pass over those of the forward pass",
            forward.reverse().flops / forward.flops - 1,
            2,
            0.15,
        )
    ]


def vanishing() -> list[Claim]:
    """Alice 6.4.3, D2L 5.4: sigmoids shrink the gradient, by at least 4 a layer."""

    def deep(x: Tensor) -> Tensor:
        for _ in range(10):
            x = torch.sigmoid(x)
        return x

    zero = torch.tensor(0.0, dtype=torch.float64)
    kinks = {
        "relu(s)": torch.relu,
        "relu(-s) + s": lambda s: torch.relu(-s) + s,
        "their mean": lambda s: (torch.relu(s) + torch.relu(-s) + s) / 2,
    }
    gradients = tuple(autodiff.grad(f)(zero).item() for f in kinks.values())
    return [
        about("derivative of the sigmoid at 0, its largest", autodiff.grad(torch.sigmoid)(zero).item(), 0.25, 1e-15),
        below("derivative through ten sigmoids, at most 0.25^10", autodiff.grad(deep)(zero).item(), 0.25**10),
        equal(
            "layers until 0.25^l is below float32's smallest normal",
            math.ceil(math.log(torch.finfo(torch.float32).tiny, 0.25)),
            63,
        ),
        equal("three forms of ReLU, one function: derivatives at 0", gradients, (0.0, 1.0, 0.5)),
    ]


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    first, report = agreement()
    second, pictures = training()
    return [*first, *second, *cost(), *vanishing()], report, {"graph": graph(), **pictures}


def main(given: list[str] | None = None) -> int:
    """Exit code: 0 if every stated number is reached, 1 if one is missed."""
    return run("backprop_by_hand", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
