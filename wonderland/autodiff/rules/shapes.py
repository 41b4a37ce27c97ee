"""Rules of operators that move elements without changing them: views, permutations, joining, padding, indexing."""

import torch

from wonderland.autodiff.rules.table import conj, linear, no_cotangent, no_derivative, rule, zeros

# Tangents may have other strides than their primals, so they are reshaped, which copies where it must.
rule(
    "view.default _unsafe_view reshape _reshape_alias",
    self=lambda g, n: g.reshape(n.self.shape),
    tangent=lambda t, n: t["self"].reshape(n.y.shape),
)
no_derivative("view.dtype")
linear("expand", self=lambda g, n: g)
linear("permute", self=lambda g, n: g.permute(_inverse(n.dims)))
linear("transpose", self=lambda g, n: g.transpose(n.dim0, n.dim1))
linear("t", self=lambda g, n: g.t())
linear("unsqueeze", self=lambda g, n: g.squeeze(n.dim))
linear("squeeze", self=lambda g, n: g.reshape(n.self.shape))
linear("flip", self=lambda g, n: g.flip(n.dims))
linear("roll", self=lambda g, n: g.roll([-shift for shift in n.shifts], n.dims))
linear("slice", self=lambda g, n: _new_zeros(g, n).slice_scatter(g, n.dim, n.start, n.end, n.step))
linear("select", self=lambda g, n: _new_zeros(g, n).select_scatter(g, n.dim, n.index))
linear("diagonal", self=lambda g, n: _new_zeros(g, n).diagonal_scatter(g, n.offset, n.dim1, n.dim2))
rule("as_strided", self=lambda g, n: _as_strided(g, n), tangent=lambda t, n: _read_window(t["self"], n))
linear("split_with_sizes", self=lambda g, n: torch.cat(_zeros_for_none(g, n), n.dim))
linear("split.Tensor", self=lambda g, n: torch.cat(_zeros_for_none(g, n), n.dim))
linear("unbind", self=lambda g, n: torch.stack(_zeros_for_none(g, n), n.dim))
linear("chunk", self=lambda g, n: torch.cat(_zeros_for_none(g, n), n.dim))
linear("cat", tensors=lambda g, n: _uncat(g, n))
linear("stack", tensors=lambda g, n: list(g.unbind(n.dim)))
linear("repeat", self=lambda g, n: _unrepeat(g, n))
linear("tril", self=lambda g, n: g.tril(n.diagonal))
linear("triu", self=lambda g, n: g.triu(n.diagonal))
linear(
    "slice_scatter",
    self=lambda g, n: g.slice_scatter(zeros(n.src), n.dim, n.start, n.end, n.step),
    src=lambda g, n: torch.ops.aten.slice(g, n.dim, n.start, n.end, n.step),
)
linear(
    "select_scatter",
    self=lambda g, n: g.select_scatter(zeros(n.src), n.dim, n.index),
    src=lambda g, n: g.select(n.dim, n.index),
)
linear(
    "diagonal_scatter",
    self=lambda g, n: g.diagonal_scatter(zeros(n.src), n.offset, n.dim1, n.dim2),
    src=lambda g, n: g.diagonal(n.offset, n.dim1, n.dim2),
)
rule(
    "as_strided_scatter",
    self=lambda g, n: _write_window(g, n, zeros(n.src)),
    src=lambda g, n: _read_window(g, n),
    tangent=lambda t, n: _write_window(_tangent_or_zeros(t, n, "self"), n, _tangent_or_zeros(t, n, "src")),
)
linear("copy", self=no_cotangent, src=lambda g, n: g)
rule(
    "fill.Tensor",
    self=no_cotangent,
    value=lambda g, n: g.sum(),
    tangent=lambda t, n: t["value"].expand(n.y.shape) if "value" in t else None,
)
rule(
    "constant_pad_nd",
    self=lambda g, n: torch.ops.aten.constant_pad_nd(g, [-size for size in n.pad], 0),
    tangent=lambda t, n: torch.ops.aten.constant_pad_nd(t["self"], n.pad, 0),
)
linear("unfold", self=lambda g, n: torch.ops.aten.unfold_backward(g, list(n.self.shape), n.dimension, n.size, n.step))
linear("unfold_backward", grad_in=lambda g, n: g.unfold(n.dim, n.size, n.step))
linear("index_select", self=lambda g, n: _new_zeros(g, n).index_add(n.dim, n.index, g))
linear("gather", self=lambda g, n: _new_zeros(g, n).scatter_add(n.dim, n.index, g))
linear(
    "index.Tensor _unsafe_index.Tensor",
    self=lambda g, n: torch.ops.aten.index_put(_new_zeros(g, n), n.indices, g, True),
)
rule(
    "_unsafe_masked_index",
    self=lambda g, n: torch.ops.aten._unsafe_masked_index_put_accumulate(_new_zeros(g, n), n.mask, n.indices, g),
    tangent=lambda t, n: n.call(self=t["self"], fill=0),
)
linear("take", self=lambda g, n: torch.ops.aten.put(_new_zeros(g, n), n.index, g, True))
linear(
    "masked_select",
    self=lambda g, n: (
        _new_zeros(g, n).expand(torch.broadcast_shapes(n.self.shape, n.mask.shape)).masked_scatter(n.mask, g)
    ),
)
linear("index_add", self=lambda g, n: g, source=lambda g, n: _index_selected(g, n) * conj(n.alpha))
linear("scatter_add", self=lambda g, n: g, src=lambda g, n: zero_padded(g.gather(n.dim, n.index), n.src.shape))
linear(
    "scatter.src",
    self=lambda g, n: g.scatter(n.dim, n.index, 0),
    src=lambda g, n: zero_padded(g.gather(n.dim, n.index), n.src.shape),
)
rule(
    "scatter.value",
    self=lambda g, n: g.scatter(n.dim, n.index, 0),
    tangent=lambda t, n: t["self"].scatter(n.dim, n.index, 0),
)
linear(
    "index_copy", self=lambda g, n: g.index_fill(n.dim, n.index, 0), source=lambda g, n: _index_selected(g, n, n.source)
)
rule(
    "index_fill.int_Scalar",
    self=lambda g, n: g.index_fill(n.dim, n.index, 0),
    tangent=lambda t, n: t["self"].index_fill(n.dim, n.index, 0),
)
linear(
    "index_fill.int_Tensor",
    self=lambda g, n: g.index_fill(n.dim, n.index, 0),
    value=lambda g, n: (g - g.index_fill(n.dim, n.index, 0)).sum(),
)
linear(
    "index_put _unsafe_index_put",
    self=lambda g, n: (
        g if n.accumulate else torch.ops.aten.index_put(g, n.indices, torch.zeros((), dtype=g.dtype), False)
    ),
    values=lambda g, n: torch.ops.aten.index(g, n.indices),
)
linear(
    "put",
    self=lambda g, n: g if n.accumulate else torch.ops.aten.put(g, n.index, zeros(n.source), False),
    source=lambda g, n: g.take(n.index),
)
linear("masked_scatter", self=lambda g, n: g.masked_fill(n.mask, 0), source=lambda g, n: _masked_scatter_source(g, n))
linear(
    "embedding",
    weight=lambda g, n: torch.ops.aten.embedding_dense_backward(
        g, n.indices, n.weight.shape[0], n.padding_idx, n.scale_grad_by_freq
    ),
)
linear("embedding_dense_backward", grad_output=lambda g, n: _embedding_of(g, n))
linear("pixel_shuffle", self=lambda g, n: torch.nn.functional.pixel_unshuffle(g, n.upscale_factor))
linear("pixel_unshuffle", self=lambda g, n: torch.nn.functional.pixel_shuffle(g, n.downscale_factor))
linear("channel_shuffle", self=lambda g, n: torch.channel_shuffle(g, n.self.shape[1] // n.groups))
linear("trace", self=lambda g, n: g * torch.eye(*n.self.shape, dtype=g.dtype))
linear("diag_embed", self=lambda g, n: g.diagonal(n.offset, n.dim1, n.dim2))
linear("rot90", self=lambda g, n: g.rot90(-n.k, n.dims))
linear("col2im", self=lambda g, n: torch.nn.functional.unfold(g, n.kernel_size, n.dilation, n.padding, n.stride))
linear(
    "im2col",
    self=lambda g, n: torch.nn.functional.fold(g, n.self.shape[-2:], n.kernel_size, n.dilation, n.padding, n.stride),
)


def zero_padded(x, shape):
    """A tensor padded with zeros at the end of each axis, up to a shape."""
    if tuple(x.shape) == tuple(shape):
        return x
    sizes = [size for old, new in zip(reversed(x.shape), reversed(shape), strict=True) for size in (0, new - old)]
    return torch.ops.aten.constant_pad_nd(x, sizes)


def _new_zeros(g, n):
    return torch.zeros(n.self.shape, dtype=g.dtype, device=g.device)


def _inverse(dims):
    count = len(dims)
    order = [0] * count
    for place, dim in enumerate(dims):
        order[dim % count] = place
    return order


def _zeros_for_none(g, n):
    """The cotangents of several outputs, zeros instead of None."""
    return [torch.zeros_like(y) if cotangent is None else cotangent for cotangent, y in zip(g, n.y, strict=True)]


def _uncat(g, n):
    if not n.tensors:
        return []
    dim = n.dim % max(g.dim(), 1)
    sizes = [
        0 if tensor.dim() == 1 and tensor.shape[0] == 0 and g.dim() != 1 else tensor.shape[dim] for tensor in n.tensors
    ]
    pieces = torch.split(g, sizes, dim)
    return [piece.reshape(tensor.shape) for piece, tensor in zip(pieces, n.tensors, strict=True)]


def _unrepeat(g, n):
    shape = [1] * (len(n.repeats) - n.self.dim()) + list(n.self.shape)
    split = [size for pair in zip(n.repeats, shape, strict=True) for size in pair]
    if 0 in n.repeats:
        return torch.zeros(n.self.shape, dtype=g.dtype)
    return g.reshape(split).sum(list(range(0, len(split), 2))).reshape(n.self.shape) if split else g


def _tangent_or_zeros(t, n, name):
    return zeros(getattr(n, name)) if t.get(name) is None else t[name]


def _window_indices(n):
    """The flat index, in `self`, of each element of an as_strided view of it."""
    x = n.self
    offset = x.storage_offset() if n.storage_offset is None else n.storage_offset
    ends = [
        start + sum((size - 1) * step for size, step in zip(sizes, steps, strict=True))
        for start, sizes, steps in ((offset, n.size, n.stride), (x.storage_offset(), x.shape, x.stride()))
    ]
    places = torch.arange(max(ends) + 1)
    owned = places.as_strided(x.shape, x.stride(), x.storage_offset()).reshape(-1)
    number = torch.zeros_like(places).index_put((owned,), torch.arange(x.numel()))
    return number[places.as_strided(n.size, n.stride, offset).reshape(-1)]


def _read_window(x, n):
    """The elements of x that the as_strided view covers, whatever the strides of x."""
    return x.reshape(-1)[_window_indices(n)].reshape(n.size)


def _write_window(x, n, source):
    """x with `source` written into the as_strided view."""
    return x.reshape(-1).index_put((_window_indices(n),), source.reshape(-1)).reshape(x.shape)


def _as_strided(g, n):
    """Sums the cotangents of view elements that share a memory location."""
    x = n.self
    offset = x.storage_offset() if n.storage_offset is None else n.storage_offset
    reach = [offset + 1 + sum((size - 1) * step for size, step in zip(n.size, n.stride, strict=True))]
    reach.append(
        x.storage_offset() + 1 + sum((size - 1) * step for size, step in zip(x.shape, x.stride(), strict=True))
    )
    if 0 in n.size or 0 in x.shape:
        return torch.zeros(x.shape, dtype=g.dtype)
    places = torch.arange(max(reach))
    memory = torch.zeros(max(reach), dtype=g.dtype).index_add(
        0, places.as_strided(n.size, n.stride, offset).reshape(-1), g.reshape(-1)
    )
    return memory[places.as_strided(x.shape, x.stride(), x.storage_offset())]


def _index_selected(g, n, like=None):
    like = n.source if like is None else like
    if g.dim() == 0:
        return g.expand(like.shape)
    rows = g.index_select(n.dim, n.index)
    return rows.reshape(like.shape) if rows.shape != like.shape and rows.numel() == like.numel() else rows


def _masked_scatter_source(g, n):
    mask = n.mask.expand(g.shape)
    taken = g.masked_select(mask)
    return torch.cat([taken, torch.zeros(n.source.numel() - taken.numel(), dtype=g.dtype)]).reshape(n.source.shape)


def _embedding_of(g, n):
    indices = n.indices
    rows = torch.nn.functional.embedding(indices, g)
    if n.scale_grad_by_freq:
        counts = torch.bincount(indices.reshape(-1), minlength=n.num_weights)
        rows = rows / counts[indices].unsqueeze(-1)
    return rows.masked_fill((indices == n.padding_idx).unsqueeze(-1), 0) if n.padding_idx >= 0 else rows
