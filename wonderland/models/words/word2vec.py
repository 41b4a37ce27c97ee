"""word2vec: word vectors that predict neighbouring words (skip-gram), or are predicted from them (CBOW)."""

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
    r"""Two vectors for each word: v as an input, u as an output.

    .. math::
        \text{skip-gram:}\quad & s = v_c, \qquad \text{CBOW:}\quad s = \tfrac1{|C|} \sum_{c \in C} v_c \\
        \text{softmax:}\quad & \log p(w) = \log \operatorname{softmax}_w(u_w^\top s) \\
        \text{negative sampling:}\quad & \log \sigma(u_w^\top s) + \sum_k \log \sigma(-u_{w_k}^\top s) \\
        \text{hierarchical:}\quad & \log p(w) = \sum_{n \in \text{path}(w)} \log \sigma(\pm u_n^\top s)

    With `tree`, the counts of the words, the softmax is hierarchical: the vectors u belong to the vocab - 1 inner nodes of a
    Huffman tree, and a word takes about log V products instead of V. Inputs (n,) are skip-gram, inputs (n, m) with a mask CBOW.

    Shapes: inputs (n,) or (n, m), targets (n,) -> log-probabilities (n,). `vectors` (vocab, dim) are the v.
    Book: D2L 15.1-15.4; Alice 8.2. Papers: Mikolov et al., 2013 (two).

    >>> model = Word2Vec(vocab=10, dim=4)
    >>> model.log_probability(torch.tensor([3, 4]), torch.tensor([5, 6])).shape
    torch.Size([2])
    """

    nodes: Tensor | None
    directions: Tensor | None

    def __init__(self, vocab: int, dim: int = 100, *, tree: Sequence[int] | None = None):
        super().__init__()
        check_sizes("Word2Vec", vocab=vocab, dim=dim)
        if vocab < 2:
            raise WonderlandError("Word2Vec needs a vocabulary of at least two words.")
        if tree is not None and len(tree) != vocab:
            raise WonderlandError(
                f"Word2Vec takes a count for each of the {vocab} words to build its tree, not {len(tree)}."
            )
        self.vocab, self.dim = vocab, dim
        self.inward = nn.Embedding(vocab, dim)
        self.outward = nn.Embedding(vocab if tree is None else vocab - 1, dim)
        nn.init.uniform_(self.inward.weight, -0.5 / dim, 0.5 / dim)
        nn.init.zeros_(self.outward.weight)
        # The tree is computed from values, so it is built on the CPU even if the model is built on the meta device.
        with torch.device("cpu"):
            paths = None if tree is None else huffman(torch.tensor(list(tree)))
        self.register_buffer("nodes", None if paths is None else paths.nodes, persistent=False)
        self.register_buffer("directions", None if paths is None else paths.directions, persistent=False)

    @property
    def vectors(self) -> Tensor:
        """The vector of each word: (vocab, dim)."""
        return self.inward.weight.detach()

    def read(self, words: Any, mask: Tensor | None = None) -> Tensor:
        """The input vector of each row (n, dim): of a word (n,), or the mean over several (n, m) where the mask is True."""
        if not isinstance(words, Tensor) or words.dim() not in (1, 2) or words.is_floating_point():
            raise WonderlandError("Word2Vec takes words as integers, (n,) for skip-gram or (n, m) for CBOW.")
        v = self.look(words)
        if words.dim() == 1:
            return v
        if mask is None:
            return v.mean(1)
        weights = mask.unsqueeze(-1).to(v.dtype)
        return (v * weights).sum(1) / weights.sum(1).clamp(min=1)

    def look(self, words: Tensor) -> Tensor:
        """The vector v of each word."""
        return look_up(words if words.dim() > 1 else words.unsqueeze(1), self.inward.weight).view(*words.shape, -1)

    def scores(self, read: Tensor, words: Tensor) -> Tensor:
        """Products of input vectors (n, dim) with the vectors u of words (n, m): (n, m)."""
        if self.nodes is not None:
            raise WonderlandError(
                "This Word2Vec has a hierarchical softmax, in which words have no score of their own: use log_probability."
            )
        return (look_up(words, self.outward.weight) @ read.unsqueeze(-1)).squeeze(-1)

    def log_probability(self, words: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
        """log p of each target word (n,), by the softmax over the vocabulary or over the tree."""
        s = self.read(words, mask)
        if self.nodes is None or self.directions is None:
            return F.linear(s, self.outward.weight).log_softmax(1).gather(1, targets.unsqueeze(1)).squeeze(1)
        directions = self.directions[targets].to(s.dtype)
        products = (look_up(self.nodes[targets], self.outward.weight) @ s.unsqueeze(-1)).squeeze(-1)
        return (F.logsigmoid(directions * products) * directions.abs()).sum(1)

    def loss(
        self, words: Tensor, targets: Tensor, negatives: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """The mean negative log-likelihood; with `negatives` (n, k) the loss of negative sampling."""
        if negatives is None or self.nodes is not None:
            return -self.log_probability(words, targets, mask).mean()
        s = self.read(words, mask)
        positive = F.logsigmoid(self.scores(s, targets.unsqueeze(1))).sum(1)
        return -(positive + F.logsigmoid(-self.scores(s, negatives)).sum(1)).mean()
