"""Rules of operators that reduce or accumulate along axes."""

import torch

from wonderland.autodiff.rules.table import conj, linear, rule


def _dims(n, name="dim"):
    dims = getattr(n, name, None)
    count = n.self.dim()
    if dims is None or dims == []:
        return list(range(count))
    dims = [dims] if isinstance(dims, int) else dims
    return [dim % max(count, 1) for dim in dims] if count else []


def expand_reduced(g, n, *, keep=None, name="dim"):
    """A tensor of the reduced shape, expanded to the shape of the input."""
    keep = getattr(n, "keepdim", False) if keep is None else keep
    if not keep and g.dim():
        for dim in sorted(_dims(n, name)):
            g = g.unsqueeze(dim)
    return g.expand(n.self.shape)


def _count(n):
    total = 1
    for dim in _dims(n):
        total *= n.self.shape[dim]
    return max(total, 1)


linear("sum", self=lambda g, n: expand_reduced(g, n))
linear("mean", self=lambda g, n: expand_reduced(g, n) / _count(n))
rule(
    "nansum",
    self=lambda g, n: expand_reduced(g, n).masked_fill(n.self.isnan(), 0),
    tangent=lambda t, n: t["self"].masked_fill(n.self.isnan(), 0).sum(_dims(n), keepdim=n.keepdim),
)
linear("cumsum", self=lambda g, n: _reverse_cumsum(g, n.dim))
rule(
    "amax amin",
    self=lambda g, n: expand_reduced(g, n) * _ties(n),
    tangent=lambda t, n: (t["self"] * _ties(n)).sum(_dims(n), keepdim=n.keepdim),
)
rule("max min", self=lambda g, n: expand_reduced(g, n) * _ties(n), tangent=lambda t, n: (t["self"] * _ties(n)).sum())
rule(
    "median nanmedian",
    self=lambda g, n: expand_reduced(g, n) * _ties(n),
    tangent=lambda t, n: (t["self"] * _ties(n)).sum(),
)
for _name in (
    "max.dim",
    "min.dim",
    "median.dim",
    "nanmedian.dim",
    "mode",
    "kthvalue",
    "cummax",
    "cummin",
    "sort",
    "sort.stable",
    "topk",
):
    rule(
        _name,
        self=lambda g, n: _picked_cotangent(g[0], n),
        tangent=lambda t, n: _picked_tangent(t["self"], n),
        nondifferentiable=(1,),
    )
rule("prod.default", self=lambda g, n: g * _products_of_others(n.self.reshape(-1), 0).conj().reshape(n.self.shape))
rule("prod.dim_int", self=lambda g, n: expand_reduced(g, n) * conj(_products_of_others(n.self, n.dim)))
rule("cumprod", self=lambda g, n: _cumprod(g, n))
rule("logcumsumexp", self=lambda g, n: _logcumsumexp(g, n))
rule(
    "logsumexp",
    self=lambda g, n: expand_reduced(g, n) * conj(torch.exp(n.self - _finite_or_zero(expand_reduced(n.y, n)))),
)
rule(
    "_softmax _safe_softmax",
    self=lambda g, n: torch.ops.aten._softmax_backward_data(g, n.y, n.dim, n.self.dtype),
    tangent=lambda t, n: _softmax(t["self"], n),
)
rule(
    "_log_softmax",
    self=lambda g, n: torch.ops.aten._log_softmax_backward_data(g, n.y, n.dim, n.self.dtype),
    tangent=lambda t, n: t["self"] - (t["self"] * n.y.exp()).sum(n.dim, keepdim=True),
)
rule(
    "_softmax_backward_data",
    grad_output=lambda g, n: torch.ops.aten._softmax_backward_data(g, n.output, n.dim, n.input_dtype),
    output=lambda g, n: (
        g * n.grad_output
        - g * (n.output * n.grad_output).sum(n.dim, keepdim=True)
        - n.grad_output * (g * n.output).sum(n.dim, keepdim=True)
    ),
)
rule(
    "_log_softmax_backward_data",
    grad_output=lambda g, n: g - (g * n.output.exp()).sum(n.dim, keepdim=True),
    output=lambda g, n: -g * n.output.exp() * n.grad_output.sum(n.dim, keepdim=True),
)
rule(
    "var.correction",
    self=lambda g, n: expand_reduced(g, n) * _centred(n) * 2 / _degrees_of_freedom(n),
    tangent=lambda t, n: _tangent_sum(t["self"], _centred(n) * 2 / _degrees_of_freedom(n), n),
)
rule(
    "std.correction",
    self=lambda g, n: _std_cotangent(g, n),
    tangent=lambda t, n: _zero_safe(_tangent_sum(t["self"], _centred(n) / _degrees_of_freedom(n), n), n.y),
)
rule("var_mean.correction", self=lambda g, n: _with_mean(g, n, False))
rule("std_mean.correction", self=lambda g, n: _with_mean(g, n, True))
rule("linalg_vector_norm", self=lambda g, n: _norm(g, n), tangent=lambda t, n: _norm_tangent(t["self"], n))
rule("_cdist_forward", x1=lambda g, n: _cdist(g, n)[0], x2=lambda g, n: _cdist(g, n)[1])
rule("_pdist_forward", self=lambda g, n: _pdist(g, n))


