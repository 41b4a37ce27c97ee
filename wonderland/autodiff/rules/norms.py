"""Rules of normalisations, losses and pooling, by ATen's own backward kernels where it has them."""

import torch

from wonderland.autodiff.rules.table import linear, nothing, rule

aten = torch.ops.aten


def _layer_norm(needs, g, n):
    if g[0] is None:
        return dict.fromkeys(needs)
    mask = ["input" in needs, "weight" in needs, "bias" in needs]
    found = aten.native_layer_norm_backward(g[0], n.input, n.normalized_shape, n.y[1], n.y[2], n.weight, n.bias, mask)
    return dict(zip(("input", "weight", "bias"), found, strict=True))


def _layer_norm_tangent(t, n):
    axes = list(range(n.input.dim() - len(n.normalized_shape), n.input.dim()))
    # Mean and rate are computed again: as outputs of the kernel they would have no derivative of their own.
    centred = n.input - n.input.mean(axes, keepdim=True)
    rate = (centred.square().mean(axes, keepdim=True) + n.eps).rsqrt()
    normed = centred * rate
    out = None
    if "input" in t:
        moved = t["input"] - t["input"].mean(axes, keepdim=True)
        out = rate * (moved - normed * (normed * moved).mean(axes, keepdim=True))
        out = out if n.weight is None else out * n.weight
    if "weight" in t:
        out = normed * t["weight"] if out is None else out + normed * t["weight"]
    if "bias" in t:
        out = t["bias"].expand(n.input.shape) if out is None else out + t["bias"]
    return [out, None, None]


rule("native_layer_norm", joint=_layer_norm, tangent=_layer_norm_tangent, blind=(1, 2))
rule(
    "native_dropout",
    input=lambda g, n: None if g[0] is None else g[0] * n.y[1] / (1 - n.p) if n.p < 1 else torch.zeros_like(g[0]),
    tangent=lambda t, n: [t["input"] * n.y[1] / (1 - n.p), None],
    blind=(1,),
)


def _max_pool(g, n):
    """Cotangents back at the places of the maxima, which the kernel gives as flat positions."""
    if g[0] is None:
        return None
    places = n.self.dim() - (
        2 if n.y[1].dim() == n.self.dim() and n.self.dim() in (3, 4) and len(n.kernel_size) == 2 else 3
    )
    return _unpool(g[0], n.y[1], n.self.shape, places)


def _unpool(g, index, shape, lead):
    flat = torch.zeros(*shape[:lead], _product(shape[lead:]), dtype=g.dtype)
    return flat.scatter_add(-1, index.flatten(lead), g.flatten(lead)).reshape(shape)


def _product(sizes):
    total = 1
    for size in sizes:
        total *= size
    return total


def _pooled(t, n, lead):
    return [t.flatten(lead).gather(-1, n.y[1].flatten(lead)).reshape(n.y[1].shape), None]


for _name, _axes in (
    ("max_pool2d_with_indices", 2),
    ("max_pool3d_with_indices", 3),
    ("adaptive_max_pool2d", 2),
    ("adaptive_max_pool3d", 3),
    ("fractional_max_pool2d", 2),
    ("fractional_max_pool3d", 3),
):
    rule(
        _name,
        self=lambda g, n, axes=_axes: (
            None if g[0] is None else _unpool(g[0], n.y[1], n.self.shape, n.self.dim() - axes)
        ),
        tangent=lambda t, n, axes=_axes: _pooled(t["self"], n, n.self.dim() - axes),
        blind=(1,),
    )
linear(
    "avg_pool2d",
    self=lambda g, n: aten.avg_pool2d_backward(
        g, n.self, n.kernel_size, n.stride, n.padding, n.ceil_mode, n.count_include_pad, n.divisor_override
    ),
)
linear(
    "avg_pool3d",
    self=lambda g, n: aten.avg_pool3d_backward(
        g, n.self, n.kernel_size, n.stride, n.padding, n.ceil_mode, n.count_include_pad, n.divisor_override
    ),
)
linear(
    "avg_pool2d_backward",
    self=nothing,
    grad_output=lambda g, n: aten.avg_pool2d(
        g, n.kernel_size, n.stride, n.padding, n.ceil_mode, n.count_include_pad, n.divisor_override
    ),
)
linear(
    "avg_pool3d_backward",
    self=nothing,
    grad_output=lambda g, n: aten.avg_pool3d(
        g, n.kernel_size, n.stride, n.padding, n.ceil_mode, n.count_include_pad, n.divisor_override
    ),
)
linear("_adaptive_avg_pool2d", self=lambda g, n: aten._adaptive_avg_pool2d_backward(g, n.self))
linear("_adaptive_avg_pool3d", self=lambda g, n: aten._adaptive_avg_pool3d_backward(g, n.self))
linear(
    "_adaptive_avg_pool2d_backward",
    self=nothing,
    grad_output=lambda g, n: aten._adaptive_avg_pool2d(g, list(n.grad_output.shape[-2:])),
)
linear(
    "_adaptive_avg_pool3d_backward",
    self=nothing,
    grad_output=lambda g, n: aten._adaptive_avg_pool3d(g, list(n.grad_output.shape[-3:])),
)
