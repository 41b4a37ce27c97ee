"""Language models over a fixed window of the last tokens."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.models.language import LanguageModel
from wonderland.nn.contract.mixer import lengths
from wonderland.nn.contract.state import Layout, Slot, State


class Window(LanguageModel):
    """A language model that reads the last `window` tokens; texts are padded with `begin` on the left.

    Subclasses implement `predict`: windows (n, window) -> logits (n, vocab). State: the last `window` tokens, (b, window).
    """

    window: int
    begin: int

    def predict(self, windows: Tensor) -> Tensor:
        """Logits (n, vocab) of the token after each window (n, window)."""
        raise NotImplementedError

    def layout(self) -> Layout:
        return (Slot((self.window,), fill=float(self.begin), dtype=torch.int64),)

    @property
    def receptive_field(self) -> tuple[int, int]:
        """How many tokens to the left and right an output reads."""
        return self.window - 1, 0

    def laws(self) -> tuple[Callable[..., Any], ...]:
        from wonderland import laws

        return (*super().laws(), laws.locality)

    def read(self, tokens: Tensor, state: State | None, mask: Tensor | None) -> tuple[Tensor, State]:
        b, t = tokens.shape
        before = tokens.new_full((b, self.window), self.begin) if state is None else state[0].to(tokens.dtype)
        full = torch.cat([before, tokens], 1)
        logits = self.all_logits(full)
        if mask is None:
            return logits, (full[:, t:].long(),)
        last = lengths(mask).unsqueeze(1) + torch.arange(self.window, device=tokens.device)
        return logits, (full.gather(1, last).long(),)

    def all_logits(self, full: Tensor) -> Tensor:
        """Logits (b, t, vocab) at the last t positions of tokens (b, window + t)."""
        windows = full[:, 1:].unfold(1, self.window, 1)
        return self.predict(windows.flatten(0, 1)).unflatten(0, windows.shape[:2])


def check_begin(begin: int, vocab: int, name: str) -> None:
    """Refuse a begin token that is not in the vocabulary."""
    if not isinstance(begin, int) or not 0 <= begin < vocab:
        raise WonderlandError(f"{name} takes begin, the token before the first, from 0 to {vocab - 1}, not {begin!r}.")


def check_windows(windows: Tensor, window: int, name: str) -> None:
    """Refuse windows of another length than the model's."""
    if windows.dim() != 2 or windows.shape[1] != window:
        raise WonderlandError(f"{name} predicts from windows (n, {window}), not {tuple(windows.shape)}.")


def windows_and_targets(tokens: Tensor, window: int) -> tuple[Tensor, Tensor]:
    """Every window of a text (n,) and the token after it: (n - window, window) and (n - window,).

    >>> windows_and_targets(torch.tensor([1, 2, 3, 4]), 2)
    (tensor([[1, 2],
            [2, 3]]), tensor([3, 4]))
    """
    if tokens.dim() != 1 or len(tokens) <= window:
        raise WonderlandError(
            f"Windows of {window} tokens with a target need a text of at least {window + 1} tokens, "
            f"not of shape {tuple(tokens.shape)}."
        )
    return tokens.unfold(0, window, 1)[:-1], tokens[window:]
