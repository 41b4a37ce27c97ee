"""Fashion-MNIST with the first networks of D2L, at its settings: softmax regression, an MLP, dropout, LeNet, batch norm, schedules."""

import math
import sys
from collections.abc import Callable

import torch
from torch import nn

from examples.fashion.training import Data, load, train
from examples.lab import DATA, Claim, above, lines, run, table
from wonderland import models

# D2L's printed accuracies on the test images after the last epoch.
STATED = {"softmax": 0.835, "mlp": 0.845, "dropout": 0.850, "lenet": 0.728, "lenet_norm": 0.876}
WORDS = {
    "softmax": "softmax regression",
    "mlp": "MLP, 256 hidden",
    "dropout": "MLP, 256 and 256 hidden, dropout 0.5",
    "lenet": "LeNet, sigmoid and mean pooling",
    "lenet_norm": "LeNet with batch norm",
}
SCHEDULES = {
    "constant": 0.877,
    "square_root": 0.886,
    "multi_step": 0.869,
    "cosine": 0.904,
    "warmup_cosine": 0.901,
}  # accuracies that D2L prints
DEFAULT = "softmax,mlp,dropout,lenet,lenet_norm,constant,cosine"


def xavier(net: nn.Module) -> nn.Module:
    """Weights by Glorot's rule, as D2L begins its convolutional networks."""
    for module in net.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            nn.init.xavier_uniform_(module.weight)
    return net


def build(name: str) -> nn.Module:
    """The network of a lab."""
    if name == "softmax":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    if name == "dropout":
        hidden = [nn.Linear(784, 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, 256), nn.ReLU(), nn.Dropout(0.5)]
        return nn.Sequential(nn.Flatten(), *hidden, nn.Linear(256, 10))
    if name in ("lenet", "lenet_norm"):
        return xavier(models.LeNet.d2l(norm=name == "lenet_norm"))
    return models.LeNet.d2l(activation="relu", pool="max")


def rate(schedule: str, epochs: int) -> Callable[[int], float]:
    """The rate of each epoch; D2L's numbers for 30 epochs, scaled to others."""
    unit = epochs / 30

    def cosine(epoch: float, first: float, length: float) -> float:
        done = min(1.0, max(0.0, (epoch - first) / length))
        return 0.01 + (0.3 - 0.01) * (1 + math.cos(math.pi * done)) / 2

    rules: dict[str, Callable[[int], float]] = {
        "constant": lambda epoch: 0.3,
        "square_root": lambda epoch: 0.1 / math.sqrt(epoch / unit + 1),
        "multi_step": lambda epoch: 0.5 * 0.5 ** ((epoch >= 15 * unit) + (epoch >= 30 * unit)),
        "cosine": lambda epoch: cosine(epoch, 0, 20 * unit),
        "warmup_cosine": lambda epoch: 0.3 * (epoch + 1) / (5 * unit + 1) if epoch < 5 * unit else cosine(epoch, 5 * unit, 15 * unit),
    }  # fmt: skip
    return rules[schedule]


def fitted(name: str, data: Data, epochs: int | None) -> list[float]:
    """The curve of one lab at the settings of the book."""
    torch.manual_seed(0)
    if name in SCHEDULES:
        count = epochs or 30
        return train(build(name), data, epochs=count, batch=256, lr=rate(name, count), show=name)
    batch = 128 if name.startswith("lenet") else 256
    return train(build(name), data, epochs=epochs or 10, batch=batch, lr=0.1, show=WORDS[name])


def lab(
    data: str | None = None, only: str = DEFAULT, epochs: int | None = None, images: int | None = None
) -> tuple[list[Claim], str, dict[str, str]]:
    """Train each network and compare its last accuracy with the one that D2L prints."""
    names = [name for name in only.split(",") if name]
    read = load(data, images)
    curves = {name: fitted(name, read, epochs) for name in names}
    claims, rows = [], []
    for name, curve in curves.items():
        stated = STATED.get(name, SCHEDULES.get(name, 0.0))
        words = WORDS.get(name, f"rectified LeNet, rate: {name}")
        rows.append((words, f"{stated:.3f}", f"{curve[-1]:.4f}", f"{max(curve):.4f}"))
        if name in STATED:
            claims.append(above(f"test accuracy, {words}", curve[-1], stated))
    if {"constant", "cosine"} <= set(curves):
        claims.append(above("test accuracy of a cosine rate", curves["cosine"][-1], curves["constant"][-1]))
    return claims, table(("network", "D2L", "last epoch", "best epoch"), rows), pictures(curves)


def pictures(curves: dict[str, list[float]]) -> dict[str, str]:
    """Accuracy by epoch, of the networks and of the schedules."""
    drawn = {}
    for title, names in {
        "networks": [name for name in STATED if name != "dropout"],
        "schedules": list(SCHEDULES),
    }.items():
        shown = {name: [(i + 1.0, y) for i, y in enumerate(curves[name])] for name in names if name in curves}
        if shown:
            shown = dict(list(shown.items())[:4])
            drawn[title] = lines(shown, title="Fashion-MNIST", x_label="epoch", y_label="test accuracy")
    return drawn


OPTIONS = DATA | {
    "--only": {"default": DEFAULT, "help": f"of {', '.join([*STATED, *SCHEDULES])}"},
    "--epochs": {"type": int, "help": "of each network (default: those of the book)"},
    "--images": {"type": int, "help": "images of each part (default: all)"},
}


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed."""
    return run("fashion", __doc__, lab, given, OPTIONS)


if __name__ == "__main__":
    sys.exit(main())
