"""Build networks of 100 layers with different initialisations, and measure activations and gradients in each layer."""

import math
import sys
from collections.abc import Callable

import torch
from torch import Tensor, nn

from examples.lab import Claim, above, below, equal, lines, run, spread, table
from wonderland.nn import Residual, initialise
from wonderland.nn.channel.mlp import MLP

DEPTH, WIDTH, SEEDS = 100, 256, (0, 1, 2)
Fill = Callable[[Tensor, torch.Generator], Tensor]


def tower(fill: Fill, activation: nn.Module, seed: int) -> initialise.Signal:
    """Root mean squares of activations and gradients after each of 100 layers."""
    generator = torch.Generator().manual_seed(seed)
    layers = []
    for _ in range(DEPTH):
        layer = nn.Linear(WIDTH, WIDTH, bias=False, dtype=torch.float64)
        fill(layer.weight, generator)
        layers.append(nn.Sequential(layer, activation))
    return initialise.signal(layers, torch.randn(32, WIDTH, generator=generator, dtype=torch.float64))


def stretch(values: list[float]) -> float:
    """Orders of magnitude between the largest and the smallest size."""
    return math.log10(max(values) / max(min(values), 1e-300))


FILLS: dict[str, tuple[Fill, nn.Module]] = {
    "N(0, 0.01²), tanh": (lambda w, g: nn.init.normal_(w, 0, 0.01, generator=g), nn.Tanh()),
    "N(0, 1), relu": (lambda w, g: nn.init.normal_(w, generator=g), nn.ReLU()),
    "Xavier, relu": (lambda w, g: initialise.xavier(w, generator=g), nn.ReLU()),
    "Xavier, tanh": (lambda w, g: initialise.xavier(w, gain=5 / 3, generator=g), nn.Tanh()),
    "Kaiming, relu": (lambda w, g: initialise.kaiming(w, generator=g), nn.ReLU()),
    "orthogonal, none": (lambda w, g: initialise.orthogonal(w, generator=g), nn.Identity()),
}


def symmetry(seed: int) -> tuple[int, int]:
    """The number of different hidden units after training, from equal and from random initial weights."""
    distinct = []
    for equal_start in (True, False):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
            x = torch.randn(64, 4)
        if equal_start:
            nn.init.constant_(model[0].weight, 0.1)
            nn.init.constant_(model[0].bias, 0.0)
            nn.init.constant_(model[2].weight, 0.1)
        y = (x[:, :1] * x[:, 1:2]).sign()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(50):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        rows = model[0].weight.detach().round(decimals=5)
        distinct.append(len(rows.unique(dim=0)))
    return distinct[0], distinct[1]


def products(seed: int, rescale: bool) -> float:
    """The largest entry of a product of 100 random 4 x 4 matrices, as D2L 5.4 shows it; log10."""
    generator = torch.Generator().manual_seed(seed)
    product = torch.eye(4, dtype=torch.float64)
    for _ in range(DEPTH):
        matrix = torch.randn(4, 4, generator=generator, dtype=torch.float64)
        product = product @ (initialise.spectral_radius(matrix) if rescale else matrix)
    return product.abs().max().log10().item()


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    signals = {name: [tower(*settings, seed) for seed in SEEDS] for name, settings in FILLS.items()}
    rows = []
    for name, runs in signals.items():
        both = [[stretch(getattr(run, direction)) for run in runs] for direction in ("forward", "backward")]
        rows.append((name, *(spread(stretches, 2) for stretches in both)))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        blocks = [Residual(16, MLP.spec(activation="relu")) for _ in range(DEPTH)]
        silent = initialise.signal(blocks, torch.randn(2, 3, 16))
    largest = lambda name, direction: max(stretch(getattr(run, direction)) for run in signals[name])  # noqa: E731
    smallest = lambda name, direction: min(stretch(getattr(run, direction)) for run in signals[name])  # noqa: E731
    units = [symmetry(seed) for seed in SEEDS]
    claims = [
        above("small weights, tanh: orders of magnitude that are lost forward", smallest("N(0, 0.01²), tanh", "forward"), 50),
        above("unit weights, relu: orders of magnitude that are gained forward", smallest("N(0, 1), relu", "forward"), 50),
        above("Xavier under relu: each layer halves the square; orders lost", smallest("Xavier, relu", "forward"), 12),
        below("Xavier with gain 5/3, tanh: orders forward", largest("Xavier, tanh", "forward"), 1),
        below("Kaiming, relu: orders forward", largest("Kaiming, relu", "forward"), 1),
        below("Kaiming, relu: orders backward", largest("Kaiming, relu", "backward"), 1),
        below("orthogonal, linear: orders forward", largest("orthogonal, none", "forward"), 1e-10),
        below("orthogonal, linear: orders backward", largest("orthogonal, none", "backward"), 1e-10),
        equal("residual branches begun at 0: different sizes forward and backward",
              (len(set(silent.forward)), len(set(silent.backward))), (1, 1)),
        equal("equal units stay equal: how many of 8 differ after training", max(a for a, _ in units), 1),
        equal("units begun at random: how many differ", min(b for _, b in units), 8),
        above("100 random 4 x 4 matrices: the product's largest entry, log10", min(products(s, False) for s in SEEDS), 20),
        below("with spectral radius 1 each: at most, log10", max(products(s, True) for s in SEEDS), 12),
    ]  # fmt: skip
    report = table(("initialisation, activation", "orders forward", "orders backward"), rows)
    pictures = {}
    for direction, words in (("forward", "activations"), ("backward", "gradients")):
        shown = {
            name: [(k + 1, max(min(v, 1e30), 1e-30)) for k, v in enumerate(getattr(signals[name][0], direction))]
            for name in ("N(0, 0.01²), tanh", "N(0, 1), relu", "Xavier, relu", "Kaiming, relu")
        }
        pictures[words] = lines(
            shown, title=f"Size of {words} in a tower of {DEPTH} layers (cut at 1e±30)", x_label="layer",
            y_label="root mean square", log_y=True,
        )  # fmt: skip
    return claims, report, pictures


def main(given: list[str] | None = None) -> int:
    """Exit code: 0 if every stated number is reached, 1 if one is missed."""
    return run("towers", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
