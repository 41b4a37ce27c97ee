"""A table of letter pairs, from counts or by gradient descent; both minimise the same loss."""

import torch
from torch import Tensor

from wonderland import optim
from wonderland.tasks import losses, penalties

LETTERS = 27


def counts(before: Tensor, after: Tensor) -> Tensor:
    """How often each letter follows each: (n), (n) -> (27, 27) in float64."""
    pairs = torch.bincount(before * LETTERS + after, minlength=LETTERS**2)
    return pairs.reshape(LETTERS, LETTERS).double()


def probabilities(table: Tensor, smoothing: float = 0.0) -> Tensor:
    r"""The maximum-likelihood table: :math:`p_{ij} = (n_{ij} + \alpha) / \sum_k (n_{ik} + \alpha)`; uniform for letters that never occur."""
    total = (table + smoothing).sum(1, keepdim=True)
    return torch.where(total > 0, (table + smoothing) / total, 1 / LETTERS)


def loss(table: Tensor, probability: Tensor) -> float:
    """Mean of -log p over all pairs, in nats; pairs that never occur do not count."""
    return -(torch.special.xlogy(table, probability).sum() / table.sum()).item()


def by_gradient(
    before: Tensor, after: Tensor, *, steps: int, rate: float = 50.0, l2: float = 0.01, seed: int = 2147483647
) -> tuple[Tensor, list[float]]:
    """Logits (27, 27) by descent of cross-entropy plus `l2` times their mean square; and the loss before each step."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.nn.Parameter(torch.randn(LETTERS, LETTERS, generator=generator))
    optimizer = optim.SGD([logits], lr=rate)
    # Pairs that begin with one letter share one row of logits: their mean loss is that against their frequencies.
    seen = counts(before, after)
    share, weight = probabilities(seen).float(), seen.sum(1).float()
    curve = []
    for _ in range(steps):
        optimizer.zero_grad()
        total = losses.cross_entropy(logits, share, weight=weight) + penalties.l2(logits, l2 / logits.numel())
        total.backward()
        curve.append(total.item())
        optimizer.step()
    return logits.detach(), curve
