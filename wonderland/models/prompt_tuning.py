"""Prompt and prefix tuning: the language model is frozen, and only its initial state is trained."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.models.decoder import Decoder
from wonderland.models.tokens import check_input
from wonderland.nn.contract.arguments import Checked
from wonderland.nn.contract.mixer import positions
from wonderland.nn.contract.state import TIME, Slot, State, signed


class TunedInitialState(Checked, nn.Module):
    """A frozen decoder that begins from a trained state; a language model with `forward` and `stream`."""

    takes_specs = True
    causal = True

    def __init__(self, model: Any, length: int):
        super().__init__()
        built: Any = model.build() if isinstance(model, Spec) else model
        name = type(self).__name__
        if not isinstance(built, Decoder):
            raise WonderlandError(f"{name} takes a Decoder, not a {type(built).__name__}.")
        if not isinstance(length, int) or length < 1:
            raise WonderlandError(f"{name} has a length of at least 1, not {length!r}.")
        self.model: Decoder = built.requires_grad_(False)
        self.vocab, self.dim, self.length = built.vocab, built.dim, length

    def laws(self):
        """The laws of the decoder that hold with a trained initial state."""
        from wonderland import laws

        broken = (laws.permutation_equivariance, laws.shift_equivariance, laws.locality)
        return tuple(law for law in self.model.laws() if law not in broken)

    def initial_state(self, batch: int) -> State:
        """The trained state before the first token."""
        raise NotImplementedError

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.stream(tokens, None, mask)[0]

    def features(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """`forward` before its head."""
        check_input(tokens, mask, "A Decoder")
        return self.model.proceed(tokens, self.initial_state(tokens.shape[0]), mask)[0]

    def stream(self, tokens: Tensor, state: State | None = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """Continue after `state`; None begins from the trained state."""
        if state is None:
            check_input(tokens, mask, "A Decoder")
            state = self.initial_state(tokens.shape[0])
        return self.model.stream(tokens, state, mask)


@part
class PromptTuned(TunedInitialState):
    r"""Prompt tuning: trained vectors before the embeddings of every text; the model is frozen.

    .. math:: h = [P_1, \dots, P_n, E_{x_1}, E_{x_2}, \dots]

    Any mixer may be inside: the initial state is the state of the model after the trained vectors.

    Shapes: tokens (b, t) -> logits (b, t, vocab). Paper: Lester et al., 2021.

    >>> model = PromptTuned(Decoder.spec(vocab=10, dim=16, depth=1), length=3)
    >>> model(torch.zeros(2, 5, dtype=torch.int64)).shape
    torch.Size([2, 5, 10])
    """

    def __init__(self, model: Any, length: int = 8):
        super().__init__(model, length)
        table = self.model.embedding.weight
        # Initial values of the usual size: the embeddings of tokens spread over the vocabulary.
        tokens = torch.linspace(0, self.vocab - 1, length).long()
        self.prompt = nn.Parameter(torch.empty(length, self.dim, dtype=table.dtype, device=table.device))
        if not table.is_meta:
            with torch.no_grad():
                self.prompt.copy_(table[tokens.to(table.device)])

    def initial_state(self, batch: int) -> State:
        model, h = self.model, self.prompt.unsqueeze(0)
        if model.position is not None:
            h = h + model.position.embed(positions(h, None)).to(h.dtype)
        if model.embed_norm is not None:
            h = model.embed_norm.apply_to(h)
        count = torch.full((batch,), self.length, dtype=torch.int64, device=h.device)
        return count, model.stack.proceed(h.expand(batch, -1, -1), None, None)[1]


@part
class PrefixTuned(TunedInitialState):
    r"""Prefix tuning: a trained initial state of every layer, keys and values for attention and states for other mixers.

    .. math:: \text{cache}_\ell = [K_\ell^P; K_\ell], [V_\ell^P; V_\ell]

    Its initial value is the state of the model after `length` tokens spread over the vocabulary.

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
            nn.Parameter(torch.zeros(1, *shape, dtype=table.dtype, device=table.device)) for shape in sizes
        )
        if not table.is_meta:
            tokens = torch.linspace(0, self.vocab - 1, length).long().unsqueeze(0).to(table.device)
            with torch.no_grad():
                _, (_, state) = self.model.proceed(tokens, None, None)
                for parameter, value in zip(self.memory, _tensors(state, layout), strict=True):
                    parameter.copy_(value)

    def initial_state(self, batch: int) -> State:
        memory = iter(self.memory)
        device = self.model.embedding.weight.device

        def fill(entry: Any) -> Any:
            if not isinstance(entry, Slot):
                return tuple(map(fill, entry))
            if entry.dtype is None:
                parameter = next(memory)
                return parameter.expand(batch, *parameter.shape[1:])
            if entry.sizes:  # positions of cache entries: of width 0 if each entry is at its own index
                return torch.empty((batch, 0), dtype=entry.dtype, device=device)
            return signed(torch.full((batch,), self.length, dtype=entry.dtype, device=device), entry.by)

        count = torch.full((batch,), self.length, dtype=torch.int64, device=device)
        return count, fill(self.model.stack.state_layout())


def _slots(layout: Any) -> list[Slot]:
    return [layout] if isinstance(layout, Slot) else [slot for entry in layout for slot in _slots(entry)]


def _tensors(state: Any, layout: Any) -> list[Tensor]:
    """The floating point tensors of a state, in the order of its slots."""
    if isinstance(layout, Slot):
        return [state] if layout.dtype is None else []
    return [tensor for entry, slots in zip(state, layout, strict=True) for tensor in _tensors(entry, slots)]
