"""The recipe: blocks of 64 characters, batches of twelve, 2,000 steps of AdamW with a cosine schedule."""

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
    """A text as character ids, and the sorted characters.

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
    """nanoGPT without biases: attention, GELU, learned positions, a head tied to the embedding, GPT-2's initialisation.

    With `rotary`, rotary positions replace the table of positions.
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
    """AdamW as nanoGPT sets it: weight decay for matrices, 5 % warmup, and a cosine schedule that ends at a tenth of the rate."""
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
    """Inputs and targets: blocks of tokens from each start, and the same shifted by one: (b, block) each."""
    rows = tokens[starts.unsqueeze(1) + torch.arange(block + 1)]
    return rows[:, :-1], rows[:, 1:]


def train(tokens: Tensor, held: Tensor, vocab: int, *, rotary: bool, seed: int, steps: int = STEPS, every: int = 250):
    """A trained model, and the curve of held-out losses: (step, loss)."""
    torch.manual_seed(seed)
    model = network(vocab, rotary=rotary)
    adamw = optimizer(model, steps)
    curve = []
    for step in range(steps):
        x, y = windows(tokens, torch.randint(len(tokens) - BLOCK, (BATCH,)))
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        adamw.zero_grad()
        loss.backward()
        adamw.step()
        if (step + 1) % every == 0 or step + 1 == steps:
            curve.append((step + 1, score(model, held)))
            print(f"{'rotary' if rotary else 'learned'}, seed {seed}, step {step + 1}: {curve[-1][1]:.4f}", flush=True)
    return model, curve


@torch.no_grad()
def score(model: nn.Module, tokens: Tensor, batch: int = 64) -> float:
    """Nats per character on all of a text, cut into whole blocks."""
    model.eval()
    starts = torch.arange(0, len(tokens) - BLOCK, BLOCK)
    total = 0.0
    for batch_starts in starts.split(batch):
        x, y = windows(tokens, batch_starts)
        total += F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum").item()
    model.train()
    return total / (len(starts) * BLOCK)
