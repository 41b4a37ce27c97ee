"""word2vec: a word's vector is what it takes to guess its neighbours, or to be guessed by them."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.tokens import check_sizes, look_up
from wonderland.models.words.huffman import huffman
from wonderland.nn.contract.arguments import Checked


@part
class Word2Vec(Checked, nn.Module):
    r"""Two vectors for each word, v where it is read and u where it is guessed.

    .. math::
        \text{skip-gram:}\quad & s = v_c, \qquad \text{CBOW:}\quad s = \tfrac1{|C|} \sum_{c \in C} v_c \\
        \text{softmax:}\quad & \log p(w) = \log \operatorname{softmax}_w(u_w^\top s) \\
        \text{negative sampling:}\quad & \log \sigma(u_w^\top s) + \sum_k \log \sigma(-u_{w_k}^\top s) \\
        \text{hierarchical:}\quad & \log p(w) = \sum_{n \in \text{way}(w)} \log \sigma(\pm u_n^\top s)

    With `tree`, the counts of the words, guesses go down a Huffman tree, whose vocab - 1 inner nodes have the vectors u:
    about log V products for a word and not V. Which of CBOW and skip-gram is trained depends on what is read: one word
    (n,) or several with a mask (n, m).

    Shapes: read (n,) or (n, m) -> (n,) log-probabilities of words (n,). `vectors` (vocab, dim) are the v.
    Book: D2L 15.1-15.4; Alice 8.2. Papers: Mikolov et al., 2013 (two).

    >>> model = Word2Vec(vocab=10, dim=4)
    >>> model.log_chance(torch.tensor([3, 4]), torch.tensor([5, 6])).shape
    torch.Size([2])
    """

    nodes: Tensor | None
    turns: Tensor | None

    def __init__(self, vocab: int, dim: int = 100, *, tree: Sequence[int] | None = None):
        super().__init__()
        check_sizes("Word2Vec", vocab=vocab, dim=dim)
        if vocab < 2:
            raise WonderlandError("Word2Vec needs at least two words to tell apart.")
        if tree is not None and len(tree) != vocab:
            raise WonderlandError(
                f"Word2Vec takes a count for each of the {vocab} words to build its tree, not {len(tree)}."
            )
        self.vocab, self.dim = vocab, dim
        self.inward = nn.Embedding(vocab, dim)
        self.outward = nn.Embedding(vocab if tree is None else vocab - 1, dim)
        nn.init.uniform_(self.inward.weight, -0.5 / dim, 0.5 / dim)
        nn.init.zeros_(self.outward.weight)
        # A model may be outlined without memory, and its tree still has to be known.
        with torch.device("cpu"):
            found = None if tree is None else huffman(torch.tensor(list(tree)))
        self.register_buffer("nodes", None if found is None else found.nodes, persistent=False)
        self.register_buffer("turns", None if found is None else found.turns, persistent=False)

    @property
    def vectors(self) -> Tensor:
        """The vector of each word: (vocab, dim)."""
        return self.inward.weight.detach()

    def read(self, words: Any, mask: Tensor | None = None) -> Tensor:
        """What is read, as one vector a row: that of a word (n,), or the mean of several (n, m) where the mask is True."""
        if not isinstance(words, Tensor) or words.dim() not in (1, 2) or words.is_floating_point():
            raise WonderlandError("Word2Vec reads words as whole numbers, (n,) for skip-gram or (n, m) for CBOW.")
        v = self.look(words)
        if words.dim() == 1:
            return v
        if mask is None:
            return v.mean(1)
        shown = mask.unsqueeze(-1).to(v.dtype)
        return (v * shown).sum(1) / shown.sum(1).clamp(min=1)

    def look(self, words: Tensor) -> Tensor:
        """The vector v of each word."""
        return look_up(words if words.dim() > 1 else words.unsqueeze(1), self.inward.weight).view(*words.shape, -1)

    def scores(self, read: Tensor, words: Tensor) -> Tensor:
        """Products of rows (n, dim) with the vectors u of words (n, m): (n, m)."""
        if self.nodes is not None:
            raise WonderlandError(
                "This Word2Vec guesses down a tree, so words have no score of their own: see log_chance."
            )
        return (look_up(words, self.outward.weight) @ read.unsqueeze(-1)).squeeze(-1)

    def log_chance(self, words: Tensor, guessed: Tensor, mask: Tensor | None = None) -> Tensor:
        """log p of each guessed word (n,), given what is read: over the whole vocabulary, or down the tree."""
        s = self.read(words, mask)
        if self.nodes is None or self.turns is None:
            return F.linear(s, self.outward.weight).log_softmax(1).gather(1, guessed.unsqueeze(1)).squeeze(1)
        turns = self.turns[guessed].to(s.dtype)
        products = (look_up(self.nodes[guessed], self.outward.weight) @ s.unsqueeze(-1)).squeeze(-1)
        return (F.logsigmoid(turns * products) * turns.abs()).sum(1)

    def loss(
        self, words: Tensor, guessed: Tensor, negatives: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """What is made small, the mean over rows: with `negatives` (n, k) by sampling, else by the whole likelihood."""
        if negatives is None or self.nodes is not None:
            return -self.log_chance(words, guessed, mask).mean()
        s = self.read(words, mask)
        right = F.logsigmoid(self.scores(s, guessed.unsqueeze(1))).sum(1)
        return -(right + F.logsigmoid(-self.scores(s, negatives)).sum(1)).mean()
