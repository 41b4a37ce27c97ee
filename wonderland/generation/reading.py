"""A model as generation uses it: in evaluation mode, without gradients, with logits at the last position only."""

from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.generation.prompts import Prompts
from wonderland.nn.contract.state import consuming, rows
from wonderland.ops.walk import Walk


class _Evaluation:
    """Evaluation mode without gradients. A class and not a generator, because it is entered at every step."""

    __slots__ = ("_before", "_training")

    def __init__(self, training: list[Any]):
        self._training = training

    def __enter__(self) -> None:
        self._before = torch.is_grad_enabled()
        torch._C._set_grad_enabled(False)
        for module in self._training:
            module.training = False

    def __exit__(self, *_: Any) -> None:
        torch._C._set_grad_enabled(self._before)
        for module in self._training:
            module.training = True


class Reader:
    """Runs a language model: `begin` reads prompts, `step` reads one more token of each row.

    After every call the model is in the mode it was in before, so that callers may use it between two steps. A state that a
    caller gave is never modified; states made here may be updated in place.
    """

    def __init__(self, model: Any):
        if not callable(getattr(model, "stream", None)):
            raise WonderlandError(
                f"A {type(model).__name__} cannot generate: a language model has stream(tokens, state, mask), "
                "which returns logits and the next state."
            )
        self.model = model
        modules = model.modules() if hasattr(model, "modules") else ()
        self._evaluating = _Evaluation([module for module in modules if module.training])
        self._walks = callable(getattr(model, "walk", None))
        # With a large vocabulary the head is the most expensive layer: it is computed for the last position only.
        self._headless = hasattr(model, "proceed") and hasattr(model, "logits")

    def evaluating(self) -> _Evaluation:
        """A context in which the model is in evaluation mode and no gradients are recorded."""
        return self._evaluating

    def begin(self, prompts: Prompts, state: Any = None) -> tuple[Tensor, Any]:
        """The logits (b, vocab) after each prompt, and the state."""
        with self._evaluating:
            if self._headless:
                h, state = self.model.proceed(prompts.tokens, state, prompts.mask)
                return self.model.logits(_last(h, prompts.last)), state
            logits, state = self.model.stream(prompts.tokens, state, prompts.mask)
            return _last(logits, prompts.last), state

    def all_logits(self, prompts: Prompts, state: Any = None) -> Tensor:
        """The logits (b, t, vocab) at every position of the prompts."""
        with self._evaluating:
            return self.model.stream(prompts.tokens, state, prompts.mask)[0]

    def step(self, tokens: list[int], state: Any, device: Any) -> tuple[Tensor, Any]:
        """The logits (b, vocab) after one more token of each row, and the next state; the given state must not be used again.

        Logits that come from a walk are good until its next step.
        """
        with self._evaluating:
            if isinstance(state, Walk):
                logits = state.step(tokens)
                if logits is not None:
                    return logits, state
                state = state.state
            with consuming():
                logits, state = self.model.stream(torch.tensor([[token] for token in tokens], device=device), state)
            return logits[:, -1], state

    def walk(self, state: Any) -> Any:
        """The state as `step` goes on from it fastest, where many steps follow; nobody else can read it."""
        if not self._walks:
            return state
        with self._evaluating:
            return self.model.walk(state) or state

    def rows(self, state: Any, index: Tensor) -> Any:
        """A copy of a state, one that walks too, with the chosen rows."""
        with self._evaluating:
            return rows(state.state if isinstance(state, Walk) else state, index)

    def follow(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The logits (b, t, vocab) after each of several more tokens; the given state stays valid."""
        with self._evaluating:
            return self.model.stream(tokens, state)


def _last(h: Tensor, last: Tensor | None) -> Tensor:
    return h[:, -1] if last is None else h[torch.arange(len(h), device=h.device), last]
