"""Selective copying: output the words among blanks again, in their order."""

import numpy as np
import torch

from examples.proving_ground.examples import SILENT, Examples, distinct, tokens


def copying(seed: int, count: int, *, vocab: int = 16, length: int = 256, words: int = 16) -> Examples:
    """Words at random positions among blanks, then a marker, then blanks at which the words are to be output in order.

    The last two tokens of the vocabulary are the blank and the sign; words are drawn from the others. The places of the
    words are any of the first length - words - 1, all equally likely, so a filter that weighs tokens by their distance
    alone cannot know where the k-th word stood.

    Shapes: inputs and target (count, length). Papers: Gu and Dao, 2023; Poli et al., 2024 (MAD, the sizes).
    """
    room = length - words - 1
    if room < words or vocab < 3:
        raise ValueError(f"Copying needs a length of at least {2 * words + 1} and a vocabulary of 3.")
    generator = np.random.default_rng(seed)
    blank, sign = vocab - 2, vocab - 1
    said = generator.integers(vocab - 2, size=(count, words))
    places = np.sort(distinct(generator, count, room, words), 1)
    inputs = np.full((count, length), blank)
    np.put_along_axis(inputs, places, said, 1)
    inputs[:, room] = sign
    target = np.full((count, length), SILENT)
    target[:, room + 1 :] = said
    return tokens(inputs, target)


def shortened(examples: Examples, words: int, blanks: int, generator: torch.Generator) -> Examples:
    """The first words of each row, placed again among fewer blanks."""
    said = examples.target[:, -_most(examples) :][:, :words]
    blank, sign = examples.inputs[0, -1], examples.inputs.max()
    room = words + blanks
    places = torch.rand(len(said), room, generator=generator).argsort(1)[:, :words].sort(1).values
    inputs = blank.expand(len(said), room + 1 + words).clone()
    inputs.scatter_(1, places, said)
    inputs[:, room] = sign
    return Examples(inputs, torch.cat([torch.full((len(said), room + 1), SILENT), said], 1))


def shorter_first(examples: Examples, done: float, generator: torch.Generator) -> Examples:
    """A batch shortened at random: few words at first, up to all of them after a fifth of training; blanks grow later.

    From whole rows alone a network finds no first step within thousands: sixteen words are a plateau, two are not. How the
    words are counted is learned among few blanks, where a step costs little, and stretched from half of training on, more
    often a little than far; the last quarter has whole rows, scattered anew each time.
    """
    words = _most(examples)
    blanks = examples.inputs.shape[1] - 2 * words - 1
    if done > 0.75:
        return shortened(examples, words, blanks, generator)
    most = round(min(words, 2 + (words - 2) * done / 0.2))
    said = int(torch.randint(max(1, most // 2), most + 1, (1,), generator=generator))
    near = min(2 * said, blanks)
    far = round(near + (blanks - near) * min(1.0, max(0.0, (done - 0.5) / 0.2)))
    share = float(torch.rand(1, generator=generator)) ** (2 if done > 0.5 else 1)
    return shortened(examples, said, round(far * share), generator)


def _most(examples: Examples) -> int:
    return int((examples.target[0] != SILENT).sum())
