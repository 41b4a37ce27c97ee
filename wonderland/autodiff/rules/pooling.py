"""Rules of max and average pooling."""

import math

import torch

from wonderland.autodiff.rules.table import linear, no_cotangent, rule

aten = torch.ops.aten


def _unpool(g, index, shape, lead):
    """Cotangents at the positions of the maxima, which the kernel gives as flat indices after the `lead` axes."""
    flat = torch.zeros(*shape[:lead], math.prod(shape[lead:]), dtype=g.dtype)
    return flat.scatter_add(-1, index.flatten(lead), g.flatten(lead)).reshape(shape)


def _pick_maxima(t, n, lead):
    """Tangents at the positions of the maxima."""
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
        tangent=lambda t, n, axes=_axes: _pick_maxima(t["self"], n, n.self.dim() - axes),
        nondifferentiable=(1,),
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
    self=no_cotangent,
    grad_output=lambda g, n: aten.avg_pool2d(
        g, n.kernel_size, n.stride, n.padding, n.ceil_mode, n.count_include_pad, n.divisor_override
    ),
)
linear(
    "avg_pool3d_backward",
    self=no_cotangent,
    grad_output=lambda g, n: aten.avg_pool3d(
        g, n.kernel_size, n.stride, n.padding, n.ceil_mode, n.count_include_pad, n.divisor_override
    ),
)
linear("_adaptive_avg_pool2d", self=lambda g, n: aten._adaptive_avg_pool2d_backward(g, n.self))
linear("_adaptive_avg_pool3d", self=lambda g, n: aten._adaptive_avg_pool3d_backward(g, n.self))
linear(
    "_adaptive_avg_pool2d_backward",
    self=no_cotangent,
    grad_output=lambda g, n: aten._adaptive_avg_pool2d(g, list(n.grad_output.shape[-2:])),
)
linear(
    "_adaptive_avg_pool3d_backward",
    self=no_cotangent,
    grad_output=lambda g, n: aten._adaptive_avg_pool3d(g, list(n.grad_output.shape[-3:])),
)
