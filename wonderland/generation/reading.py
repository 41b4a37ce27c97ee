"""How a model is read while it writes: at rest, without gradients, the last position of each row only."""

from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.fast.decode_session import DecodeSession
from wonderland.generation.compiled import decode_session
from wonderland.generation.prompts import Prompts
from wonderland.nn.contract.state import consuming, rows


class _Rest:
    """Modules out of training, and no gradients; a class, because every step enters it."""

    __slots__ = ("_awake", "_before")

    def __init__(self, awake: list[Any]):
        self._awake = awake

    def __enter__(self) -> None:
        self._before = torch.is_grad_enabled()
        torch._C._set_grad_enabled(False)
        for module in self._awake:
            module.training = False

    def __exit__(self, *_: Any) -> None:
        torch._C._set_grad_enabled(self._before)
        for module in self._awake:
            module.training = True


class Reader:
    """A language model as generation sees it: `begin` reads prompts, `step` one token more of each row.

    Every call leaves the model in the mode it was in, so that a caller who looks at tokens between two steps finds
    everything as it was. A state that was handed in is never written to; those made here are, where that is faster.
    """

    def __init__(self, model: Any):
        if not callable(getattr(model, "stream", None)):
            raise WonderlandError(
                f"A {type(model).__name__} cannot write: a language model has stream(tokens, state, mask), "
                "which returns logits and the next state."
            )
        self.model = model
        modules = model.modules() if hasattr(model, "modules") else ()
        self._awake = [module for module in modules if module.training]
        self._resting = _Rest(self._awake)
        # A head over a large vocabulary costs more than all else: only the last position goes through it.
        self._headless = hasattr(model, "proceed") and hasattr(model, "logits")

    def resting(self) -> "_Rest":
        """The model as in evaluation, without gradients."""
        return self._resting

    def begin(self, prompts: Prompts, state: Any = None) -> tuple[Tensor, Any]:
        """The logits (b, vocab) after each prompt, and the state."""
        with self.resting():
            if self._headless:
                h, state = self.model.proceed(prompts.tokens, state, prompts.mask)
                return self.model.logits(_last(h, prompts.last)), state
            logits, state = self.model.stream(prompts.tokens, state, prompts.mask)
            return _last(logits, prompts.last), state

    def whole(self, prompts: Prompts, state: Any = None) -> Tensor:
        """The logits (b, t, vocab) at every position of the prompts."""
        with self.resting():
            return self.model.stream(prompts.tokens, state, prompts.mask)[0]

    def step(self, tokens: list[int], state: Any, device: Any) -> tuple[Tensor, Any]:
        """The logits (b, vocab) after one token more of each row, and the next state; the state given is used up.

        Logits that come from a decode session are valid until its next step.
        """
        with self._resting:
            if isinstance(state, DecodeSession):
                logits = state.step(tokens)
                if logits is not None:
                    return logits, state
                state = state.state
            with consuming():
                logits, state = self.model.stream(torch.tensor([[token] for token in tokens], device=device), state)
            return logits[:, -1], state

    def session(self, state: Any) -> Any:
        """A decode session in the place of a state, where the model has one and many steps follow; only `step` takes it."""
        with self._resting:
            return decode_session(self.model, state) or state

    def rows(self, state: Any, index: Tensor) -> Any:
        """A copy of a state, or of the state of a decode session, with the chosen rows."""
        with self._resting:
            return rows(state.state if isinstance(state, DecodeSession) else state, index)

    def follow(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The logits (b, t, vocab) of several tokens more; the state given can be continued again."""
        with self.resting():
            return self.model.stream(tokens, state)


def _last(h: Tensor, last: Tensor | None) -> Tensor:
    return h[:, -1] if last is None else h[torch.arange(len(h), device=h.device), last]
