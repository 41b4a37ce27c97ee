"""The scan of a state space with one decay for each head: state space duality, in chunks of matrix products."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops import shapes

CHUNK = 64

Heads = Float[Tensor, "b t h p"]
Maps = Float[Tensor, "b t g n"]
States = Float[Tensor, "b h p n"]


def ssd_scan(
    x: Heads,
    delta: Float[Tensor, "b t h"],
    a: Float[Tensor, " h"],
    b: Maps,
    c: Maps,
    *,
    skip: Float[Tensor, " h"] | None = None,
    state: States | None = None,
    lengths: Int[Tensor, " b"] | None = None,
    chunk: int = CHUNK,
) -> tuple[Heads, States]:
    r"""Outputs at every position and the state after the last, in time and memory linear in t.

    .. math::
        S_i = e^{\Delta_i a} S_{i-1} + \Delta_i x_i B_i^\top, \qquad y_i = S_i C_i + D x_i

    for each head, with a state of p rows and n columns; g groups of heads share B and C. `delta` are the steps themselves,
    0 or more. Beyond a row's length nothing is read, the output is 0 and the state stays.

    Unrolled within a chunk this is attention with decaying weights,
    :math:`y_i = \sum_{j \le i} (C_i^\top B_j)\, e^{a \sum_{k=j+1}^{i} \Delta_k} \Delta_j x_j`, so a chunk is three matrix
    products; only one state for each chunk is computed one after another. `reference` is the first equation.
    Paper: Dao and Gu, 2024.

    >>> one = torch.ones(1, 3, 1, 1)
    >>> ssd_scan(one, one[..., 0], torch.zeros(1), one, one)[0].flatten()
    tensor([1., 2., 3.])
    """
    sizes = _checked(x, delta, a, b, c, skip, state)
    shapes.whole("ssd_scan", chunk=chunk)
    lengths = shapes.counted("ssd_scan", lengths, sizes["b"], sizes["t"])
    x, delta, b, c = _within(x, delta, b, c, lengths)
    last = x.new_zeros(sizes["b"], sizes["h"], sizes["p"], sizes["n"]) if state is None else state
    pieces = []
    for xs, steps, bs, cs in zip(
        x.split(chunk, 1), delta.split(chunk, 1), b.split(chunk, 1), c.split(chunk, 1), strict=True
    ):
        y, last = _chunk(xs, steps, bs, cs, a, last)
        pieces.append(y)
    y = pieces[0] if len(pieces) == 1 else torch.cat(pieces, 1)
    return (y if skip is None else y + skip[:, None] * x), last


def reference(
    x: Tensor,
    delta: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    *,
    skip: Tensor | None = None,
    state: Tensor | None = None,
    lengths: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The equation, one token after the other."""
    x, delta, b, c = _within(x, delta, b, c, lengths)
    rows, _, heads, width = x.shape
    share = heads // b.shape[2]
    s = x.new_zeros(rows, heads, width, b.shape[3]) if state is None else state
    outputs = []
    for i in range(x.shape[1]):
        written, read = (maps[:, i].repeat_interleave(share, 1).unsqueeze(2) for maps in (b, c))
        step = delta[:, i, :, None, None]
        s = torch.exp(step * a[:, None, None]) * s + step * x[:, i].unsqueeze(3) * written
        y = (s * read).sum(3)
        outputs.append(y if skip is None else y + skip[:, None] * x[:, i])
    return torch.stack(outputs, 1), s


def _chunk(x: Tensor, delta: Tensor, b: Tensor, c: Tensor, a: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """The outputs of a chunk, and the state after it."""
    rows, t, heads, width = x.shape
    groups, n = b.shape[2:]
    share = heads // groups
    # Heads first, and those of a group side by side: (b, g, share, t, ...).
    decay = (delta * a).transpose(1, 2).cumsum(2).view(rows, groups, share, t)
    weighed = (delta.unsqueeze(3) * x).transpose(1, 2).view(rows, groups, share, t, width)
    b, c = b.transpose(1, 2), c.transpose(1, 2)
    later = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
    # Hidden before the exponential: a sum of decays that goes backwards in time would overflow.
    passed = (decay.unsqueeze(4) - decay.unsqueeze(3)).masked_fill(later, -torch.inf).exp()
    within = ((c @ b.mT).unsqueeze(2) * passed) @ weighed
    before = state.view(rows, groups, share, width, n)
    y = within + decay.exp().unsqueeze(4) * (c.unsqueeze(2) @ before.mT)
    left = (decay[..., -1:] - decay).exp().unsqueeze(4)
    after = decay[..., -1].exp()[..., None, None] * before + (left * weighed).mT @ b.unsqueeze(2)
    return y.flatten(1, 2).transpose(1, 2), after.view(rows, heads, width, n)


def _within(x: Tensor, delta: Tensor, b: Tensor, c: Tensor, lengths: Tensor | None) -> tuple[Tensor, ...]:
    """Zeros beyond the length of each row: a step of 0 leaves the state as it is."""
    if lengths is None:
        return x, delta, b, c
    beyond = torch.arange(x.shape[1], device=x.device) >= lengths.unsqueeze(1)
    return tuple(y.masked_fill(beyond.view(*beyond.shape, *(1,) * (y.dim() - 2)), 0) for y in (x, delta, b, c))


def _checked(x: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor, skip: Tensor | None, state: Tensor | None):
    sizes = shapes.agree(
        "ssd_scan", x=(x, "b t h p"), delta=(delta, "b t h"), a=(a, "h"), b=(b, "b t g n"), c=(c, "b t g n"),
        skip=(skip, "h ?"), state=(state, "b h p n ?"),
    )  # fmt: skip
    shapes.real("ssd_scan", x=x, delta=delta, a=a, b=b, c=c, skip=skip, state=state)
    if sizes["h"] % sizes["g"]:
        raise WonderlandError(
            f"ssd_scan takes heads in groups that share B and C: {sizes['h']} heads cannot share {sizes['g']} of them."
        )
    return sizes
