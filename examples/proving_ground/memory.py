"""Copy memory: output ten symbols again after a long run of blanks."""

import numpy as np

from examples.proving_ground.examples import SILENT, Examples, tokens


def memory(seed: int, count: int, *, symbols: int = 8, held: int = 10, silence: int = 100) -> Examples:
    """Symbols, blanks, a marker, and a blank for each symbol, at which it is to be output.

    Token 0 is the blank, 1 to `symbols` are the symbols, and one more is the sign, the last token of the silence.

    Shapes: inputs and target (count, silence + 2 held). Papers: Hochreiter and Schmidhuber, 1997; Arjovsky et al., 2016.
    """
    if min(symbols, held, silence) < 1:
        raise ValueError("Copy memory needs at least one symbol, one place to hold it, and one step of silence.")
    draw = np.random.default_rng(seed)
    said = draw.integers(1, symbols + 1, size=(count, held))
    length = silence + 2 * held
    inputs, target = np.zeros((count, length), np.int64), np.full((count, length), SILENT)
    inputs[:, :held], target[:, -held:] = said, said
    inputs[:, length - held - 1] = symbols + 1
    return tokens(inputs, target)
