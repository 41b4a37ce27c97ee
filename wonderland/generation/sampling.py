"""The choice of the next token: the most likely one, or one drawn from a truncated distribution."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.generation.checks import integer
from wonderland.generation.rules import apply_temperature, min_p, penalize_repetition, top_k, top_p, typical
from wonderland.generation.truncated_draw import draw_truncated


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen: None leaves a rule out, temperature 0 takes the most likely token.

    The rules are applied in this order: repetition penalty, temperature, top-k, top-p, min-p, typical.

    >>> Sampling(top_k=2).adjust(torch.tensor([[1.0, 3.0, 2.0]]))
    tensor([[-inf, 3., 2.]])
    """

    temperature: Any = 1.0
    top_k: Any = None
    top_p: Any = None
    min_p: Any = None
    typical: Any = None
    repetition_penalty: Any = None

    def __post_init__(self):
        _check("temperature", self.temperature, 0, math.inf, "a number from 0 (the most likely token)")
        if self.top_k is not None:
            object.__setattr__(self, "top_k", integer(self.top_k, "top_k is"))
        for name in ("top_p", "typical"):
            if (value := getattr(self, name)) is not None:
                _check(name, value, 0, 1, "a probability above 0, at most 1", above=True)
        if self.min_p is not None:
            _check("min_p", self.min_p, 0, 1, "a number from 0 to 1")
        if self.repetition_penalty is not None:
            range_ = "a number above 0 (1 has no effect)"
            _check("repetition_penalty", self.repetition_penalty, 0, math.inf, range_, above=True)
        for name in ("temperature", "top_p", "min_p", "typical", "repetition_penalty"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, float(value))

    @property
    def greedy(self) -> bool:
        """Whether the most likely token is always chosen."""
        return self.temperature == 0

    @property
    def penalizes(self) -> bool:
        """Whether there is a repetition penalty."""
        return self.repetition_penalty is not None and self.repetition_penalty != 1

    def adjust(self, logits: Tensor, seen: Tensor | None = None) -> Tensor:
        """Logits (..., vocab) after every rule; `seen` (..., vocab) is True for tokens of the text so far."""
        if self.penalizes and seen is not None:
            logits = penalize_repetition(logits, seen, self.repetition_penalty)
        return logits if self.greedy else self.without_penalty(logits)

    def without_penalty(self, logits: Tensor) -> Tensor:
        """The rules after the repetition penalty."""
        logits = apply_temperature(logits, self.temperature)
        if self.top_k is not None:
            logits = top_k(logits, self.top_k)
        if self.top_p is not None:
            logits = top_p(logits, self.top_p)
        if self.min_p is not None:
            logits = min_p(logits, self.min_p)
        if self.typical is not None:
            logits = typical(logits, self.typical)
        return logits

    def probabilities(self, logits: Tensor, seen: Tensor | None = None) -> Tensor:
        """The distribution (..., vocab) that tokens are drawn from, in float64; one-hot if greedy."""
        logits = self.adjust(logits, seen)
        if self.greedy:
            chosen = torch.zeros(logits.shape, dtype=torch.float64, device=logits.device)
            return chosen.scatter_(-1, logits.argmax(-1, keepdim=True), 1.0)
        return logits.softmax(-1, dtype=torch.float64)

    def choose(self, logits: Tensor, uniform: Tensor | None, seen: Tensor | None = None) -> list[int]:
        """A token for each row of logits (b, vocab); `uniform` (b, 1) holds a number in [0, 1) for each, None if greedy.

        -1 for rows without a choice: a logit is NaN, or none is above -inf.
        """
        if self.penalizes and seen is not None:
            logits = penalize_repetition(logits, seen, self.repetition_penalty)
        if self.greedy:
            return most_likely(logits)
        assert uniform is not None
        if self.typical is not None:
            return draw(self.without_penalty(logits).softmax(-1, dtype=torch.float64), uniform)
        # A copy, because draw_truncated modifies it.
        scaled = logits.to("cpu", torch.float64, copy=True)
        if self.temperature != 1:
            scaled = apply_temperature(scaled, self.temperature)
        return draw_truncated(scaled.numpy(), uniform.numpy(), self.top_k, self.top_p, self.min_p)


def most_likely(logits: Tensor) -> list[int]:
    """The argmax of each row (b, vocab), the first one if several are equal; -1 for rows with NaN or only -inf."""
    if logits.is_cpu and logits.dtype in (torch.float32, torch.float64):
        rows = logits.numpy()  # four times as fast as torch for a small vocabulary
        tokens = rows.argmax(-1).tolist()
        return [token if row[token] > -math.inf else -1 for row, token in zip(rows, tokens, strict=True)]
    values, tokens = logits.max(-1)
    return [token if value > -math.inf else -1 for value, token in zip(values.tolist(), tokens.tolist(), strict=True)]


def draw(weights: Tensor, uniform: Tensor) -> list[int]:
    """Indices drawn from rows of weights (b, n) by inverting their cumulative sum at `uniform` (b, 1); -1 for NaN."""
    uniform = uniform.to(weights.device)
    cumulative = weights.cumsum(-1)
    total = cumulative[:, -1:]
    # The first index whose sum is larger: never one of weight 0.
    indices = torch.searchsorted(cumulative, uniform * total, right=True)
    return [
        index if value > 0 else -1
        for index, value in zip(indices.flatten().tolist(), total.flatten().tolist(), strict=True)
    ]


def _check(name: str, value: Any, least: float | int, most: float | int, range_: str, *, above: bool = False) -> None:
    """Refuse a value outside [least, most], or (least, most] with `above`; `range_` describes it in the message."""
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if not (least < number if above else least <= number) or not number <= most or math.isinf(number):
        raise WonderlandError(f"{name} is {range_}, not {value!r}.")
