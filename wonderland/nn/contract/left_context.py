"""The recent past of a sequence: the few real tokens before each piece, row by row."""

import torch
from torch import Tensor

from wonderland.nn.contract.mixer import lengths


def precede(x: Tensor, past: Tensor | None, reach: int) -> Tensor:
    """A piece (b, t, d) with the `reach` tokens before it in front: (b, reach + t, d); zeros at the beginning."""
    return torch.cat([x.new_zeros(x.shape[0], reach, x.shape[2]) if past is None else past, x], 1)


def recent(full: Tensor, mask: Tensor | None, reach: int) -> Tensor:
    """The last `reach` real tokens of what `precede` made: the past of the next piece."""
    t = full.shape[1] - reach
    if mask is None:
        # A long piece would otherwise be kept alive by the view of its end.
        return full[:, t:] if t <= reach else full[:, t:].clone()
    at = lengths(mask).unsqueeze(1) + torch.arange(reach, device=full.device)
    return full.gather(1, at.unsqueeze(-1).expand(-1, -1, full.shape[2]))


def latest(x: Tensor, past: Tensor | None, mask: Tensor | None, reach: int) -> Tensor:
    """The last `reach` real tokens of a piece and of the past before it, for mixers that never lay the two side by side."""
    if mask is None and x.shape[1] >= reach:
        return x[:, x.shape[1] - reach :].clone()
    return recent(precede(x, past, reach), mask, reach)
