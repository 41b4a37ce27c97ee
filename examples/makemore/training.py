"""200,000 steps of plain SGD, the rate a tenth from the middle on; then the loss of whole splits."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from examples.makemore.network import Network
from wonderland import optim

SEEDS = (2147483647, 1, 2)  # the first is makemore's
CHUNK = 10_000  # steps whose batches are drawn at once


@torch.no_grad()
def train(
    make: Callable[[list[torch.Generator]], Network],
    contexts: Tensor,
    letters: Tensor,
    *,
    steps: int = 200_000,
    batch: int = 32,
    rate: float = 0.1,
    seeds: tuple[int, ...] = SEEDS,
) -> tuple[Network, list[tuple[int, float]]]:
    """One network a seed, all in one program; beside them the loss, a mean of 1,000 steps of all seeds."""
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    network = make(generators)
    held = {name: nn.Parameter(weight) for name, weight in network.weights.items()}
    network.weights = {name: weight.detach() for name, weight in held.items()}
    optimizer = optim.SGD(list(held.values()), lr=rate)
    optim.scheduled(optimizer, partial(optim.piecewise, at=(0.5,), factors=(0.1,)), steps=steps)
    curve, total, rows = [], torch.zeros(len(seeds)), torch.empty(0)
    every = max(1, min(1000, steps // 10))
    for step in range(steps):
        if step % CHUNK == 0:
            rows = torch.stack([torch.randint(len(letters), (CHUNK, batch), generator=g) for g in generators], 1)
        picked = rows[step % CHUNK]
        loss, back = network.step(contexts[picked], letters[picked])
        for name, weight in held.items():
            weight.grad = back[name]
        optimizer.step()
        total += loss
        if (step + 1) % every == 0:
            curve.append((step + 1, (total.mean() / every).item()))
            total.zero_()
    return network, curve


@torch.no_grad()
def losses(network: Network, contexts: Tensor, letters: Tensor, chunk: int = 8192) -> list[float]:
    """The mean loss of each seed on all of a split."""
    seeds = len(network.weights["table"])
    total = torch.zeros(seeds, dtype=torch.float64)
    for x, y in zip(contexts.split(chunk), letters.split(chunk), strict=True):
        scores = torch.log_softmax(network.logits(x.expand(seeds, -1, -1)), 2)
        total -= scores.gather(2, y.expand(seeds, -1)[:, :, None]).double().sum((1, 2))
    return (total / len(letters)).tolist()
