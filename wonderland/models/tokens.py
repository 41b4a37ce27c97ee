"""Tokens at the door of a model: checked, looked up, and rolled until padding stands at the right end."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.nn.contract.mixer import check_booleans
from wonderland.ops.shapes import readable


def check_input(tokens: Any, mask: Any, name: str) -> None:
    """Say what is wrong with tokens, or with a mask whose real tokens must stand together."""
    check_tokens(tokens, name)
    check_mask(mask, tokens, name)
    if mask is None or not readable(mask):
        return
    runs = mask[:, 0].long() + (mask[:, 1:] & ~mask[:, :-1]).sum(1)
    if (runs > 1).any():
        raise WonderlandError(
            f"The mask has a hole in row {int((runs > 1).nonzero()[0])}: real tokens stand together, "
            "with padding before or after them."
        )


def check_tokens(tokens: Any, name: str) -> None:
    """Say what is wrong with tokens that are not whole numbers (batch, time)."""
    if not isinstance(tokens, Tensor) or tokens.dim() != 2 or 0 in tokens.shape:
        given = f"of shape {tuple(tokens.shape)}" if isinstance(tokens, Tensor) else f"of type {type(tokens).__name__}"
        raise WonderlandError(
            f"{name} takes tokens (batch, time) with at least one row and one position, not one {given}."
        )
    if tokens.dtype not in (torch.int64, torch.int32):
        raise WonderlandError(f"{name} takes tokens as whole numbers (int64 or int32), not {tokens.dtype}.")


def check_mask(mask: Any, tokens: Tensor, name: str) -> None:
    """Say what is wrong with a mask that does not fit its tokens."""
    if mask is not None:
        check_booleans(mask, tokens, name)


def check_rows(mask: Tensor, name: str) -> None:
    """Say which row has nothing in it."""
    if readable(mask) and not mask.any(1).all():
        row = int((~mask.any(1)).nonzero()[0])
        raise WonderlandError(
            f"{name} got a mask whose row {row} has no real token: leave empty sequences out of the batch."
        )


def check_range(tokens: Tensor, vocab: int) -> None:
    """Say which token is not in the vocabulary."""
    if not readable(tokens):
        return
    outside = (tokens < 0) | (tokens >= vocab)
    if outside.any():
        row, at = outside.nonzero()[0].tolist()
        raise WonderlandError(
            f"Token {int(tokens[row, at])} in row {row}, position {at} is not in the vocabulary: "
            f"tokens are 0 to {vocab - 1}."
        )


def check_sizes(name: str, **sizes: Any) -> None:
    """Say which size is not a whole number of at least 1."""
    for what, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise WonderlandError(f"{name} needs {what} to be a whole number of at least 1, not {size!r}.")


def check_classes(classes: Any, name: str) -> None:
    """Say that one class leaves nothing to tell apart."""
    if not isinstance(classes, int) or classes < 2:
        raise WonderlandError(f"{name} tells at least two classes apart, not {classes!r}.")


def check_pad(pad: Any, vocab: int, name: str) -> None:
    """Say that padding is no token of the vocabulary."""
    if pad is not None and (not isinstance(pad, int) or not 0 <= pad < vocab):
        raise WonderlandError(f"{name} takes the id of padding from 0 to {vocab - 1}, or None for none, not {pad!r}.")


def look_up(tokens: Tensor, table: Tensor) -> Tensor:
    """The rows of a table (vocab, dim) for tokens (b, t); a token outside meets a sentence."""
    if not tokens.is_cpu:
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
    if readable(first) and not first.any():
        return tokens, mask, None
    t = tokens.shape[1]
    steps = torch.arange(t, device=tokens.device)
    index = (steps + first) % t
    return tokens.gather(1, index), mask.gather(1, index), (steps - first) % t


def take(h: Tensor, index: Tensor) -> Tensor:
    """Features (b, t, dim) at the positions (b, t) of each row."""
    return h.gather(1, index.unsqueeze(-1).expand(-1, -1, h.shape[2]))


def real(tokens: Tensor, mask: Tensor | None, pad: int | None) -> Tensor:
    """Where tokens are real, (b, t): shown by the mask, and not padding.

    >>> real(torch.tensor([[5, 7, 0]]), None, 0)
    tensor([[ True,  True, False]])
    """
    shown = torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask
    return shown if pad is None else shown & (tokens != pad)


def gathered(tokens: Tensor, shown: Tensor) -> tuple[Tensor, Tensor]:
    """Rows with their real tokens first, in their order, and the mask that goes with them.

    >>> gathered(torch.tensor([[0, 5, 7]]), torch.tensor([[False, True, True]]))
    (tensor([[5, 7, 0]]), tensor([[ True,  True, False]]))
    """
    index = (~shown).to(torch.uint8).argsort(dim=1, stable=True)
    return tokens.gather(1, index), shown.gather(1, index)


def unpadded(tokens: Tensor, pad: int) -> Tensor:
    """The mask of rows padded with a token: from the first to the last that is another; the first token where none is.

    >>> unpadded(torch.tensor([[7, 0, 8, 0], [0, 0, 0, 0]]), 0)
    tensor([[ True,  True,  True, False],
            [ True, False, False, False]])
    """
    other = tokens != pad
    before, after = other.long().cumsum(1), other.flip(1).long().cumsum(1).flip(1)
    mask = (before > 0) & (after > 0)
    empty = ~other.any(1)
    return mask | (empty.unsqueeze(1) & (torch.arange(tokens.shape[1], device=tokens.device) == 0))
