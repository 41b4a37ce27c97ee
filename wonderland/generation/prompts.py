"""Prompts: rows of token ids of any length, as one batch with padding on the right."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.nn.positions import Learned


@dataclass(frozen=True)
class Prompts:
    """A batch of prompts: tokens (b, t) padded on the right, their mask (None if all have the same length), and as lists."""

    tokens: Tensor
    mask: Tensor | None
    lists: list[list[int]]

    @property
    def last(self) -> Tensor | None:
        """The index (b,) of the last real token of each row; None if that is the last column in every row."""
        return None if self.mask is None else self.mask.sum(1) - 1

    def repeat(self, times: int) -> "Prompts":
        """Each prompt `times` times in a row."""
        mask = None if self.mask is None else self.mask.repeat_interleave(times, 0)
        lists = [row for row in self.lists for _ in range(times)]
        return Prompts(self.tokens.repeat_interleave(times, 0), mask, lists)

    def row(self, index: int) -> "Prompts":
        """One prompt as a batch."""
        return batch([self.lists[index]], self.tokens.device)


def read_prompts(prompts: Any, mask: Any, model: Any) -> Prompts:
    """Check and batch what a user gives: a tensor (b, t), with a mask if rows are padded, or a list of lists of token ids."""
    device = _device(model)
    if isinstance(prompts, Tensor):
        lists = _from_tensor(prompts, mask)
    elif mask is not None:
        raise WonderlandError("A mask is for prompts in a tensor; lists need none, because their lengths are known.")
    else:
        lists = _from_lists(prompts)
    if not lists:
        raise WonderlandError("There are no prompts: give at least one.")
    vocab = getattr(model, "vocab", None)
    for row, tokens in enumerate(lists):
        if not tokens:
            raise WonderlandError(
                f"Prompt {row} is empty, and a model needs at least one token to continue: give it the begin token."
            )
        if min(tokens) < 0 or (vocab is not None and max(tokens) >= vocab):
            at = next(i for i, token in enumerate(tokens) if token < 0 or (vocab is not None and token >= vocab))
            known = "tokens are not negative" if vocab is None else f"tokens are 0 to {vocab - 1}"
            raise WonderlandError(
                f"Token {tokens[at]} in prompt {row}, position {at} is not in the vocabulary: {known}."
            )
    return batch(lists, device)


def batch(lists: list[list[int]], device: Any) -> Prompts:
    """Lists of token ids as one batch."""
    longest = max(map(len, lists))
    tokens = torch.tensor([[*row, *[0] * (longest - len(row))] for row in lists], device=device)
    if min(map(len, lists)) == longest:
        return Prompts(tokens, None, lists)
    lengths = torch.tensor([len(row) for row in lists], device=device)
    return Prompts(tokens, torch.arange(longest, device=device) < lengths.unsqueeze(1), lists)


def check_context(model: Any, prompts: Prompts, count: int) -> None:
    """Refuse a prompt that, with `count` new tokens, is longer than the positions of the model."""
    limit = context(model)
    if limit is None:
        return
    for row, tokens in enumerate(prompts.lists):
        # The last token is generated, but not read.
        if len(tokens) + count - 1 > limit:
            room = limit - len(tokens) + 1
            remedy = f"ask for at most {room}, or shorten the prompt"
            if room < 1:
                remedy = f"keep its last {max(1, limit - count + 1)}"
                remedy += f" and ask for at most {limit}" if count > limit else ""
            raise WonderlandError(
                f"Prompt {row} has {len(tokens)} tokens and {count} more are asked for, "
                f"but this model has {limit} positions: {remedy}."
            )


def context(model: Any) -> int | None:
    """The longest sequence that a model takes: its `context`, or its smallest position table; None if there is no limit."""
    own = getattr(model, "context", None)
    if isinstance(own, int):
        return own
    modules = model.modules() if hasattr(model, "modules") else ()
    return min((module.length for module in modules if isinstance(module, Learned)), default=None)


def _from_tensor(prompts: Tensor, mask: Any) -> list[list[int]]:
    if prompts.dim() != 2 or prompts.dtype not in (torch.int64, torch.int32):
        raise WonderlandError(
            f"Prompts are token ids, integers (batch, time), not {prompts.dtype} of shape {tuple(prompts.shape)}."
        )
    if mask is None:
        return prompts.tolist()
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.shape != prompts.shape:
        given = f"{mask.dtype} {tuple(mask.shape)}" if isinstance(mask, Tensor) else type(mask).__name__
        raise WonderlandError(
            f"The mask of prompts is a tensor of booleans {tuple(prompts.shape)}, True for real tokens, not {given}."
        )
    lists = []
    for row, (tokens, real) in enumerate(zip(prompts.tolist(), mask.tolist(), strict=True)):
        kept = [token for token, is_real in zip(tokens, real, strict=True) if is_real]
        first = real.index(True) if kept else 0
        if not all(real[first : first + len(kept)]):
            raise WonderlandError(f"The mask has a gap in row {row}: the real tokens of a prompt must be consecutive.")
        lists.append(kept)
    return lists


def _from_lists(prompts: Any) -> list[list[int]]:
    if not isinstance(prompts, Iterable) or isinstance(prompts, str | bytes):
        raise WonderlandError(
            f"Prompts are a list of lists of token ids, or a tensor (batch, time), not a {type(prompts).__name__}."
        )
    lists = []
    for row, prompt in enumerate(prompts):
        if isinstance(prompt, Tensor):
            prompt = prompt.tolist()
        if not isinstance(prompt, Sequence) or isinstance(prompt, str | bytes):
            raise WonderlandError(
                f"Prompt {row} is a {type(prompt).__name__}, not a list of token ids; "
                "give a single prompt as a list that holds one list."
            )
        tokens = []
        for at, token in enumerate(prompt):
            if isinstance(token, bool) or not hasattr(token, "__index__"):
                raise WonderlandError(
                    f"Prompt {row} has {token!r} at position {at}, which is not a token id: ids are whole numbers."
                )
            tokens.append(token.__index__())
        lists.append(tokens)
    return lists


def _device(model: Any) -> Any:
    parameters = model.parameters() if hasattr(model, "parameters") else ()
    first = next(iter(parameters), None)
    return None if first is None else first.device
