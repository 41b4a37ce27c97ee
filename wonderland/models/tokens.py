"""Tokens at the door of a model: checked, looked up, and rolled until padding stands at the right end."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import WonderlandError


def check_tokens(tokens: Any, mask: Any, name: str) -> None:
    """Say what is wrong with tokens or a mask that do not fit."""
    if not isinstance(tokens, Tensor) or tokens.dim() != 2 or 0 in tokens.shape:
        given = f"of shape {tuple(tokens.shape)}" if isinstance(tokens, Tensor) else f"of type {type(tokens).__name__}"
        raise WonderlandError(
            f"{name} takes tokens (batch, time) with at least one row and one position, not one {given}."
        )
    if tokens.dtype not in (torch.int64, torch.int32):
        raise WonderlandError(f"{name} takes tokens as whole numbers (int64 or int32), not {tokens.dtype}.")
    if mask is None:
        return
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.shape != tokens.shape:
        given = f"{mask.dtype} {tuple(mask.shape)}" if isinstance(mask, Tensor) else type(mask).__name__
        raise WonderlandError(
            f"{name} takes a mask of booleans {tuple(tokens.shape)}, True where a token is real, not {given}."
        )
    if not torch.compiler.is_compiling():
        runs = mask[:, 0].long() + (mask[:, 1:] & ~mask[:, :-1]).sum(1)
        if (runs > 1).any():
            raise WonderlandError(
                f"The mask has a hole in row {int((runs > 1).nonzero()[0])}: real tokens stand together, "
                "with padding before or after them."
            )


def check_rows(mask: Tensor, name: str) -> None:
    """Say which row has nothing in it."""
    if not torch.compiler.is_compiling() and not mask.any(1).all():
        row = int((~mask.any(1)).nonzero()[0])
        raise WonderlandError(
            f"{name} got a mask whose row {row} has no real token: leave empty sequences out of the batch."
        )


def check_range(tokens: Tensor, vocab: int) -> None:
    """Say which token is not in the vocabulary."""
    outside = (tokens < 0) | (tokens >= vocab)
    if outside.any():
        row, at = outside.nonzero()[0].tolist()
        raise WonderlandError(
            f"Token {int(tokens[row, at])} in row {row}, position {at} is not in the vocabulary: "
            f"tokens are 0 to {vocab - 1}."
        )


def look_up(tokens: Tensor, table: Tensor) -> Tensor:
    """The rows of a table (vocab, dim) for tokens (b, t); a token outside meets a sentence."""
    if not tokens.is_cpu and not torch.compiler.is_compiling():
        check_range(tokens, table.shape[0])
    try:
        return F.embedding(tokens, table)
    except IndexError:
        # The lookup on a CPU compares every token anyway: a sentence costs nothing until it is needed.
        check_range(tokens, table.shape[0])
        raise


def to_the_left(tokens: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
    """Rows rolled until their real tokens come first, and where each position went; None where nothing moved."""
    first = mask.to(torch.uint8).argmax(1, keepdim=True)
    if not torch.compiler.is_compiling() and not first.any():
        return tokens, mask, None
    t = tokens.shape[1]
    steps = torch.arange(t, device=tokens.device)
    index = (steps + first) % t
    return tokens.gather(1, index), mask.gather(1, index), (steps - first) % t


def take(h: Tensor, index: Tensor) -> Tensor:
    """Features (b, t, dim) at the positions (b, t) of each row."""
    return h.gather(1, index.unsqueeze(-1).expand(-1, -1, h.shape[2]))


def real(tokens: Tensor, pad: int) -> Tensor:
    """The mask of rows padded with a token: from the first to the last that is another; the first token where none is.

    >>> real(torch.tensor([[7, 0, 8, 0], [0, 0, 0, 0]]), 0)
    tensor([[ True,  True,  True, False],
            [ True, False, False, False]])
    """
    other = tokens != pad
    before, after = other.long().cumsum(1), other.flip(1).long().cumsum(1).flip(1)
    mask = (before > 0) & (after > 0)
    empty = ~other.any(1)
    return mask | (empty.unsqueeze(1) & (torch.arange(tokens.shape[1], device=tokens.device) == 0))
