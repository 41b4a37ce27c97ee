"""Prompts: token ids in rows of any length, as one batch whose real tokens come first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.nn.positions import Learned


@dataclass(frozen=True)
class Prompts:
    """A batch of prompts: tokens (b, t) with padding on the right, a mask (None where all are equally long), and lists."""

    tokens: Tensor
    mask: Tensor | None
    lists: list[list[int]]

    @property
    def last(self) -> Tensor | None:
        """The place (b,) of each row's last real token; None where it is the last of all rows."""
        return None if self.mask is None else self.mask.sum(1) - 1

    def repeat(self, times: int) -> "Prompts":
        """Each prompt several times, one after the other."""
        mask = None if self.mask is None else self.mask.repeat_interleave(times, 0)
        lists = [row for row in self.lists for _ in range(times)]
        return Prompts(self.tokens.repeat_interleave(times, 0), mask, lists)

    def row(self, index: int) -> "Prompts":
        """One prompt alone."""
        return batch([self.lists[index]], self.tokens.device)


def read_prompts(prompts: Any, mask: Any, model: Any) -> Prompts:
    """Prompts as a user gives them: a tensor (b, t), perhaps with a mask, or a list of lists of token ids."""
    device = _device(model)
    if isinstance(prompts, Tensor):
        found = _from_tensor(prompts, mask)
    elif mask is not None:
        raise WonderlandError("A mask goes with prompts in a tensor; prompts in lists have the lengths they have.")
    else:
        found = _from_lists(prompts)
    if not found:
        raise WonderlandError("There is no prompt to go on from: give at least one.")
    vocab = getattr(model, "vocab", None)
    for row, tokens in enumerate(found):
        if not tokens:
            raise WonderlandError(
                f"Prompt {row} is empty, and a model goes on from at least one token: start it with the begin token."
            )
        if min(tokens) < 0 or (vocab is not None and max(tokens) >= vocab):
            at = next(i for i, token in enumerate(tokens) if token < 0 or (vocab is not None and token >= vocab))
            known = "tokens are not negative" if vocab is None else f"tokens are 0 to {vocab - 1}"
            raise WonderlandError(
                f"Token {tokens[at]} in prompt {row}, position {at} is not in the vocabulary: {known}."
            )
    return batch(found, device)


def batch(lists: list[list[int]], device: Any) -> Prompts:
    """Lists of tokens as one batch."""
    longest = max(map(len, lists))
    tokens = torch.tensor([[*row, *[0] * (longest - len(row))] for row in lists], device=device)
    if min(map(len, lists)) == longest:
        return Prompts(tokens, None, lists)
    lengths = torch.tensor([len(row) for row in lists], device=device)
    return Prompts(tokens, torch.arange(longest, device=device) < lengths.unsqueeze(1), lists)


def check_context(model: Any, prompts: Prompts, count: int) -> None:
    """Say so when a prompt and what follows do not fit into the positions that a model has."""
    limit = context(model)
    if limit is None:
        return
    for row, tokens in enumerate(prompts.lists):
        # The last token written is never read.
        if len(tokens) + count - 1 > limit:
            room = limit - len(tokens) + 1
            remedy = f"ask for at most {room}, or shorten the prompt"
            if room < 1:
                remedy = f"keep its last {max(1, limit - count + 1)}"
                remedy += f" and ask for at most {limit}" if count > limit else ""
            raise WonderlandError(
                f"Prompt {row} has {len(tokens)} tokens and {count} more are asked for, "
                f"and this model has {limit} positions: {remedy}."
            )


def context(model: Any) -> int | None:
    """How many positions a model has, None for no limit known: its `context`, or its smallest table of positions."""
    own = getattr(model, "context", None)
    if isinstance(own, int):
        return own
    modules = model.modules() if hasattr(model, "modules") else ()
    return min((module.weight.shape[0] for module in modules if isinstance(module, Learned)), default=None)


def _from_tensor(prompts: Tensor, mask: Any) -> list[list[int]]:
    if prompts.dim() != 2 or prompts.dtype not in (torch.int64, torch.int32):
        raise WonderlandError(
            f"Prompts are whole numbers (batch, time), not {prompts.dtype} of shape {tuple(prompts.shape)}."
        )
    if mask is None:
        return prompts.tolist()
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.shape != prompts.shape:
        given = f"{mask.dtype} {tuple(mask.shape)}" if isinstance(mask, Tensor) else type(mask).__name__
        raise WonderlandError(
            f"The mask of prompts is of booleans {tuple(prompts.shape)}, True where a token is real, not {given}."
        )
    found = []
    for row, (tokens, real) in enumerate(zip(prompts.tolist(), mask.tolist(), strict=True)):
        kept = [token for token, own in zip(tokens, real, strict=True) if own]
        first = real.index(True) if kept else 0
        if not all(real[first : first + len(kept)]):
            raise WonderlandError(f"The mask has a hole in row {row}: the real tokens of a prompt stand together.")
        found.append(kept)
    return found


def _from_lists(prompts: Any) -> list[list[int]]:
    if not isinstance(prompts, Iterable) or isinstance(prompts, str | bytes):
        raise WonderlandError(
            f"Prompts are a list of lists of token ids, or a tensor (batch, time), not a {type(prompts).__name__}."
        )
    found = []
    for row, prompt in enumerate(prompts):
        if isinstance(prompt, Tensor):
            prompt = prompt.tolist()
        if not isinstance(prompt, Sequence) or isinstance(prompt, str | bytes):
            raise WonderlandError(
                f"Prompt {row} is a {type(prompt).__name__} where a list of token ids belongs; "
                "one prompt alone is a list with one list in it."
            )
        tokens = []
        for at, token in enumerate(prompt):
            if isinstance(token, bool) or not hasattr(token, "__index__"):
                raise WonderlandError(
                    f"Prompt {row} has {token!r} at position {at} where a token id, a whole number, belongs."
                )
            tokens.append(token.__index__())
        found.append(tokens)
    return found


def _device(model: Any) -> Any:
    parameters = model.parameters() if hasattr(model, "parameters") else ()
    first = next(iter(parameters), None)
    return None if first is None else first.device
