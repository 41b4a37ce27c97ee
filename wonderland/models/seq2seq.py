"""Recurrent sequence-to-sequence models, with or without Bahdanau attention."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.language import read_compacted
from wonderland.models.recurrence import Layer, check_cell
from wonderland.models.tokens import check_mask, check_range, check_sizes, check_tokens, compact, look_up
from wonderland.nn.channel.mlp import chance
from wonderland.nn.contract.arguments import Checked
from wonderland.nn.contract.mixer import lengths
from wonderland.nn.contract.state import COUNT, Layout, Slot, State, fits, misfit
from wonderland.nn.mixers.additive_attention import AdditiveAttention
from wonderland.ops.shapes import readable


@part
class Seq2Seq(Checked, nn.Module):
    r"""A recurrent encoder and decoder.

    .. math::
        h_j &= f(E_{x_j}, h_{j-1}), \qquad s_0 = h_m, \qquad
        s_i = g([E'_{y_i};\; c_i], s_{i-1}), \qquad z_i = W s_i + b \\
        c_i &= h_m \quad\text{or, with attention,}\quad c_i = \sum_j \mathrm{softmax}_j\, a(s_{i-1}, h_j)\, h_j

    The decoder begins with the encoder's last states, layer by layer. Without `attention` the context c is the encoder's last
    output; with it (Bahdanau's additive attention) each step attends to all encoder outputs, with the previous state as query.

    `prepare(source, source_mask)` encodes the source to a state; `stream(tokens, state, mask)` continues it;
    `forward(source, tokens, source_mask, mask)` does both. Padding may be on either side and is not read.

    - `source_vocab`: tokens of the source, `vocab`: of the target. `cell`: "gru", "lstm" or "rnn".
    - `dropout`: between layers, as in D2L.

    Shapes: source (b, s), tokens (b, t) -> logits (b, t, vocab); state: the decoder's layers, the encoded source, the count.
    Book: D2L 10.7, 11.4. Papers: Sutskever et al., 2014; Cho et al., 2014; Bahdanau et al., 2015.

    >>> model = Seq2Seq(source_vocab=10, vocab=12, dim=8, state_size=6, attention=True)
    >>> model(torch.zeros(2, 5, dtype=torch.int64), torch.zeros(2, 3, dtype=torch.int64)).shape
    torch.Size([2, 3, 12])
    """

    def __init__(
        self,
        source_vocab: int,
        vocab: int,
        *,
        dim: int = 256,
        state_size: int = 256,
        depth: int = 2,
        cell: str = "gru",
        attention: bool = False,
        dropout: float | int = 0.0,
    ):
        super().__init__()
        check_sizes("Seq2Seq", source_vocab=source_vocab, vocab=vocab, dim=dim, state_size=state_size, depth=depth)
        check_cell(cell, "Seq2Seq")
        self.source_vocab, self.vocab = source_vocab, vocab
        self.state_size, self.dropout = state_size, chance(dropout, "Seq2Seq")
        self.source = nn.Embedding(source_vocab, dim)
        self.target = nn.Embedding(vocab, dim)
        upper = [state_size] * (depth - 1)
        self.reader = nn.ModuleList(Layer(cell, width, state_size) for width in [dim, *upper])
        self.writer = nn.ModuleList(Layer(cell, width, state_size) for width in [dim + state_size, *upper])
        self.attention = AdditiveAttention(state_size) if attention else None
        self.head = nn.Linear(state_size, vocab)

    def laws(self):
        """What this instance promises; the suite checks it."""
        from wonderland import laws

        return (laws.batch_independence, laws.gradients, laws.determinism, laws.save_load, laws.finiteness)

    def prepare(self, source: Any, source_mask: Any = None) -> State:
        """Encode a source (b, s): the state from which `stream` starts."""
        check_tokens(source, "Seq2Seq")
        check_mask(source_mask, source, "Seq2Seq")
        if source_mask is not None:
            if readable(source_mask) and not source_mask.any(1).all():
                row = int((~source_mask.any(1)).nonzero()[0])
                raise WonderlandError(f"Seq2Seq got a source_mask whose row {row} has no real token.")
            source, source_mask = compact(source.masked_fill(~source_mask, 0), source_mask)
        h = look_up(source, self.source.weight)
        h, states = self._layers(self.reader, h, [None] * len(self.reader), source_mask)
        if source_mask is not None:
            h = h.masked_fill(~source_mask.unsqueeze(-1), 0)
        if self.attention is not None:
            read = self.attention.read(h, source_mask)
        else:
            read = (
                h[:, -1]
                if source_mask is None
                else h[torch.arange(h.shape[0], device=h.device), lengths(source_mask) - 1],
            )
        return states, read, torch.zeros(h.shape[0], dtype=torch.int64, device=h.device)

    def forward(self, source: Any, tokens: Any, source_mask: Any = None, mask: Any = None) -> Tensor:
        if isinstance(source, Tensor) and isinstance(tokens, Tensor) and len(source) != len(tokens):
            raise WonderlandError(f"Seq2Seq got {len(source)} sources and {len(tokens)} targets: give one for each.")
        return self.stream(tokens, self.prepare(source, source_mask), mask)[0]

    def stream(self, tokens: Any, state: Any, mask: Any = None) -> tuple[Tensor, State]:
        """Continue after a state, of `prepare` or of an earlier call, with new tokens (b, t): logits and the next state."""
        check_tokens(tokens, "Seq2Seq")
        check_mask(mask, tokens, "Seq2Seq")
        if not torch.compiler.is_compiling():
            check_range(tokens if mask is None else tokens.masked_fill(~mask, 0), self.vocab)
            self._check_state(state, len(tokens))
        states, read, seen = state

        def decode(tokens: Tensor, mask: Tensor | None) -> tuple[Tensor, State]:
            h = look_up(tokens, self.target.weight)
            if self.attention is None:
                h = torch.cat([h, read[0].unsqueeze(1).expand(-1, h.shape[1], -1)], -1)
                h, after = self._layers(self.writer, h, states, mask)
            else:
                h, after = self._attend(h, states, read, mask)
            return self.head(h), after

        logits, after = read_compacted(tokens, mask, decode)
        return logits, (after, read, seen + (tokens.shape[1] if mask is None else lengths(mask)))

    def _attend(self, h: Tensor, states: Any, read: State, mask: Tensor | None) -> tuple[Tensor, State]:
        assert self.attention is not None
        outputs = []
        for step in range(h.shape[1]):
            step_mask = None if mask is None else mask[:, step : step + 1]
            context = self.attention.answer(states[-1][0].unsqueeze(1), read)
            y, states = self._layers(self.writer, torch.cat([h[:, step : step + 1], context], -1), states, step_mask)
            outputs.append(y)
        return torch.cat(outputs, 1), states

    def _layers(self, layers: nn.ModuleList, h: Tensor, states: Any, mask: Tensor | None) -> tuple[Tensor, State]:
        last_states = []
        for depth, (layer, state) in enumerate(zip(layers, states, strict=True)):
            if depth:
                h = F.dropout(h, self.dropout, self.training)
            h, last = layer(h, state, mask)
            last_states.append(tuple(last))
        return h, tuple(last_states)

    def state_layout(self) -> Layout:
        """The state without its batch."""
        read = (Slot((self.state_size,)),) if self.attention is None else self.attention.state_layout()
        return tuple(layer.layout() for layer in self.writer), read, COUNT  # pyright: ignore

    def _check_state(self, state: Any, batch: int) -> None:
        layout = self.state_layout()
        if state is None or (not fits(state, layout, batch) and (wrong := misfit(state, layout, batch))):
            problem = "there is none" if state is None else wrong  # pyright: ignore
            raise WonderlandError(
                f"The state does not fit this Seq2Seq: {problem}. Start from prepare(source) of the same batch."
            )
