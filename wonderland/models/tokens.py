"""Tokens as inputs of models: checks, embedding lookup, and moving padding to the right end."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.nn.contract.mixer import check_booleans
from wonderland.ops.over_time import is_exporting
from wonderland.ops.shapes import readable


def check_input(tokens: Any, mask: Any, name: str) -> None:
    """Refuse tokens that are not integers (batch, time), and masks whose real tokens are not consecutive."""
    check_tokens(tokens, name)
    check_mask(mask, tokens, name)
    if mask is None or not readable(mask):
        return
    runs = mask[:, 0].long() + (mask[:, 1:] & ~mask[:, :-1]).sum(1)
    if (runs > 1).any():
        raise WonderlandError(
            f"The mask has a gap in row {int((runs > 1).nonzero()[0])}: real tokens must be consecutive, "
            "with padding before or after them."
        )


def check_tokens(tokens: Any, name: str) -> None:
    """Refuse tokens that are not integers (batch, time)."""
    if not isinstance(tokens, Tensor) or tokens.dim() != 2 or 0 in tokens.shape:
        given = f"of shape {tuple(tokens.shape)}" if isinstance(tokens, Tensor) else f"of type {type(tokens).__name__}"
        raise WonderlandError(
            f"{name} takes tokens (batch, time) with at least one row and one position, not a value {given}."
        )
    if tokens.dtype not in (torch.int64, torch.int32):
        raise WonderlandError(f"{name} takes tokens as whole numbers (int64 or int32), not {tokens.dtype}.")


def check_mask(mask: Any, tokens: Tensor, name: str) -> None:
    """Refuse a mask that is not boolean with the shape of its tokens."""
    if mask is not None:
        check_booleans(mask, tokens, name)


def check_rows(mask: Tensor, name: str) -> None:
    """Refuse a mask with a row without real tokens."""
    if readable(mask) and not mask.any(1).all():
        row = int((~mask.any(1)).nonzero()[0])
        raise WonderlandError(
            f"{name} got a mask whose row {row} has no real token: leave empty sequences out of the batch."
        )


def check_range(tokens: Tensor, vocab: int) -> None:
    """Refuse tokens that are not in the vocabulary."""
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
    """Refuse sizes that are not integers of at least 1."""
    for argument, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise WonderlandError(f"{name} needs {argument} to be a whole number of at least 1, not {size!r}.")


def check_classes(classes: Any, name: str) -> None:
    """Refuse fewer than two classes."""
    if not isinstance(classes, int) or classes < 2:
        raise WonderlandError(f"{name} needs at least two classes, not {classes!r}.")


def check_pad(pad: Any, vocab: int, name: str) -> None:
    """Refuse a padding token that is not in the vocabulary."""
    if pad is not None and (not isinstance(pad, int) or not 0 <= pad < vocab):
        raise WonderlandError(
            f"{name} takes pad, the id of the padding token, from 0 to {vocab - 1}, or None for no padding, not {pad!r}."
        )


def look_up(tokens: Tensor, table: Tensor) -> Tensor:
    """The rows of an embedding table (vocab, dim) for tokens (b, t), with a clear error for tokens outside."""
    if not tokens.is_cpu:
        check_range(tokens, table.shape[0])
    try:
        return F.embedding(tokens, table)
    except IndexError:
        # The lookup on a CPU checks every token anyway, so the message is only made when it fails.
        check_range(tokens, table.shape[0])
        raise


def align_left(tokens: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
    """Roll rows so that real tokens come first; returns tokens, mask, and for `restore_order` the new index of each position.

    The index is None if nothing moved.
    """
    first = mask.to(torch.uint8).argmax(1, keepdim=True)
    if readable(first) and not first.any():
        return tokens, mask, None
    t = tokens.shape[1]
    steps = torch.arange(t, device=tokens.device)
    index = wrapped(steps + first, t)
    return tokens.gather(1, index), mask.gather(1, index), wrapped(steps - first, t)


def wrapped(index: Tensor, t: int) -> Tensor:
    """Places from -t to 2 t - 1, modulo t. (A remainder by a free length does not export.)

    >>> wrapped(torch.tensor([-1, 2, 5]), 3)
    tensor([2, 2, 2])
    """
    index = torch.where(index < 0, index + t, index)
    return torch.where(index < t, index, index - t)


def restore_order(h: Tensor, index: Tensor) -> Tensor:
    """Undo `align_left` on features (b, t, dim), given the index (b, t) of each position."""
    return h.gather(1, index.unsqueeze(-1).expand(-1, -1, h.shape[2]))


def real_tokens(tokens: Tensor, mask: Tensor | None, pad: int | None) -> Tensor:
    """Which tokens are real (b, t): inside the mask, and not padding.

    >>> real_tokens(torch.tensor([[5, 7, 0]]), None, 0)
    tensor([[ True,  True, False]])
    """
    inside = torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask
    return inside if pad is None else inside & (tokens != pad)


def compact(tokens: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Rows with their real tokens first, in their order, and the new mask; real tokens need not be consecutive.

    >>> compact(torch.tensor([[0, 5, 7]]), torch.tensor([[False, True, True]]))
    (tensor([[5, 7, 0]]), tensor([[ True,  True, False]]))
    """
    index = real_first(mask)
    return tokens.gather(1, index), mask.gather(1, index)


def real_first(mask: Tensor) -> Tensor:
    """The order of each row that puts real tokens first: (b, t).

    >>> real_first(torch.tensor([[False, True, True]]))
    tensor([[1, 2, 0]])
    """
    if is_exporting():  # sorts of whole numbers without equal ones are the same everywhere
        t = mask.shape[1]
        return (torch.arange(t, device=mask.device) + (~mask).long() * t).argsort(dim=1)
    return (~mask).to(torch.uint8).argsort(dim=1, stable=True)


def unpadded(tokens: Tensor, pad: int) -> Tensor:
    """The mask of padded rows: from the first to the last token that is not padding; of a row of padding, the first token.

    >>> unpadded(torch.tensor([[7, 0, 8, 0], [0, 0, 0, 0]]), 0)
    tensor([[ True,  True,  True, False],
            [ True, False, False, False]])
    """
    other = tokens != pad
    before, after = other.long().cumsum(1), other.flip(1).long().cumsum(1).flip(1)
    mask = (before > 0) & (after > 0)
    empty = ~other.any(1)
    return mask | (empty.unsqueeze(1) & (torch.arange(tokens.shape[1], device=tokens.device) == 0))
