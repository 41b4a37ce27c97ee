"""The adding problem: the sum of two marked numbers among many."""

import numpy as np
import torch

from examples.proving_ground.examples import Examples

# The mean squared error of always predicting 1, the baseline of the first papers (the variance of the sum is 1/6).
BASELINE = 0.1767


def adding(seed: int, count: int, *, length: int = 100) -> Examples:
    """Numbers from [0, 1) beside marks that are 1 at two places, one in each half, and 0 elsewhere.

    Shapes: inputs (count, length, 2), numbers first; target (count,), the sum of the two marked numbers.
    Paper: Hochreiter and Schmidhuber, 1997.
    """
    if length < 2:
        raise ValueError("Adding needs a length of at least 2.")
    draw = np.random.default_rng(seed)
    half = length // 2
    numbers, marks = draw.random((count, length), dtype=np.float32), np.zeros((count, length), np.float32)
    for low, high in ((0, half), (half, length)):
        np.put_along_axis(marks, draw.integers(low, high, size=(count, 1)), 1, 1)
    return Examples(
        torch.from_numpy(np.stack([numbers, marks], 2)), torch.from_numpy((numbers * marks).sum(1, dtype=np.float32))
    )
