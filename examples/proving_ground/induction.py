"""Induction heads: output the token that followed the special token before."""

import numpy as np
import torch

from examples.proving_ground.examples import SILENT, Examples, tokens


def induction(seed: int, count: int, *, vocab: int = 16, length: int = 64) -> Examples:
    """Random tokens with the special one (the last of the vocabulary) at a random position and again at the end.

    The target, at the last place only, is the token that came after the first special one. The task is the same at every
    length, so a model that learned the rule and not the places answers at any.

    Shapes: inputs and target (count, length). Papers: Olsson et al., 2022; Gu and Dao, 2023.
    """
    if length < 3 or vocab < 2:
        raise ValueError("Induction needs a length of at least 3 and a vocabulary of 2.")
    generator = np.random.default_rng(seed)
    inputs = generator.integers(vocab - 1, size=(count, length))
    places = generator.integers(length - 2, size=(count, 1))
    np.put_along_axis(inputs, places, vocab - 1, 1)
    inputs[:, -1] = vocab - 1
    target = np.full((count, length), SILENT)
    target[:, -1:] = np.take_along_axis(inputs, places + 1, 1)
    return tokens(inputs, target)


def shorter_first(examples: Examples, done: float, generator: torch.Generator) -> Examples:
    """Rows cut to a window that holds the special token, growing over two fifths of training; whole rows after that."""
    length = examples.inputs.shape[1]
    if done >= 0.4:
        return examples
    special = examples.inputs[0, -1]
    most = round(min(length, 8 + (length - 8) * done / 0.4))
    kept = int(torch.randint(min(4, length), most + 1, (1,), generator=generator))
    place = (examples.inputs == special).int().argmax(1)
    back = (torch.rand(len(place), generator=generator) * (kept - 2)).long()
    start = (place - back).clamp(min=0).clamp(max=length - kept)
    inputs = examples.inputs.gather(1, start.unsqueeze(1) + torch.arange(kept))
    inputs[:, -1] = special
    return Examples(inputs, examples.target[:, length - kept :])
