"""Small language models, and models that read two sequences."""

import torch

from wonderland.laws import Example
from wonderland.models.decomposable import DecomposableAttention
from wonderland.models.neural_ngram import NeuralNgram
from wonderland.models.ngram import Ngram
from wonderland.models.pair_texts import BiEncoder
from wonderland.models.rnnlm import RNNLM
from wonderland.models.seq2seq import Seq2Seq
from wonderland.models.tree import Tree


def _counted(**how) -> Ngram:
    text = torch.randint(6, (60,), generator=torch.Generator().manual_seed(0))
    return Ngram.count(text, 6, **how)


CASES = {
    "rnnlm": lambda: RNNLM(6, 3),
    "rnnlm, two layers of lstm": lambda: RNNLM(6, 2, cell="lstm", depth=2, dim=2, dropout=0.5),
    "neural n-gram": lambda: NeuralNgram(6, 2, dim=2, hidden=3, direct=True),
    "neural n-gram, normed": lambda: NeuralNgram(6, 3, dim=2, hidden=3, norm=True, begin=5),
    "tree": lambda: Tree(6, 2, dim=2, hidden=3),
    "trigrams": lambda: _counted(order=3, smoothing="discount"),
    "seq2seq": lambda: Seq2Seq(6, 5, dim=2, state_size=3, depth=1),
    "seq2seq with attention": lambda: Seq2Seq(6, 5, dim=2, state_size=2, depth=1, attention=True),
    "bi-encoder": lambda: BiEncoder(6, 2, dim=3, pad=None),
    "decomposable attention": lambda: DecomposableAttention(6, 2, dim=3, hidden=4, pad=None),
}


def _tokens(length: int) -> Example:
    return Example.tokens(3, length, vocab=6, seed=length)


def _written(length: int) -> Example:
    """A source, and a target of two tokens after it."""
    source = Example.tokens(3, length, vocab=6, seed=length).input
    target = torch.randint(5, (3, 2), generator=torch.Generator().manual_seed(length))
    return Example((source, target), vocab=6, axes={0: ("batch", None), 1: ("batch", None), "output": ("batch",)})


def _pair(length: int) -> Example:
    one, other = (Example.tokens(3, size, vocab=6, seed=size).input for size in (length, 4))
    return Example((one, other), vocab=6, axes={0: ("batch", "time"), 1: ("batch", None), "output": ("batch",)})


EXAMPLES = {
    **dict.fromkeys(CASES, _tokens),
    "seq2seq": _written,
    "seq2seq with attention": _written,
    "bi-encoder": _pair,
    "decomposable attention": _pair,
}
