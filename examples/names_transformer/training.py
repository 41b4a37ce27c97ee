"""makemore's defaults: four layers, four heads, width 64, batches of 32 names, AdamW at a constant rate."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from examples.lab.names import ALPHABET, NUMBERS
from wonderland import optim
from wonderland.models import Decoder
from wonderland.nn import MLP, Attention, LayerNorm, Learned

STEPS, BATCH, EVERY = 30_000, 32, 500
SPLIT = 3407  # makemore's seed, which also draws its 1,000 test names
DECAY = 0.9995  # of the average of weights, about the last 2,000 steps


def rows(words: list[str], longest: int) -> tuple[Tensor, Tensor]:
    """Inputs and targets of names, -1 where there is no target: (n, longest + 1) each.

    >>> rows(["ab"], 3)
    (tensor([[0, 1, 2, 0]]), tensor([[ 1,  2,  0, -1]]))
    """
    x = torch.zeros(len(words), longest + 1, dtype=torch.int64)
    y = torch.full_like(x, -1)
    for row, word in enumerate(words):
        numbers = torch.tensor([NUMBERS[letter] for letter in word])
        x[row, 1 : len(word) + 1] = numbers
        y[row, : len(word)] = numbers
        y[row, len(word)] = 0
    return x, y


def network(longest: int) -> Decoder:
    """A small GPT-2. All matrices are initialised with standard deviation 0.02, as in makemore.py when its README stated 1.92;
    later versions use torch's defaults, and end slightly worse.
    """
    model = Decoder(
        len(ALPHABET),
        dim=64,
        depth=4,
        mixer=Attention.spec(heads=4, bias=True),
        channel=MLP.spec(activation="gelu_tanh", bias=True),
        position=Learned.spec(length=longest + 1),
        norm=LayerNorm.spec(),
        tie=False,
    )
    for name, weight in model.named_parameters():
        if weight.dim() > 1:
            nn.init.normal_(weight, std=0.02)
        elif name.endswith("bias"):
            nn.init.zeros_(weight)
    return model


def train(words: list[str], *, seed: int, steps: int = STEPS):
    """The averaged weights with the best test loss, and the curve (step, test loss, test loss of the average)."""
    torch.manual_seed(SPLIT)
    order = torch.randperm(len(words)).tolist()
    if seed != SPLIT:
        torch.manual_seed(seed)
    longest = max(map(len, words))
    x, y = rows([words[i] for i in order[:-1000]], longest)
    held = rows([words[i] for i in order[-1000:]], longest)
    model = network(longest)
    average = optim.EMA(model, decay=DECAY)
    optimizer = optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.01, betas=(0.9, 0.99), eps=1e-8)
    best, best_weights, curve = float("inf"), {}, []
    for step in range(steps):
        picked = torch.randint(len(x), (BATCH,))
        # Columns after the longest name of the batch have no targets.
        width = int((y[picked] >= 0).sum(1).max())
        loss = _loss(model, x[picked, :width], y[picked, :width])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(model)
        if (step + 1) % EVERY == 0 or step + 1 == steps:
            curve.append((step + 1, score(model, *held), score(average.module, *held)))
            print(f"seed {seed}, step {step + 1}: test {curve[-1][1]:.4f}, average {curve[-1][2]:.4f}", flush=True)
            if curve[-1][2] < best:
                best, best_weights = (
                    curve[-1][2],
                    {name: value.clone() for name, value in average.module.state_dict().items()},
                )
    model.load_state_dict(best_weights)
    return model, curve


@torch.no_grad()
def score(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Nats per character."""
    model.eval()
    loss = _loss(model, x, y).item()
    model.train()
    return loss


def _loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=-1)