def _reverse_cumsum(g, dim):
    """Sums from each position to the end."""
    return g if g.dim() == 0 else g.flip(dim).cumsum(dim).flip(dim)


def _ties(n):
    hit = n.self == expand_reduced(n.y, n)
    if n.y.is_floating_point():
        hit = hit | (n.self.isnan() & expand_reduced(n.y, n).isnan())
    hit = hit.to(n.self.dtype)
    return hit / hit.sum(_dims(n), keepdim=True) if n.self.dim() else hit


def _picked_cotangent(g, n):
    """Cotangents at the positions that were picked."""
    if g is None:
        return None
    index = n.y[1]
    dim = getattr(n, "dim", -1)
    dim = -1 if dim is None else dim
    if n.self.dim() == 0:
        return g
    if g.dim() < n.self.dim():
        g, index = g.unsqueeze(dim), index.unsqueeze(dim)
    return torch.zeros(n.self.shape, dtype=g.dtype).scatter_add(dim, index, g)


def _picked_tangent(t, n):
    index = n.y[1]
    dim = getattr(n, "dim", -1)
    if t.dim() == 0:
        return [t, None]
    short = index.dim() < t.dim()
    picked = t.gather(dim, index.unsqueeze(dim) if short else index)
    return [picked.squeeze(dim) if short else picked, None]


def _products_of_others(x, dim):
    """For each element the product of the others along an axis; exact with zeros."""
    if x.dim() == 0:
        return torch.ones_like(x)
    ones = torch.ones_like(x.narrow(dim, 0, min(1, x.shape[dim])))
    if x.shape[dim] == 0:
        return torch.ones_like(x)
    size = x.shape[dim]
    before = torch.cat([ones, x.narrow(dim, 0, size - 1)], dim).cumprod(dim)
    after = torch.cat([x.narrow(dim, 1, size - 1), ones], dim).flip(dim).cumprod(dim).flip(dim)
    return before * after


def _cumprod(g, n):
    """The matrix of derivatives of each product by each factor, times g; exact with zeros."""
    x, dim = n.self, n.dim
    if x.dim() == 0:
        return g
    size = x.shape[dim]
    if size == 0:
        return torch.zeros_like(x)
    x, g = x.movedim(dim, -1), g.movedim(dim, -1)
    square = x.unsqueeze(-2).expand(*x.shape[:-1], size, size)
    eye = torch.eye(size, dtype=torch.bool)
    without = torch.where(eye, torch.ones_like(square), square).cumprod(-1)  # row i: products without factor i
    later = torch.ones(size, size, dtype=torch.bool).triu()
    table = torch.where(later, without, torch.zeros_like(without))
    return (conj(table) @ g.unsqueeze(-1)).squeeze(-1).movedim(-1, dim)


def _logcumsumexp(g, n):
    r"""With :math:`y_i` the outputs, :math:`e^{x_j - y_j} s_j` where :math:`s_j = g_j + e^{y_j - y_{j+1}} s_{j+1}`: no overflow."""
    if n.self.dim() == 0:
        return g
    x, y, g = (tensor.movedim(n.dim, -1) for tensor in (n.self, n.y, g))
    floor = _finite_or_zero(y)
    decay = conj(torch.exp(y[..., :-1] - floor[..., 1:]))
    cotangent = conj(torch.exp(x - floor)) * _recurrence(g, decay)
    return cotangent.movedim(-1, n.dim)


def _recurrence(g, decay):
    """s[j] = g[j] + decay[j] s[j + 1] along the last axis, by a parallel scan with doubling strides."""
    step, size = 1, g.shape[-1]
    while step < size:
        g = torch.cat([g[..., :-step] + decay * g[..., step:], g[..., -step:]], -1)
        decay = decay[..., :-step] * decay[..., step:]
        step *= 2
    return g


