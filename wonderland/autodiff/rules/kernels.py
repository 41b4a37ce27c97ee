"""Rules of ATen's own backward kernels, so that what they give can be differentiated again, and of what calls them."""

import math

import torch

from wonderland.autodiff.rules.table import conj, linear, nothing, rule

aten = torch.ops.aten


def written_out(names, function):
    """A rule for a kernel that equals a function of torch operations: derivatives are those of the function.

    `function` takes the call and the named arguments. What else the kernel reads (saved means, outputs) is taken as computed
    from these arguments, so it gets no cotangent of its own.
    """

    def joint(needs, g, n):
        from wonderland.autodiff.transforms import vjp

        chosen = [name for name in names if name in needs]
        fixed = {name: getattr(n, name) for name in names}
        out, pullback = vjp(
            lambda *given: function(n, **{**fixed, **dict(zip(chosen, given, strict=True))}),
            *(getattr(n, name) for name in chosen),
        )
        single = isinstance(out, torch.Tensor)
        slopes = [g] if single else list(g)
        outs = [out] if single else list(out)
        full = [torch.zeros_like(y) if slope is None else slope for slope, y in zip(slopes, outs, strict=True)]
        return {**dict.fromkeys(needs), **dict(zip(chosen, pullback(full[0] if single else tuple(full)), strict=True))}

    return joint


def _gelu_slope(x, approximate):
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x.pow(3))
        bend = torch.tanh(inner)
        return 0.5 * (1 + bend) + 0.5 * x * (1 - bend.square()) * math.sqrt(2 / math.pi) * (1 + 0.134145 * x.square())
    return 0.5 * (1 + torch.erf(x / math.sqrt(2))) + x * torch.exp(-0.5 * x.square()) / math.sqrt(2 * math.pi)


def _gelu_bend(x, approximate):
    """The second derivative."""
    if approximate == "tanh":
        root = math.sqrt(2 / math.pi)
        bend = torch.tanh(root * (x + 0.044715 * x.pow(3)))
        slope, turn = root * (1 + 0.134145 * x.square()), root * 0.26829 * x
        flat = 1 - bend.square()
        return flat * slope + 0.5 * x * (flat * turn - 2 * bend * flat * slope.square())
    return (2 - x.square()) * torch.exp(-0.5 * x.square()) / math.sqrt(2 * math.pi)


rule(
    "gelu_backward",
    grad_output=lambda g, n: aten.gelu_backward(g, n.self, approximate=n.approximate),
    self=lambda g, n: g * n.grad_output * _gelu_bend(n.self, n.approximate),
)


def _silu_slope(x):
    s = torch.sigmoid(x)
    return s * (1 + x * (1 - s))


def _silu_bend(x):
    s = torch.sigmoid(x)
    return s * (1 - s) * (2 + x * (1 - 2 * s))


rule("silu", self=lambda g, n: aten.silu_backward(g, n.self), tangent=lambda t, n: t["self"] * _silu_slope(n.self))
rule(
    "silu_backward",
    grad_output=lambda g, n: aten.silu_backward(g, n.self),
    self=lambda g, n: g * n.grad_output * _silu_bend(n.self),
)
rule("tanh", self=lambda g, n: aten.tanh_backward(g, n.y), tangent=lambda t, n: t["self"] * (1 - n.y.square()))
rule(
    "tanh_backward",
    grad_output=lambda g, n: g * (1 - n.output.square()),
    output=lambda g, n: conj(g) * -2 * conj(n.output) * n.grad_output,
)
rule("sigmoid", self=lambda g, n: aten.sigmoid_backward(g, n.y), tangent=lambda t, n: t["self"] * n.y * (1 - n.y))
rule(
    "sigmoid_backward",
    grad_output=lambda g, n: g * n.output * (1 - n.output),
    output=lambda g, n: conj(g) * n.grad_output * conj(1 - 2 * n.output),
)
rule(
    "threshold_backward",
    grad_output=lambda g, n: aten.threshold_backward(g, n.self, n.threshold),
    tangent=lambda t, n: aten.threshold_backward(t["grad_output"], n.self, n.threshold) if "grad_output" in t else None,
    self=lambda g, n: None,
)
rule(
    "relu",
    self=lambda g, n: aten.threshold_backward(g, n.y, 0),
    tangent=lambda t, n: aten.threshold_backward(t["self"], n.y, 0),
)


def _layer_norm_backward(n, grad_out, input, weight):
    axes = list(range(input.dim() - len(n.normalized_shape), input.dim()))
    lead = list(range(input.dim() - len(n.normalized_shape)))
    # The kernel was given the rate and not the epsilon it was made with; the variance tells it.
    spread = n.input.var(axes, correction=0, keepdim=True)
    eps = (n.rstd.to(spread.dtype).square().reciprocal() - spread).detach()
    centred = input - input.mean(axes, keepdim=True)
    rate = (centred.square().mean(axes, keepdim=True) + eps).rsqrt()
    normed = centred * rate
    slope = grad_out if weight is None else grad_out * weight
    back = rate * (slope - slope.mean(axes, keepdim=True) - normed * (slope * normed).mean(axes, keepdim=True))
    to_weight = (grad_out * normed).sum(lead) if lead else grad_out * normed
    to_bias = grad_out.sum(lead) if lead else grad_out
    return tuple(one for one, wanted in zip((back, to_weight, to_bias), n.output_mask, strict=True) if wanted)


def _layer_norm_again(needs, g, n):
    kept = [slope for slope, wanted in zip(g, n.output_mask, strict=True) if wanted]
    return written_out(("grad_out", "input", "weight"), _layer_norm_backward)(needs, tuple(kept), n)


rule("native_layer_norm_backward", joint=_layer_norm_again)


def _nll(g, n):
    return aten.nll_loss_backward(g[0], n.self, n.target, n.weight, n.reduction, n.ignore_index, n.y[1])


def _nll_tangent(t, n):
    return [aten.nll_loss_forward(t["self"], n.target, n.weight, n.reduction, n.ignore_index)[0], None]


rule("nll_loss_forward", self=lambda g, n: None if g[0] is None else _nll(g, n), tangent=_nll_tangent, blind=(1,))
linear(
    "nll_loss_backward",
    self=nothing,
    total_weight=nothing,
    grad_output=lambda g, n: aten.nll_loss_forward(g, n.target, n.weight, n.reduction, n.ignore_index)[0],
)
