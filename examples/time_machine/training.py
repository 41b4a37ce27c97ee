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
from wonderland.nn.blocks.initialise import orthogonal, xavier

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


def begun(cell: str, depth: int, vocab: int, size: int = 32, *, turning: bool = False, writing: bool = False) -> RNNLM:
    """A model that begins as D2L's, whose layers are torch's: their two biases, both drawn, are one here, their sum.

    With `turning`, each gate's map of the state begins orthogonal, that of the input as Glorot has it, and biases are 0. With
    `writing`, the update gates of a GRU begin with 1 less in their biases, so that more of each letter is written.
    """
    kinds = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
    model = RNNLM(vocab, size, cell=cell, depth=depth).load_torch(kinds[cell](vocab, size, num_layers=depth))
    for name, weight in model.named_parameters() if turning else ():
        if name.endswith("weight_state"):
            for gate in weight.detach().split(size):
                orthogonal(gate)
        elif name.endswith("weight_input"):
            for gate in weight.detach().split(size):
                xavier(gate, uniform=True)
        elif ".mixer.bias" in name:
            weight.detach().zero_()
    for name, weight in model.named_parameters() if writing else ():
        if name.endswith("mixer.bias"):
            weight.detach()[size : 2 * size] -= 1
    return model


def twice(model: RNNLM) -> list[tuple[Tensor, Tensor]]:
    """Each weight, and how many of torch's it stands for: 2 for a sum of two biases, which moves by both gradients."""
    found = []
    for name, weight in model.named_parameters():
        count = torch.ones_like(weight)
        if name.endswith("mixer.bias"):
            # The candidate of a gated unit keeps its two biases apart.
            gated = name.replace("bias", "bias_candidate") in dict(model.named_parameters())
            count[: len(count) // 3 * 2 if gated else len(count)] = 2
        found.append((weight, count))
    return found


@torch.no_grad()
def update(weights: list[tuple[Tensor, Tensor]], rate: float, longest: float = 1.0) -> None:
    """A step of SGD with the gradient clipped to a norm, both as if each of torch's biases were there."""
    slopes = [(weight, count, weight.grad) for weight, count in weights if weight.grad is not None]
    norm = torch.stack([(count * slope.square()).sum() for _, count, slope in slopes]).sum().sqrt()
    short = torch.clamp(longest / norm, max=1.0)
    for weight, count, slope in slopes:
        weight -= rate * short * count * slope
        weight.grad = None


def train(
    data: Windows, *, cell: str, depth: int, rate: float, epochs: int, seed: int, last: float = 0.1, **beginning: bool
):
    """The mean of the weights over the last part of the steps, its perplexity, and (epoch, perplexity) of the weights."""
    torch.manual_seed(seed)
    model = begun(cell, depth, data.vocab, **beginning)
    weights, curve = twice(model), []
    steps = epochs * -(-len(data.train) // BATCH)
    average = optim.SWA(model, start=steps - max(1, round(last * steps)))
    for epoch in range(epochs):
        for rows in torch.randperm(len(data.train)).split(BATCH):
            _loss(model, data.train[rows]).backward()
            update(weights, rate)
            average.update(model)
        if (epoch + 1) % 5 == 0 or epoch + 1 == epochs:
            curve.append((epoch + 1, perplexity(model, data.test)))
    mean = perplexity(average.module, data.test)
    print(f"{depth} x {cell}, seed {seed}: {curve[-1][1]:.3f}, mean of weights {mean:.3f}", flush=True)
    return average.module, mean, curve


@torch.no_grad()
def perplexity(model: nn.Module, cut: Tensor) -> float:
    """exp of the mean loss over all letters of all windows."""
    total = sum(_loss(model, rows).item() * len(rows) for rows in cut.split(BATCH))
    return math.exp(total / len(cut))


def _loss(model: nn.Module, rows: Tensor) -> Tensor:
    return F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
