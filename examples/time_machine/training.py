"""D2L's data and loop: windows of 32 letters, 10,000 for training and the next 5,000 for testing, SGD with clipped gradients."""

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
    """Windows of letters (n, 33): inputs are all but the last, targets all but the first."""

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
    """A window from each letter; one id is reserved for unknown letters, as in D2L."""
    text = clean(text)
    if len(text) < TRAIN + TEST + WINDOW:
        raise WonderlandError(
            f"The text has {len(text):,} letters and {TRAIN + TEST + WINDOW:,} are needed: give the whole book."
        )
    numbers = {letter: number for number, letter in enumerate(sorted({*text, "<unk>"}))}
    tokens = torch.tensor([numbers[letter] for letter in text])
    cut = tokens.unfold(0, WINDOW + 1, 1)
    return Windows(cut[:TRAIN], cut[TRAIN : TRAIN + TEST], len(numbers))


def initial_model(
    cell: str,
    depth: int,
    vocab: int,
    size: int = 32,
    *,
    orthogonal_state: bool = False,
    lower_update_bias: bool = False,
) -> RNNLM:
    """A model with D2L's initialisation, that of torch's layers: torch's two random biases are added to one here.

    With `orthogonal_state`, recurrent matrices are orthogonal for each gate, input matrices Glorot uniform, and biases 0. With
    `lower_update_bias`, the biases of a GRU's update gates start lower by 1, so that more of each input enters the state.
    """
    kinds = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
    model = RNNLM(vocab, size, cell=cell, depth=depth).load_torch(kinds[cell](vocab, size, num_layers=depth))
    for name, weight in model.named_parameters() if orthogonal_state else ():
        if name.endswith("weight_state"):
            for gate in weight.detach().split(size):
                orthogonal(gate)
        elif name.endswith("weight_input"):
            for gate in weight.detach().split(size):
                xavier(gate, uniform=True)
        elif ".mixer.bias" in name:
            weight.detach().zero_()
    for name, weight in model.named_parameters() if lower_update_bias else ():
        if name.endswith("mixer.bias"):
            weight.detach()[size : 2 * size] -= 1
    return model


def with_multiplicity(model: RNNLM) -> list[tuple[Tensor, Tensor]]:
    """Each weight, and how many of torch's weights it represents: 2 for a sum of two biases, whose updates add up."""
    weights = []
    for name, weight in model.named_parameters():
        count = torch.ones_like(weight)
        if name.endswith("mixer.bias"):
            # The candidate of a GRU keeps its two biases separate.
            gated = name.replace("bias", "bias_candidate") in dict(model.named_parameters())
            count[: len(count) // 3 * 2 if gated else len(count)] = 2
        weights.append((weight, count))
    return weights


@torch.no_grad()
def update(weights: list[tuple[Tensor, Tensor]], rate: float, max_norm: float = 1.0) -> None:
    """A step of SGD with clipped gradients, as it would be with both of torch's biases."""
    gradients = [(weight, count, weight.grad) for weight, count in weights if weight.grad is not None]
    norm = torch.stack([(count * gradient.square()).sum() for _, count, gradient in gradients]).sum().sqrt()
    scale = torch.clamp(max_norm / norm, max=1.0)
    for weight, count, gradient in gradients:
        weight -= rate * scale * count * gradient
        weight.grad = None


def train(
    data: Windows,
    *,
    cell: str,
    depth: int,
    rate: float,
    epochs: int,
    seed: int,
    last: float = 0.1,
    **initialisation: bool,
):
    """The weights averaged over the last part of the steps, their perplexity, and the curve (epoch, perplexity) without."""
    torch.manual_seed(seed)
    model = initial_model(cell, depth, data.vocab, **initialisation)
    weights, curve = with_multiplicity(model), []
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
    print(f"{depth} x {cell}, seed {seed}: {curve[-1][1]:.3f}, averaged weights {mean:.3f}", flush=True)
    return average.module, mean, curve


@torch.no_grad()
def perplexity(model: nn.Module, cut: Tensor) -> float:
    """exp of the mean loss over all letters of all windows."""
    total = sum(_loss(model, rows).item() * len(rows) for rows in cut.split(BATCH))
    return math.exp(total / len(cut))


def _loss(model: nn.Module, rows: Tensor) -> Tensor:
    return F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
