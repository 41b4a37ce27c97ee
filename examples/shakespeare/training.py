"""The recipe: blocks of 64 letters, twelve at a time, 2,000 steps of AdamW under a cosine."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland import optim
from wonderland.core import WonderlandError
from wonderland.models import Decoder
from wonderland.nn import MLP, Attention, LayerNorm, Learned, Rotary, initialise

BLOCK, BATCH, STEPS = 64, 12, 2000


def encode(text: str) -> tuple[Tensor, list[str]]:
    """Letters as numbers, in the order of their codes, and the letters themselves.

    >>> tokens, letters = encode("abc" * 1000)
    >>> tokens[:4], letters
    (tensor([0, 1, 2, 0]), ['a', 'b', 'c'])
    """
    if len(text) < 20 * BLOCK:
        raise WonderlandError(f"The text has {len(text):,} letters, and at least {20 * BLOCK:,} are needed.")
    letters = sorted(set(text))
    numbers = {letter: number for number, letter in enumerate(letters)}
    return torch.tensor([numbers[letter] for letter in text]), letters


def network(vocab: int, *, rotary: bool = False, dim: int = 128, depth: int = 4, heads: int = 4) -> Decoder:
    """nanoGPT without biases: attention, GELU, learned positions, a head tied to the embedding, GPT-2's beginning.

    With `rotary` queries and keys are turned by their positions in place of a table of positions: all else is the same.
    """
    model = Decoder(
        vocab,
        dim,
        depth,
        mixer=Attention.spec(heads=heads, position=Rotary.spec() if rotary else None),
        channel=MLP.spec(activation="gelu"),
        position=None if rotary else Learned.spec(length=BLOCK),
        norm=LayerNorm.spec(bias=False),
    )
    initialise.gpt2(model)
    return model


def optimizer(model: nn.Module, steps: int, *, rate: float = 1e-3, decay: float = 0.1) -> torch.optim.Optimizer:
    """AdamW as nanoGPT sets it: all matrices and tables decay, 100 steps of 2,000 rise, the rate ends at a tenth."""
    weights = list(model.parameters())
    groups = [
        {"params": [weight for weight in weights if weight.dim() > 1], "weight_decay": decay},
        {"params": [weight for weight in weights if weight.dim() < 2], "weight_decay": 0.0},
    ]
    schedule = partial(optim.warmup_cosine, warmup=0.05, floor=0.1)
    return optim.scheduled(
        optim.clipped(optim.AdamW(groups, lr=rate, betas=(0.9, 0.99)), norm=1.0), schedule, steps=steps
    )


def windows(tokens: Tensor, starts: Tensor, block: int = BLOCK) -> tuple[Tensor, Tensor]:
    """Blocks of tokens from each start, and the same one step on: (b, block) each."""
    found = tokens[starts.unsqueeze(1) + torch.arange(block + 1)]
    return found[:, :-1], found[:, 1:]


def train(tokens: Tensor, held: Tensor, vocab: int, *, rotary: bool, seed: int, steps: int = STEPS, every: int = 250):
    """A trained model, and the losses on held-out text on the way: (step, loss)."""
    torch.manual_seed(seed)
    model = network(vocab, rotary=rotary)
    update = optimizer(model, steps)
    curve = []
    for step in range(steps):
        x, y = windows(tokens, torch.randint(len(tokens) - BLOCK, (BATCH,)))
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        update.zero_grad()
        loss.backward()
        update.step()
        if (step + 1) % every == 0 or step + 1 == steps:
            curve.append((step + 1, score(model, held)))
            print(f"{'rotary' if rotary else 'learned'}, seed {seed}, step {step + 1}: {curve[-1][1]:.4f}", flush=True)
    return model, curve


@torch.no_grad()
def score(model: nn.Module, tokens: Tensor, batch: int = 64) -> float:
    """Nats a letter on all of a text, cut into whole blocks."""
    model.eval()
    starts = torch.arange(0, len(tokens) - BLOCK, BLOCK)
    total = 0.0
    for some in starts.split(batch):
        x, y = windows(tokens, some)
        total += F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum").item()
    model.train()
    return total / (len(starts) * BLOCK)
