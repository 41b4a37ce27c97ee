"""Prompt and prefix tuning: a language model rests, and what it begins from learns."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.models.decoder import Decoder
from wonderland.models.tokens import check_input
from wonderland.nn.contract.arguments import Checked
from wonderland.nn.contract.mixer import positions
from wonderland.nn.contract.state import TIME, Slot, State, signed


class TunedStart(Checked, nn.Module):
    """A decoder that begins from a trained state instead of nothing: a language model with `forward` and `stream`."""

    takes_specs = True
    causal = True

    def __init__(self, model: Any, length: int):
        super().__init__()
        built: Any = model.build() if isinstance(model, Spec) else model
        name = type(self).__name__
        if not isinstance(built, Decoder):
            raise WonderlandError(f"{name} begins a Decoder, not a {type(built).__name__}.")
        if not isinstance(length, int) or length < 1:
            raise WonderlandError(f"{name} has a length of at least 1, not {length!r}.")
        self.model: Decoder = built.requires_grad_(False)
        self.vocab, self.dim, self.length = built.vocab, built.dim, length

    def laws(self):
        """Those of the decoder that do not begin at nothing."""
        from wonderland import laws

        lost = (laws.permutation_equivariance, laws.shift_equivariance, laws.locality)
        return tuple(law for law in self.model.laws() if law not in lost)

    def opening(self, batch: int) -> State:
        """The state before the first token."""
        raise NotImplementedError

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.stream(tokens, None, mask)[0]

    def features(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """`forward` before its head."""
        check_input(tokens, mask, "A Decoder")
        return self.model.proceed(tokens, self.opening(tokens.shape[0]), mask)[0]

    def stream(self, tokens: Tensor, state: State | None = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """Continue after `state`; None begins from what was trained."""
        if state is None:
            check_input(tokens, mask, "A Decoder")
            state = self.opening(tokens.shape[0])
        return self.model.stream(tokens, state, mask)


@part
class PromptTuned(TunedStart):
    r"""A few trained vectors before every text, in the place of embeddings; the model itself rests.

    .. math:: h = [P_1, \dots, P_n, E_{x_1}, E_{x_2}, \dots]

    Any mixer may be inside: the vectors are read once, and what the model remembers of them is where texts begin.

    Shapes: tokens (b, t) -> logits (b, t, vocab). Paper: Lester et al., 2021.

    >>> model = PromptTuned(Decoder.spec(vocab=10, dim=16, depth=1), length=3)
    >>> model(torch.zeros(2, 5, dtype=torch.int64)).shape
    torch.Size([2, 5, 10])
    """

    def __init__(self, model: Any, length: int = 8):
        super().__init__(model, length)
        table = self.model.embedding.weight
        # Vectors of the size that the model is used to: those of tokens, spread over the vocabulary.
        at = torch.linspace(0, self.vocab - 1, length).long()
        self.prompt = nn.Parameter(torch.empty(length, self.dim, dtype=table.dtype, device=table.device))
        if not table.is_meta:
            with torch.no_grad():
                self.prompt.copy_(table[at.to(table.device)])

    def opening(self, batch: int) -> State:
        model, h = self.model, self.prompt.unsqueeze(0)
        if model.position is not None:
            h = h + model.position.embed(positions(h, None)).to(h.dtype)
        if model.embed_norm is not None:
            h = model.embed_norm.apply_to(h)
        count = torch.full((batch,), self.length, dtype=torch.int64, device=h.device)
        return count, model.stack.proceed(h.expand(batch, -1, -1), None, None)[1]


@part
class PrefixTuned(TunedStart):
    r"""What every layer remembers before a text is trained: keys and values of attention, states of the others.

    .. math:: \text{cache}_\ell = [K_\ell^P; K_\ell], [V_\ell^P; V_\ell]

    It begins as what the model remembers of `length` tokens spread over the vocabulary.

    Shapes: tokens (b, t) -> logits (b, t, vocab). Paper: Li and Liang, 2021.

    >>> model = PrefixTuned(Decoder.spec(vocab=10, dim=16, depth=1), length=3)
    >>> model(torch.zeros(2, 5, dtype=torch.int64)).shape
    torch.Size([2, 5, 10])
    """

    def __init__(self, model: Any, length: int = 8):
        super().__init__(model, length)
        table = self.model.embedding.weight
        layout = self.model.stack.state_layout()
        slots = [slot for slot in _slots(layout) if slot.dtype is None]
        sizes = [[length if size == TIME else size for size in slot.sizes] for slot in slots]
        self.memory = nn.ParameterList(
            nn.Parameter(torch.zeros(1, *one, dtype=table.dtype, device=table.device)) for one in sizes
        )
        if not table.is_meta:
            tokens = torch.linspace(0, self.vocab - 1, length).long().unsqueeze(0).to(table.device)
            with torch.no_grad():
                _, (_, state) = self.model.proceed(tokens, None, None)
                for own, found in zip(self.memory, _tensors(state, layout), strict=True):
                    own.copy_(found)

    def opening(self, batch: int) -> State:
        memory = iter(self.memory)
        device = self.model.embedding.weight.device

        def fill(entry: Any) -> Any:
            if not isinstance(entry, Slot):
                return tuple(fill(one) for one in entry)
            if entry.dtype is None:
                found = next(memory)
                return found.expand(batch, *found.shape[1:])
            if entry.sizes:  # the places of entries, of width 0 where each stands at its own
                return torch.empty((batch, 0), dtype=entry.dtype, device=device)
            return signed(torch.full((batch,), self.length, dtype=entry.dtype, device=device), entry.by)

        count = torch.full((batch,), self.length, dtype=torch.int64, device=device)
        return count, fill(self.model.stack.state_layout())


def _slots(layout: Any) -> list[Slot]:
    return [layout] if isinstance(layout, Slot) else [slot for entry in layout for slot in _slots(entry)]


def _tensors(state: Any, layout: Any) -> list[Tensor]:
    """The tensors of a state that hold numbers, in the order of its slots."""
    if isinstance(layout, Slot):
        return [state] if layout.dtype is None else []
    return [found for entry, own in zip(state, layout, strict=True) for found in _tensors(entry, own)]
