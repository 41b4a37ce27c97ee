"""Models that read tokens and give one answer."""

import torch

from wonderland.laws import Example
from wonderland.models.birnn import BiRNN
from wonderland.models.tagger import Tagger
from wonderland.models.textcnn import TextCNN

SMALL = {"vocab": 6, "classes": 3, "dim": 3}

CASES = {
    "text cnn": lambda: TextCNN(**SMALL, widths=[1, 2, 3], channels=2),
    "text cnn, limited": lambda: TextCNN(**SMALL, widths=[2], channels=2, max_norm=0.5, fixed=True, pad=None),
    "birnn": lambda: BiRNN(**SMALL, state_size=2),
    "birnn, gru": lambda: BiRNN(**SMALL, state_size=2, cell="gru", depth=1, pad=None),
}
EXAMPLES = dict.fromkeys(
    CASES,
    lambda length: Example.tokens(3, length, vocab=6, seed=length, axes={0: ("batch", "time"), "output": ("batch",)}),
)


def _words(length: int) -> Example:
    """Three features of each word, none of them padding."""
    x = torch.stack([Example.tokens(3, length, vocab=6, seed=seed).input for seed in (1, 2, 3)], 2) + 1
    return Example((x,), vocab=7, axes={0: ("batch", "time"), "output": ("batch", "time")})


CASES |= {
    "tagger": lambda: Tagger(features=7, tags=3, dim=3, state_size=2),
    "tagger, linear": lambda: Tagger(features=7, tags=3, depth=0, window=1),
}
EXAMPLES |= dict.fromkeys(("tagger", "tagger, linear"), _words)
