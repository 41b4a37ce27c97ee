"""Token shift: each token mixed with the one before it, by two or three vectors of shares."""

import torch
from jaxtyping import Float
from torch import Tensor


def blend(
    x: Float[Tensor, "b t d"], last: Float[Tensor, "b 1 d"] | None, *shares: Float[Tensor, " d"]
) -> tuple[Tensor, ...]:
    r"""Tokens mixed with their predecessors, once for each vector of shares.

    .. math:: z^k_i = \mu^k \odot x_i + (1 - \mu^k) \odot x_{i-1}

    `last` stands before the first token, or 0. What neighbours differ by is computed once. Book: Alice 13.4.2.

    >>> half = torch.full((1,), 0.5)
    >>> blend(torch.tensor([[[2.0], [4.0]]]), None, half, torch.ones(1))[0].flatten()
    tensor([1., 3.])
    """
    before = torch.zeros_like(x[:, :1]) if last is None else last
    before = before if x.shape[1] == 1 else torch.cat([before, x[:, :-1]], 1)
    change = x - before
    return tuple(torch.addcmul(before, change, share) for share in shares)
