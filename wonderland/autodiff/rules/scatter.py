"""Rules of reductions into places named by an index: scattered, segmented, and bags of embeddings."""

import torch

from wonderland.autodiff.rules.shapes import grown
from wonderland.autodiff.rules.table import no_rule, rule, written

aten = torch.ops.aten


def _cut(x, shape):
    for axis, size in enumerate(shape):
        x = x.narrow(axis, 0, size)
    return x


def _scatter_reduce(needs, g, n):
    src = _cut(n.src, n.index.shape)
    to_self, to_src = _SLOPES[n.reduce](g, n, src)
    if not n.include_self:
        # Where something arrived the old number is forgotten, elsewhere it stays.
        to_self = torch.where(_arrived(n), torch.zeros_like(g), g)
    return {"self": to_self, "src": grown(to_src, n.src.shape)}


def _arrived(n):
    return torch.zeros_like(n.self, dtype=torch.bool).scatter(n.dim, n.index, True)


def _sum(g, n, src):
    return g, g.gather(n.dim, n.index)


def _mean(g, n, src):
    start = torch.ones_like(n.self) if n.include_self else torch.zeros_like(n.self)
    count = start.scatter_add(n.dim, n.index, torch.ones_like(src)).clamp(min=1)
    return g / count, (g / count).gather(n.dim, n.index)


def _extreme(g, n, src):
    """Equal numbers share."""
    hit_self = n.self == n.y
    hit_self = (hit_self if n.include_self else hit_self & ~_arrived(n)).to(g.dtype)
    hit_src = (src == n.y.gather(n.dim, n.index)).to(g.dtype)
    share = g / hit_self.scatter_add(n.dim, n.index, hit_src).clamp(min=1)
    return hit_self * share, hit_src * share.gather(n.dim, n.index)


def _prod(g, n, src):
    """For each number the product of the others that went to its place, zeros among them or not."""
    others = _others(src, n.index, n.dim)
    if n.include_self:
        others = others * n.self.gather(n.dim, n.index)
    ones = torch.ones_like(n.self)
    whole = ones.scatter_reduce(n.dim, n.index, src, "prod")
    return g * whole, g.gather(n.dim, n.index) * others


def _others(x, index, dim):
    if x.dim() == 0:
        return torch.ones_like(x)
    x, index = x.movedim(dim, -1), index.movedim(dim, -1)
    mates = index.unsqueeze(-1) == index.unsqueeze(-2)
    mates = mates & ~torch.eye(index.shape[-1], dtype=torch.bool, device=index.device)
    table = x.unsqueeze(-2).expand(*x.shape, x.shape[-1])
    return torch.where(mates, table, torch.ones_like(table)).prod(-1).movedim(-1, dim)


_SLOPES = {"sum": _sum, "mean": _mean, "amax": _extreme, "amin": _extreme, "prod": _prod}
rule("scatter_reduce", joint=_scatter_reduce)


def _index_reduce(n):
    source = n.source if n.source.dim() else n.source.reshape([1] * n.self.dim())
    index = n.index.reshape(-1)
    if n.self.dim():
        index = index.reshape([-1 if axis == n.dim % n.self.dim() else 1 for axis in range(n.self.dim())])
    index = index.expand(source.shape) if n.self.dim() else index.reshape(())
    return n.self.scatter_reduce(n.dim, index, source, n.reduce, include_self=n.include_self)


written("index_reduce", _index_reduce)


def _segment_reduce(n):
    """Segments are runs along an axis: each place goes to the segment whose end is the first after it."""
    axis, data = n.axis, n.data
    ends = n.lengths.cumsum(-1) if n.lengths is not None else n.offsets[..., 1:]
    index = (ends.unsqueeze(-1) <= torch.arange(data.shape[axis])).sum(-2)
    index = index.reshape(*index.shape, *[1] * (data.dim() - index.dim())).expand(data.shape)
    # What lies behind the last end goes to a segment of its own, which is cut off.
    shape = [size + int(k == axis) for k, size in enumerate(n.y.shape)]
    start = torch.full(shape, 0.0 if n.initial is None else n.initial, dtype=data.dtype)
    how = {"max": "amax", "min": "amin"}.get(n.reduce, str(n.reduce))
    if how == "mean":
        count = torch.zeros(shape, dtype=data.dtype).scatter_add(axis, index, torch.ones_like(data))
        out = start.scatter_reduce(axis, index, data, "sum") / count
    else:
        out = start.scatter_reduce(axis, index, data, how, include_self=n.initial is not None)
    return out.narrow(axis, 0, n.y.shape[axis])


written("segment_reduce", _segment_reduce)


def _bag(n):
    """Rows of a table, joined in bags: their sum or mean, or the largest number of each column."""
    if n.scale_grad_by_freq:
        raise no_rule(n.op_, "reverse (scale_grad_by_freq)")
    weight, indices = n.weight, n.indices
    bags = n.y[0].shape[0]
    if n.mode == 2:
        return _bag_max(n), None, None, None
    rows = torch.nn.functional.embedding(indices, weight)
    used = (indices != n.padding_idx).to(weight.dtype)
    factors = used if n.per_sample_weights is None else used * n.per_sample_weights
    bag = torch.searchsorted(n.offsets[:bags], torch.arange(len(indices)).to(n.offsets.dtype), right=True) - 1
    out = torch.zeros(n.y[0].shape, dtype=weight.dtype).index_add(0, bag, rows * factors.unsqueeze(-1))
    if n.mode == 1:
        count = torch.zeros(bags, dtype=weight.dtype).index_add(0, bag, used).clamp(min=1)
        out = out / count.unsqueeze(-1)
    return out, None, None, None


def _bag_max(n):
    # Which row is largest has no derivative; the numbers are then picked from the table itself.
    found = aten._embedding_bag(
        n.weight.detach(), n.indices, n.offsets, False, 2, False, None, n.include_last_offset, n.padding_idx
    )
    row, filled = found[3], (found[2] > 0).unsqueeze(-1)
    picked = n.weight.gather(0, row.clamp(min=0).expand(n.y[0].shape))
    return torch.where(filled, picked, torch.zeros_like(picked))


written("_embedding_bag _embedding_bag_forward_only", _bag, blind=(1, 2, 3))


def _packed(n):
    """Rows of unequal lengths, the longest first, one moment after the other: of each moment those rows that reach it."""
    counts = n.y[1]
    moments = torch.repeat_interleave(torch.arange(len(counts)), counts)
    rows = torch.cat([torch.arange(int(count)) for count in counts])
    return (n.input[rows, moments] if n.batch_first else n.input[moments, rows]), None


written("_pack_padded_sequence", _packed, blind=(1,))
