"""Associative recall: read key-value pairs, then answer with the value whenever a key comes again."""

import numpy as np
import torch

from examples.proving_ground.examples import SILENT, Examples, distinct, tokens


def recall(
    seed: int, count: int, *, vocab: int = 256, length: int = 64, pairs: int = 4, power: float = 0.01
) -> Examples:
    r"""Multi-query associative recall.

    The first 2 `pairs` tokens are keys and values in turn; keys come from the lower half of the vocabulary (0 left out),
    values from the upper, all different within a row. Each key is asked once more, at an even distance 2g after the pairs
    with :math:`p(g) \propto (g + 1)^{\text{power} - 1}`, and the target there is its value. All other places hold random
    tokens of the whole vocabulary and are not scored, so only the first meeting of a key tells its value.

    Shapes: inputs and target (count, length). Paper: Arora et al., 2023 (Zoology).
    """
    if length % 2 or length < 4 * pairs or vocab < 4 * (pairs + 1):
        raise ValueError(f"Recall needs an even length of at least {4 * pairs} and a vocabulary of {4 * (pairs + 1)}.")
    generator = np.random.default_rng(seed)
    half, room = vocab // 2, length // 2 - pairs
    keys = 1 + distinct(generator, count, half - 1, pairs)
    values = half + distinct(generator, count, vocab - half, pairs)
    gaps = distinct(generator, count, room, pairs, weight=np.arange(1.0, room + 1) ** (power - 1))
    inputs = generator.integers(vocab, size=(count, length))
    inputs[:, 0 : 2 * pairs : 2], inputs[:, 1 : 2 * pairs : 2] = keys, values
    target = np.full((count, length), SILENT)
    places = 2 * pairs + 2 * gaps
    np.put_along_axis(inputs, places, keys, 1)
    np.put_along_axis(target, places, values, 1)
    return tokens(inputs, target)


def beginnings_first(examples: Examples, done: float, generator: torch.Generator) -> Examples:
    """A batch cut at random: pairs and a question or two at first, whole rows after seven tenths of training.

    The beginning of a row is a task of its own. Among few tokens a network finds the pairing soon; among many it stays with
    guessing one of the values for thousands of steps.
    """
    length = examples.inputs.shape[1]
    least = int((examples.target != SILENT).int().argmax(1).min()) + 2
    most = min(length, round(least + 2 + (length - least) * max(0.0, (done - 0.3) / 0.4)))
    cut = int(torch.randint(least, most + 1, (1,), generator=generator))
    return Examples(examples.inputs[:, :cut], examples.target[:, :cut])
