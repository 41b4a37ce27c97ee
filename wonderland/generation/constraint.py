"""The interface of constraints on generated text: which tokens may come next, and when the text may end."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from torch import Tensor


class Constraint(ABC):
    """A set of allowed texts, as a state machine that starts in `start` and takes one token at a time.

    `pieces` are the bytes of each token. States are opaque to generation; `left` is the number of tokens that may still be
    generated.
    """

    pieces: Sequence[bytes]
    start: Any

    @abstractmethod
    def allowed(self, state: Any, left: int) -> Tensor:
        """Which tokens (vocab,) may come next, so that the text can still be completed within `left` tokens."""

    @abstractmethod
    def after(self, state: Any, token: int) -> Any:
        """The state after an allowed token."""

    @abstractmethod
    def accepts(self, state: Any) -> bool:
        """Whether the text may end here."""

    @abstractmethod
    def final(self, state: Any, left: int) -> bool:
        """Whether the text may end here and no token may follow."""

    @abstractmethod
    def check(self, count: int) -> None:
        """Raise if no text can be completed within `count` tokens."""

    def without(self, tokens: frozenset[int]) -> "Constraint":
        """The same constraint for a vocabulary in which these tokens have no bytes, because they end a row."""
        return self
