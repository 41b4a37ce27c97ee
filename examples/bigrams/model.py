"""A table of letter pairs, filled by counts or found by descent; both minimise one loss."""

import torch
from torch import Tensor

from wonderland import optim
from wonderland.tasks import losses, penalties

LETTERS = 27


def counts(before: Tensor, after: Tensor) -> Tensor:
    """How often each letter follows each: (n), (n) -> (27, 27) in float64."""
    pairs = torch.bincount(before * LETTERS + after, minlength=LETTERS**2)
    return pairs.reshape(LETTERS, LETTERS).double()


def chances(table: Tensor, smoothing: float = 0.0) -> Tensor:
    r"""The most likely table: :math:`p_{ij} = (n_{ij} + \alpha) / \sum_k (n_{ik} + \alpha)`."""
    return (table + smoothing) / (table + smoothing).sum(1, keepdim=True)


def loss(table: Tensor, chance: Tensor) -> float:
    """Mean of -log p over all pairs, in nats; pairs that never occur do not count."""
    return -(torch.special.xlogy(table, chance).sum() / table.sum()).item()


def by_gradient(
    before: Tensor, after: Tensor, *, steps: int, rate: float = 50.0, l2: float = 0.01, seed: int = 2147483647
) -> tuple[Tensor, list[float]]:
    """Logits (27, 27) by descent of cross-entropy plus `l2` times their mean square; and the loss before each step."""
    draw = torch.Generator().manual_seed(seed)
    logits = torch.nn.Parameter(torch.randn(LETTERS, LETTERS, generator=draw))
    optimizer = optim.SGD([logits], lr=rate)
    # All pairs of one kind have one loss: weights in place of repeated rows.
    weight = counts(before, after).float()
    kinds = torch.arange(LETTERS).expand(LETTERS, LETTERS)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        rows = logits[:, None, :].expand(LETTERS, LETTERS, LETTERS)
        total = losses.cross_entropy(rows, kinds, weight=weight) + penalties.l2(logits, l2 / logits.numel())
        total.backward()
        found.append(total.item())
        optimizer.step()
    return logits.detach(), found
