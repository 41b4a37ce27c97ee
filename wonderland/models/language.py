"""The base of small language models: checks of tokens and masks, `forward` over whole rows, `stream` in pieces."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.models.tokens import check_mask, check_range, check_tokens, real_first
from wonderland.nn.contract.arguments import Checked
from wonderland.nn.contract.mixer import hide, lengths
from wonderland.nn.contract.state import COUNT, Layout, State, fill, fits, misfit
from wonderland.ops.shapes import readable


class LanguageModel(Checked, nn.Module):
    """A causal language model; subclasses implement `read` and describe their state in `layout`.

    `forward(tokens, mask)` takes all positions at once; `stream(tokens, state, mask)` continues after a state with new
    tokens, and any division into pieces gives the same logits. Real tokens may be anywhere in a row: padding is not read, has
    logits 0 and leaves the state unchanged. A given state is never modified.

    Shapes: tokens (b, t) -> logits (b, t, vocab); state: what `layout` says, then the count of tokens seen (b,).
    """

    vocab: int
    causal = True

    def laws(self) -> tuple[Callable[..., Any], ...]:
        """What this instance promises; the suite checks it."""
        from wonderland import laws

        order = (laws.causality, laws.strict_causality, laws.streaming)
        always = (laws.batch_independence, laws.padding_invariance, laws.gradients, laws.determinism, laws.save_load)
        return (*order, *always, laws.finiteness, laws.compiles)

    def layout(self) -> Layout:
        """The state without its batch and its count."""
        raise NotImplementedError

    def read(self, tokens: Tensor, state: State | None, mask: Tensor | None) -> tuple[Tensor, State]:
        """Logits (b, t, vocab) and the next state; real tokens come first in each row, padding is token 0 and must be ignored."""
        raise NotImplementedError

    def forward(self, tokens: Any, mask: Any = None) -> Tensor:
        self._check(tokens, mask)
        if mask is not None and readable(mask) and not mask.any(1).all():
            row = int((~mask.any(1)).nonzero()[0])
            raise WonderlandError(
                f"{type(self).__name__} got a mask whose row {row} has no real token: "
                "leave empty sequences out of the batch."
            )
        return self._run(tokens, None, mask)[0]

    def stream(self, tokens: Any, state: Any = None, mask: Any = None) -> tuple[Tensor, State]:
        """Continue after `state` (None: at the beginning) with new tokens; returns logits and the next state."""
        self._check(tokens, mask)
        if state is not None and not torch.compiler.is_compiling():
            layout = (*self.layout(), COUNT)
            if not fits(state, layout, len(tokens)) and (wrong := misfit(state, layout, len(tokens))):
                raise WonderlandError(
                    f"The state does not fit this {type(self).__name__}: {wrong}. "
                    "A state belongs to the model and the batch that made it; state=None starts a new sequence."
                )
        return self._run(tokens, state, mask)

    def start(self, batch: int) -> State:
        """The state before the first token, explicitly (`stream` takes None for it)."""
        like = next(iter(self.state_dict().values()))
        dtype = like.dtype if like.is_floating_point() else torch.get_default_dtype()
        return fill((*self.layout(), COUNT), batch, dtype, like.device)

    def _check(self, tokens: Any, mask: Any) -> None:
        name = type(self).__name__
        check_tokens(tokens, name)
        check_mask(mask, tokens, name)
        if not torch.compiler.is_compiling():
            check_range(tokens if mask is None else tokens.masked_fill(~mask, 0), self.vocab)

    def _run(self, tokens: Tensor, state: State | None, mask: Tensor | None) -> tuple[Tensor, State]:
        inner, seen = (None, None) if state is None else (state[:-1], state[-1])
        logits, inner = read_compacted(tokens, mask, lambda tokens, mask: self.read(tokens, inner, mask))
        new = tokens.new_ones(tokens.shape[0], dtype=torch.int64) * tokens.shape[1] if mask is None else lengths(mask)
        return logits, (*inner, new if seen is None else seen + new)


def read_compacted(tokens: Tensor, mask: Tensor | None, read: Callable[..., tuple[Tensor, State]]):
    """Call `read` on rows with their real tokens first, and move its outputs back to the original positions, 0 at padding."""
    if mask is None:
        return read(tokens, None)
    order = real_first(mask)
    first = mask.gather(1, order)
    outputs, state = read(tokens.masked_fill(~mask, 0).gather(1, order), first)
    back = order.argsort(dim=1).unsqueeze(-1)
    return hide(outputs, first).gather(1, back.expand_as(outputs)), state