def _finite_or_zero(y):
    return y if y.is_complex() else torch.where(y.isinf() & (y < 0), torch.zeros_like(y), y)


def _softmax(t, n):
    moved = t * n.y
    return moved - n.y * moved.sum(n.dim, keepdim=True)


def _centred(n):
    return n.self - (n.self.mean(_dims(n), keepdim=True) if n.self.dim() else n.self)


def _degrees_of_freedom(n):
    correction = 1 if n.correction is None else n.correction
    return max(_count(n) - correction, 0) or float("nan")


def _tangent_sum(t, cotangent, n):
    moved = t * cotangent
    if moved.is_complex():
        moved = (t.conj() * cotangent).real
    return moved.sum(_dims(n), keepdim=n.keepdim) if n.self.dim() else moved


def _std_cotangent(g, n):
    ratio = torch.where(n.y == 0, torch.zeros_like(n.y), g / torch.where(n.y == 0, torch.ones_like(n.y), n.y))
    return expand_reduced(ratio, n) * _centred(n) / _degrees_of_freedom(n)


def _zero_safe(moved, y):
    return torch.where(y == 0, torch.zeros_like(y), moved / torch.where(y == 0, torch.ones_like(y), y))


def _with_mean(g, n, root):
    total = None
    if g[0] is not None:
        cotangent = g[0]
        if root:
            y = n.y[0]
            cotangent = torch.where(
                y == 0, torch.zeros_like(y), cotangent / (2 * torch.where(y == 0, torch.ones_like(y), y))
            )
        total = expand_reduced(cotangent, n) * _centred(n) * 2 / _degrees_of_freedom(n)
    if g[1] is not None:
        mean = expand_reduced(g[1], n) / _count(n)
        total = mean if total is None else total + mean
    return total


def _norm_derivative(n):
    """The derivative of a vector norm by each element, 0 where the norm is 0."""
    x, y, p = n.self, expand_reduced(n.y, n), float(n.ord)
    if p == 0:
        return torch.zeros_like(x)
    if p == 1:
        return x.sgn()
    if p == 2:
        # At zero the derivative is 0 by convention; the second derivative does not exist and is NaN.
        return (x / y).masked_fill(y == 0, 0)
    if p in (float("inf"), float("-inf")):
        size = x.abs()
        hit = ((size == y) | (size.isnan() & y.isnan())).to(y.dtype)
        return x.sgn() * hit / (hit.sum(_dims(n), keepdim=True) if x.dim() else hit)
    size = x.abs()
    if p < 1:
        return x.sgn() * size.pow(p - 1).masked_fill(size == 0, 0) * y.pow(1 - p)
    return (x.sgn() * (size / y).pow(p - 1)).masked_fill(y == 0, 0)


def _norm(g, n):
    return expand_reduced(g, n) * _norm_derivative(n)


def _norm_tangent(t, n):
    moved = conj(_norm_derivative(n)) * t
    moved = moved.real if moved.is_complex() else moved
    return moved.sum(_dims(n), keepdim=n.keepdim) if n.self.dim() else moved


def _cdist(g, n):
    gap = n.x1.unsqueeze(-2) - n.x2.unsqueeze(-3)
    cotangent = g.unsqueeze(-1) * _distance_derivative(gap, n.y.unsqueeze(-1), float(n.p))
    return cotangent.sum(-2), -cotangent.sum(-3)


def _distance_derivative(gap, y, p):
    safe = torch.where(y == 0, torch.ones_like(y), y)
    if p == 0:
        return torch.zeros_like(gap)
    if p == 1:
        return gap.sgn()
    if p == float("inf"):
        return gap.sgn() * (gap.abs() == y)
    if p == 2:
        return torch.where(y == 0, torch.zeros_like(gap), gap / safe)
    size = gap.abs()
    power = torch.where(
        size == 0, torch.zeros_like(size), torch.where(size == 0, torch.ones_like(size), size).pow(p - 1)
    )
    return torch.where(y == 0, torch.zeros_like(gap), gap.sgn() * power / safe.pow(p - 1))


def _pdist(g, n):
    count = n.self.shape[0]
    rows, columns = torch.triu_indices(count, count, 1)
    gap = n.self[rows] - n.self[columns]
    cotangent = g.unsqueeze(-1) * _distance_derivative(gap, n.y.unsqueeze(-1), float(n.p))
    return torch.zeros_like(n.self).index_add(0, rows, cotangent).index_add(0, columns, -cotangent)
