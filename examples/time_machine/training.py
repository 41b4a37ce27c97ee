"""D2L's data and loop: windows of 32 letters, 10,000 to learn from and the next 5,000 to test, SGD with clipped gradients."""

import math
import re
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland import optim
from wonderland.core import WonderlandError
from wonderland.models import RNNLM

WINDOW, BATCH, TRAIN, TEST = 32, 1024, 10_000, 5_000


class Windows(NamedTuple):
    """Windows of letters (n, 33): all but the last go in, all but the first come out."""

    train: Tensor
    test: Tensor
    vocab: int


def clean(text: str) -> str:
    """Letters in lower case; everything else is one space.

    >>> clean("The Time Machine, by H. G. Wells [1898]")
    'the time machine by h g wells '
    """
    return re.sub("[^A-Za-z]+", " ", text).lower()


def windows(text: str) -> Windows:
    """One window from each letter on; a number is kept for what is unknown, as D2L does."""
    text = clean(text)
    if len(text) < TRAIN + TEST + WINDOW:
        raise WonderlandError(
            f"The text has {len(text):,} letters and {TRAIN + TEST + WINDOW:,} are needed: give the whole book."
        )
    numbers = {letter: number for number, letter in enumerate(sorted({*text, "<unk>"}))}
    tokens = torch.tensor([numbers[letter] for letter in text])
    cut = tokens.unfold(0, WINDOW + 1, 1)
    return Windows(cut[:TRAIN], cut[TRAIN : TRAIN + TEST], len(numbers))


def train(data: Windows, *, cell: str, depth: int, rate: float, epochs: int, seed: int):
    """A trained model, and (epoch, perplexity on the test windows)."""
    torch.manual_seed(seed)
    model = RNNLM(data.vocab, 32, cell=cell, depth=depth)
    if cell == "lstm":
        # D2L's begins without a leaning to remember.
        with torch.no_grad():
            model.layers[0].mixer.bias[32:64] -= 1
    update = optim.clipped(optim.SGD(model.parameters(), lr=rate), norm=1.0)
    curve = []
    for epoch in range(epochs):
        for rows in torch.randperm(len(data.train)).split(BATCH):
            loss = _loss(model, data.train[rows])
            update.zero_grad()
            loss.backward()
            update.step()
        if (epoch + 1) % 5 == 0 or epoch + 1 == epochs:
            curve.append((epoch + 1, perplexity(model, data.test)))
    print(f"{depth} x {cell}, seed {seed}: {curve[-1][1]:.3f}", flush=True)
    return model, curve


@torch.no_grad()
def perplexity(model: nn.Module, cut: Tensor) -> float:
    """exp of the mean loss over all letters of all windows."""
    total = sum(_loss(model, rows).item() * len(rows) for rows in cut.split(BATCH))
    return math.exp(total / len(cut))


def _loss(model: nn.Module, rows: Tensor) -> Tensor:
    return F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
