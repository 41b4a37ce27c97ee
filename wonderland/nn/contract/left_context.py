"""The left context of a piece of a sequence: the few real tokens before it, row by row."""

import torch
from torch import Tensor

from wonderland.nn.contract.mixer import lengths
from wonderland.ops.over_time import is_exporting


def prepend_context(x: Tensor, context: Tensor | None, reach: int) -> Tensor:
    """A piece (b, t, d) behind the `reach` tokens before it: (b, reach + t, d); zeros at the beginning of a sequence."""
    return torch.cat([x.new_zeros(x.shape[0], reach, x.shape[2]) if context is None else context, x], 1)


def last_context(full: Tensor, mask: Tensor | None, reach: int) -> Tensor:
    """The last `reach` real tokens of what `prepend_context` returned: the left context of the next piece."""
    t = full.shape[1] - reach
    if mask is None:
        # A view of its end would keep a long piece in memory.
        return full[:, t:].clone() if is_exporting() or t > reach else full[:, t:]
    at = lengths(mask).unsqueeze(1) + torch.arange(reach, device=full.device)
    return full.gather(1, at.unsqueeze(-1).expand(-1, -1, full.shape[2]))


def next_context(x: Tensor, context: Tensor | None, mask: Tensor | None, reach: int) -> Tensor:
    """The left context of the next piece, for mixers that do not need a piece and its context in one tensor."""
    if (
        mask is None and not is_exporting() and x.shape[1] >= reach
    ):  # the length of a piece is free in exported programs
        return x[:, x.shape[1] - reach :].clone()
    return last_context(prepend_context(x, context, reach), mask, reach)
