"""Fashion-MNIST as D2L reads it, and its training loop: plain stochastic gradient descent, accuracy on the test images after each epoch."""

from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from examples.lab.files import find
from wonderland.core import keep_freed_memory
from wonderland.data.idx import read_pair

Data = tuple[Tensor, Tensor, Tensor, Tensor]
USUAL = Path("/usr/share/datasets/fashion-mnist")


def load(folder: str | Path | None, most: int | None = None) -> Data:
    """Training and test images as floats in 0..1 (n, 1, 28, 28), with their classes."""
    keep_freed_memory()
    if folder is None and USUAL.is_dir():
        folder = USUAL
    parts: list[Tensor] = []
    for name in ("train", "t10k"):
        x, y = read_pair(find(f"{name}-images-idx3-ubyte.gz", folder))
        assert y is not None
        x, y = torch.tensor(x), torch.tensor(y).long()
        parts += [x[:most].view(-1, 1, 28, 28).float() / 255, y[:most]]
    return parts[0], parts[1], parts[2], parts[3]


def batches(count: int, size: int, draw: torch.Generator) -> Iterator[Tensor]:
    """The rows of each batch of an epoch, in random order; the last one may be smaller."""
    yield from torch.randperm(count, generator=draw).split(size)


def accuracy(net: nn.Module, x: Tensor, y: Tensor) -> float:
    """The share of right answers in evaluation mode."""
    net.eval()
    with torch.no_grad():
        right = sum((net(a).argmax(1) == b).sum().item() for a, b in zip(x.split(500), y.split(500), strict=True))
    net.train()
    return right / len(y)


def train(
    net: nn.Module,
    data: Data,
    *,
    epochs: int,
    batch: int,
    lr: float | Callable[[int], float],
    seed: int = 0,
    most_shown: int | None = None,
    show: str = "",
) -> list[float]:
    """Accuracy on the test images after each epoch; `lr` is a rate, or a function of the epoch.

    `most_shown` is how many test images are looked at before the last epoch.
    """
    x, y, test_x, test_y = data
    draw, curve = torch.Generator().manual_seed(seed), []
    optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
    for epoch in range(epochs):
        optimizer.param_groups[0]["lr"] = lr(epoch) if callable(lr) else lr
        for rows in batches(len(x), batch, draw):
            optimizer.zero_grad()
            F.cross_entropy(net(x[rows]), y[rows]).backward()
            optimizer.step()
        shown = len(test_x) if epoch == epochs - 1 else most_shown or len(test_x)
        curve.append(accuracy(net, test_x[:shown], test_y[:shown]))
        if show:
            print(f"{show}: epoch {epoch + 1} of {epochs}, test accuracy {curve[-1]:.4f}", flush=True)
    return curve
