"""Rules of reductions by index: scatter_reduce, index_reduce, segment_reduce, embedding bags, packed sequences."""

import torch

from wonderland.autodiff.rules.shapes import zero_padded
from wonderland.autodiff.rules.table import from_program, no_rule, rule

aten = torch.ops.aten


def _narrowed(x, shape):
    for axis, size in enumerate(shape):
        x = x.narrow(axis, 0, size)
    return x


def _scatter_reduce(needs, g, n):
    src = _narrowed(n.src, n.index.shape)
    to_self, to_src = _RULES[n.reduce](g, n, src)
    if not n.include_self:
        # Where something was scattered the old element is overwritten, elsewhere it stays.
        to_self = torch.where(_is_target(n), torch.zeros_like(g), g)
    return {"self": to_self, "src": zero_padded(to_src, n.src.shape)}


def _is_target(n):
    return torch.zeros_like(n.self, dtype=torch.bool).scatter(n.dim, n.index, True)


def _sum(g, n, src):
    return g, g.gather(n.dim, n.index)


def _mean(g, n, src):
    start = torch.ones_like(n.self) if n.include_self else torch.zeros_like(n.self)
    count = start.scatter_add(n.dim, n.index, torch.ones_like(src)).clamp(min=1)
    return g / count, (g / count).gather(n.dim, n.index)


def _max_or_min(g, n, src):
    """Equal elements share the cotangent."""
    hit_self = n.self == n.y
    hit_self = (hit_self if n.include_self else hit_self & ~_is_target(n)).to(g.dtype)
    hit_src = (src == n.y.gather(n.dim, n.index)).to(g.dtype)
    share = g / hit_self.scatter_add(n.dim, n.index, hit_src).clamp(min=1)
    return hit_self * share, hit_src * share.gather(n.dim, n.index)


def _prod(g, n, src):
    """Each element's cotangent is multiplied by the product of the others with its index; exact with zeros."""
    others = _products_of_others(src, n.index, n.dim)
    if n.include_self:
        others = others * n.self.gather(n.dim, n.index)
    ones = torch.ones_like(n.self)
    whole = ones.scatter_reduce(n.dim, n.index, src, "prod")
    return g * whole, g.gather(n.dim, n.index) * others


def _products_of_others(x, index, dim):
    if x.dim() == 0:
        return torch.ones_like(x)
    x, index = x.movedim(dim, -1), index.movedim(dim, -1)
    same_index = index.unsqueeze(-1) == index.unsqueeze(-2)
    same_index = same_index & ~torch.eye(index.shape[-1], dtype=torch.bool, device=index.device)
    table = x.unsqueeze(-2).expand(*x.shape, x.shape[-1])
    return torch.where(same_index, table, torch.ones_like(table)).prod(-1).movedim(-1, dim)


_RULES = {"sum": _sum, "mean": _mean, "amax": _max_or_min, "amin": _max_or_min, "prod": _prod}
rule("scatter_reduce", joint=_scatter_reduce)


def _index_reduce(n):
    source = n.source if n.source.dim() else n.source.reshape([1] * n.self.dim())
    index = n.index.reshape(-1)
    if n.self.dim():
        index = index.reshape([-1 if axis == n.dim % n.self.dim() else 1 for axis in range(n.self.dim())])
    index = index.expand(source.shape) if n.self.dim() else index.reshape(())
    return n.self.scatter_reduce(n.dim, index, source, n.reduce, include_self=n.include_self)


from_program("index_reduce", _index_reduce)


def _segment_reduce(n):
    """Segments are runs along an axis: an element belongs to the first segment that ends after it."""
    axis, data = n.axis, n.data
    ends = n.lengths.cumsum(-1) if n.lengths is not None else n.offsets[..., 1:]
    index = (ends.unsqueeze(-1) <= torch.arange(data.shape[axis])).sum(-2)
    index = index.reshape(*index.shape, *[1] * (data.dim() - index.dim())).expand(data.shape)
    # Elements after the last end go to an additional segment, which is dropped.
    shape = [size + int(k == axis) for k, size in enumerate(n.y.shape)]
    start = torch.full(shape, 0.0 if n.initial is None else n.initial, dtype=data.dtype)
    reduction = {"max": "amax", "min": "amin"}.get(n.reduce, str(n.reduce))
    if reduction == "mean":
        count = torch.zeros(shape, dtype=data.dtype).scatter_add(axis, index, torch.ones_like(data))
        out = start.scatter_reduce(axis, index, data, "sum") / count
    else:
        out = start.scatter_reduce(axis, index, data, reduction, include_self=n.initial is not None)
    return out.narrow(axis, 0, n.y.shape[axis])


from_program("segment_reduce", _segment_reduce)


def _bag(n):
    """Sum, mean or maximum over the embedding rows of each bag."""
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
    # The indices of the maxima have no derivative; the maxima are gathered from the table.
    outputs = aten._embedding_bag(
        n.weight.detach(), n.indices, n.offsets, False, 2, False, None, n.include_last_offset, n.padding_idx
    )
    row, filled = outputs[3], (outputs[2] > 0).unsqueeze(-1)
    picked = n.weight.gather(0, row.clamp(min=0).expand(n.y[0].shape))
    return torch.where(filled, picked, torch.zeros_like(picked))


from_program("_embedding_bag _embedding_bag_forward_only", _bag, nondifferentiable=(1, 2, 3))


def _pack_sequence(n):
    """Sequences sorted by length, longest first: for each time step, the rows that are long enough."""
    counts = n.y[1]
    times = torch.repeat_interleave(torch.arange(len(counts)), counts)
    rows = torch.cat([torch.arange(int(count)) for count in counts])
    return (n.input[rows, times] if n.batch_first else n.input[times, rows]), None


from_program("_pack_padded_sequence", _pack_sequence, nondifferentiable=(1,))
