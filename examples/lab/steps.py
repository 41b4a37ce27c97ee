"""A plain training loop: batches drawn from rows, AdamW, a warm-up and a linear end."""

from collections.abc import Callable

import torch
from torch import Tensor, nn


def learn(
    model: nn.Module,
    loss: Callable[[Tensor], Tensor],
    rows: int,
    *,
    steps: int,
    batch: int = 32,
    lr: float = 2e-3,
    seed: int = 0,
) -> float:
    """Minimise `loss(rows of a batch)`; returns the mean loss of the last tenth of the steps. The model ends in evaluation mode."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
    draw, last = torch.Generator().manual_seed(seed), []
    model.train()
    for step in range(steps):
        rate = min(1.0, (step + 1) / max(1, steps // 10)) * (1 - 0.9 * step / steps)
        for group in optimizer.param_groups:
            group["lr"] = lr * rate
        value = loss(torch.randint(rows, (batch,), generator=draw))
        optimizer.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step >= 0.9 * steps:
            last.append(value.item())
    model.eval()
    return sum(last) / len(last)
