"""Linear classifiers on XOR and parity (accuracy 3/4 and 1/2), and networks with one hidden layer."""

import itertools
import sys

import torch
from torch import Tensor, nn

from examples.lab import Claim, about, above, equal, lines, plane, run, spread, table
from wonderland import optim, solvers
from wonderland.tasks import losses

SEEDS = (0, 1, 2)
POINTS = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
ANSWERS = torch.tensor([0.0, 1.0, 1.0, 0.0])


def by_hand(x: Tensor) -> Tensor:
    """Two units: relu(a + b) - 2 relu(a + b - 1). (..., 2) -> (...)."""
    total = x.sum(-1)
    return total.relu() - 2 * (total - 1).relu()


def best_line(directions: int = 720, offsets: int = 401) -> float:
    """The best accuracy of a linear classifier on the four points, over a fine grid."""
    turn = torch.linspace(0, 2 * torch.pi, directions)
    w = torch.stack([turn.cos(), turn.sin()], 1)
    shift = torch.linspace(-2, 2, offsets)
    says = (w @ POINTS.T)[:, None, :] > shift[:, None]
    return (says == ANSWERS.bool()).float().mean(-1).max().item()


def parity(bits: int) -> tuple[Tensor, Tensor]:
    """All rows of 0 and 1, and whether their sum is odd: (2**bits, bits), (2**bits)."""
    x = torch.tensor(list(itertools.product((0.0, 1.0), repeat=bits)))
    return x, x.sum(1) % 2


def train(x: Tensor, y: Tensor, hidden: int, seed: int, steps: int = 1500) -> tuple[nn.Module, list[float]]:
    """A network with one tanh layer, trained by Adam, and the loss before each step."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(x.shape[1], hidden), nn.Tanh(), nn.Linear(hidden, 1), nn.Flatten(0))
    optimizer = optim.Adam(model.parameters(), lr=0.05)
    curve = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = losses.binary_cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        curve.append(loss.item())
    return model, curve


def right(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """The accuracy."""
    with torch.no_grad():
        return ((model(x) > 0) == y.bool()).float().mean().item()


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    fit = solvers.least_squares(POINTS, ANSWERS)
    claims = [
        equal("XOR: the best line of 288,720 is right on", best_line(), 0.75),
        about("XOR: least squares ends with weights of size", fit.weights.abs().max().item(), 0, 1e-12),
        about("XOR: and with the bias", float(fit.bias), 0.5, 1e-12),
        equal("XOR: two rectified units by hand give", by_hand(POINTS).tolist(), ANSWERS.tolist()),
    ]
    rows, curves, model = [], {}, None
    for bits, hidden in ((2, 8), (3, 8), (4, 16)):
        x, y = parity(bits)
        single = solvers.logistic_regression(x, y, ridge=1e-3)
        straight = ((single.probabilities(x) > 0.5) == y.bool()).double().mean().item()
        runs = [train(x, y, hidden, seed) for seed in SEEDS]
        shares = [right(one, x, y) for one, _ in runs]
        rows.append((f"{bits} bits", f"{straight:.3f}", hidden, spread(shares, 3)))
        claims.append(
            above(f"parity of {bits} bits, {hidden} hidden units: worst of {len(SEEDS)} seeds", min(shares), 0.999)
        )
        curves[f"{bits} bits"] = [(step, loss) for step, loss in enumerate(runs[0][1]) if step % 10 == 0]
        model = runs[0][0] if bits == 2 else model
    assert model is not None
    net = model

    def surface(points: Tensor) -> Tensor:
        return net(points.float()).sigmoid().double()

    ones = [(0.0, 1.0), (1.0, 0.0)]
    zeros = [(0.0, 0.0), (1.0, 1.0)]
    picture = plane(
        surface,
        (-0.4, 1.4),
        (-0.4, 1.4),
        marks={"1": ones, "0": zeros},
        title="XOR: what eight tanh units learned",
        even=True,
    )
    curve = lines(curves, title="Parity: loss of the first seed", x_label="step", y_label="cross-entropy", log_y=True)
    report = table(("parity", "logistic regression", "hidden", "one hidden layer"), rows)
    return claims, report, {"surface": picture, "loss": curve}


def main(given: list[str] | None = None) -> int:
    """Exit code: 0 if every stated number is reached, 1 if one is missed."""
    return run("xor", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
