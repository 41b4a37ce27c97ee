"""Recurrent language models: RNN, GRU or LSTM layers with a linear head."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part
from wonderland.models.language import LanguageModel
from wonderland.models.recurrence import Layer, check_cell
from wonderland.models.tokens import check_sizes, look_up
from wonderland.nn.channel.mlp import chance
from wonderland.nn.contract.state import Layout, State


@part
class RNNLM(LanguageModel):
    r"""A recurrent network over tokens, and a linear head over the vocabulary.

    .. math:: h^0_i = e_{x_i}, \qquad h^l_i = f_l(h^{l-1}_i, h^l_{i-1}), \qquad y_i = W h^L_i + b

    As in D2L, tokens are one-hot vectors, or with `dim` trained embeddings of that width. For recurrent mixers within residual
    blocks see `Decoder(mixer=nn.GRU.spec())`.

    - `cell`: "rnn" (tanh), "gru" or "lstm". `depth`: number of layers, `dropout` between them.

    Shapes: tokens (b, t) -> logits (b, t, vocab); state: that of each layer, (b, state_size), twice for "lstm".
    Book: D2L 9.5, 9.6, 10.1-10.3. Papers: Mikolov et al., 2010; Graves, 2013.

    >>> model = RNNLM(vocab=28, state_size=32, cell="gru", depth=2)
    >>> model(torch.zeros(2, 5, dtype=torch.int64)).shape
    torch.Size([2, 5, 28])
    """

    def __init__(
        self,
        vocab: int,
        state_size: int = 32,
        *,
        cell: str = "rnn",
        depth: int = 1,
        dim: int | None = None,
        dropout: float | int = 0.0,
    ):
        super().__init__()
        check_sizes("RNNLM", vocab=vocab, state_size=state_size, depth=depth, dim=1 if dim is None else dim)
        check_cell(cell, "RNNLM")
        self.vocab, self.dropout = vocab, chance(dropout, "RNNLM")
        self.embedding = None if dim is None else nn.Embedding(vocab, dim)
        widths = [vocab if dim is None else dim, *[state_size] * (depth - 1)]
        self.layers = nn.ModuleList(Layer(cell, width, state_size) for width in widths)
        self.head = nn.Linear(state_size, vocab)

    def layout(self) -> Layout:
        return tuple(layer.layout() for layer in self.layers)  # pyright: ignore

    def read(self, tokens: Tensor, state: State | None, mask: Tensor | None) -> tuple[Tensor, State]:
        if self.embedding is None:
            h = F.one_hot(tokens.long(), self.vocab).to(self.head.weight.dtype)
        else:
            h = look_up(tokens, self.embedding.weight)
        states = []
        for depth, layer in enumerate(self.layers):
            if depth:
                h = F.dropout(h, self.dropout, self.training)
            h, last = layer(h, None if state is None else state[depth], mask)
            states.append(tuple(last))
        return self.head(h), tuple(states)

    @torch.no_grad()
    def load_torch(self, module: nn.Module) -> "RNNLM":
        """Copy the recurrent weights of a torch.nn.RNN, GRU or LSTM of the same sizes."""
        for depth, layer in enumerate(self.layers):
            layer.load_torch(module, f"_l{depth}")  # pyright: ignore
        return self
