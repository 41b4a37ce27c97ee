"""Models that read tokens and give one answer."""

from wonderland.laws import Example
from wonderland.models.birnn import BiRNN
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
