"""200,000 steps of plain SGD on windows of eight letters; the learning rate drops to a tenth after three quarters."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from examples.lab.names import ALPHABET
from wonderland.models import Tree

STEPS, BATCH, RATE = 200_000, 32, 0.1
CHUNK = 10_000  # steps whose batches are drawn at once


def network(seed: int) -> Tree:
    """The sizes and the initialisation of makemore."""
    torch.manual_seed(seed)
    return Tree(len(ALPHABET), levels=3, dim=24, hidden=128)


def train(contexts: Tensor, letters: Tensor, *, seed: int, steps: int = STEPS) -> tuple[Tree, list[tuple[int, float]]]:
    """A trained model, and its training loss, averaged over each hundredth of the steps."""
    model = network(seed)
    weights = list(model.parameters())
    curve, every, losses = [], max(1, steps // 100), []
    for step in range(steps):
        if step % CHUNK == 0:
            rows = torch.randint(len(letters), (min(CHUNK, steps - step), BATCH))
        picked = rows[step % CHUNK]
        loss = F.cross_entropy(model.predict(contexts[picked]), letters[picked])
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            torch._foreach_add_(weights, gradients, alpha=-RATE if step < 0.75 * steps else -RATE / 10)
        losses.append(loss.detach())
        if (step + 1) % every == 0:
            curve.append((step + 1, torch.stack(losses).mean().item()))
            losses = []
        if (step + 1) % (every * 10) == 0:
            print(f"seed {seed}, step {step + 1}: {curve[-1][1]:.4f}", flush=True)
    return model, curve


@torch.no_grad()
def score(model: nn.Module, contexts: Tensor, letters: Tensor, chunk: int = 8192) -> float:
    """The mean loss on a whole split, in evaluation mode."""
    model.eval()
    total = sum(
        F.cross_entropy(model.predict(x), y, reduction="sum").item()
        for x, y in zip(contexts.split(chunk), letters.split(chunk), strict=True)
    )
    model.train()
    return total / len(letters)
