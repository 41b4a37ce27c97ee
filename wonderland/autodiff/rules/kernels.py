"""Rules of activations, layer norm and NLL loss that use ATen's backward kernels, and of those kernels themselves."""

import math

import torch

from wonderland.autodiff.rules.table import conj, linear, no_cotangent, rule

aten = torch.ops.aten


def differentiate_equation(names, function):
    """The joint rule of a kernel that equals a function of torch operations: the derivatives of the function.

    `function` takes the call and the named arguments. Other arguments of the kernel (saved means, outputs) are functions of
    these, so they get no cotangent.
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
        cotangents = [g] if single else list(g)
        outs = [out] if single else list(out)
        full = [
            torch.zeros_like(y) if cotangent is None else cotangent
            for cotangent, y in zip(cotangents, outs, strict=True)
        ]
        return {**dict.fromkeys(needs), **dict(zip(chosen, pullback(full[0] if single else tuple(full)), strict=True))}

    return joint


def _gelu_second_derivative(x, approximate):
    if approximate == "tanh":
        root = math.sqrt(2 / math.pi)
        y = torch.tanh(root * (x + 0.044715 * x.pow(3)))  # of the inner polynomial u(x)
        u1, u2 = root * (1 + 0.134145 * x.square()), root * 0.26829 * x  # its derivatives
        y1 = 1 - y.square()
        return y1 * u1 + 0.5 * x * (y1 * u2 - 2 * y * y1 * u1.square())
    return (2 - x.square()) * torch.exp(-0.5 * x.square()) / math.sqrt(2 * math.pi)


rule(
    "gelu_backward",
    grad_output=lambda g, n: aten.gelu_backward(g, n.self, approximate=n.approximate),
    self=lambda g, n: g * n.grad_output * _gelu_second_derivative(n.self, n.approximate),
)


def _silu_derivative(x):
    s = torch.sigmoid(x)
    return s * (1 + x * (1 - s))


def _silu_second_derivative(x):
    s = torch.sigmoid(x)
    return s * (1 - s) * (2 + x * (1 - 2 * s))


rule("silu", self=lambda g, n: aten.silu_backward(g, n.self), tangent=lambda t, n: t["self"] * _silu_derivative(n.self))
rule(
    "silu_backward",
    grad_output=lambda g, n: aten.silu_backward(g, n.self),
    self=lambda g, n: g * n.grad_output * _silu_second_derivative(n.self),
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
    # The kernel is given rstd and not eps, which follows from rstd and the variance.
    variance = n.input.var(axes, correction=0, keepdim=True)
    eps = (n.rstd.to(variance.dtype).square().reciprocal() - variance).detach()
    centred = input - input.mean(axes, keepdim=True)
    rate = (centred.square().mean(axes, keepdim=True) + eps).rsqrt()
    normed = centred * rate
    cotangent = grad_out if weight is None else grad_out * weight
    to_input = rate * (
        cotangent - cotangent.mean(axes, keepdim=True) - normed * (cotangent * normed).mean(axes, keepdim=True)
    )
    to_weight = (grad_out * normed).sum(lead) if lead else grad_out * normed
    to_bias = grad_out.sum(lead) if lead else grad_out
    return tuple(to for to, wanted in zip((to_input, to_weight, to_bias), n.output_mask, strict=True) if wanted)


def _layer_norm_second(needs, g, n):
    kept = [cotangent for cotangent, wanted in zip(g, n.output_mask, strict=True) if wanted]
    return differentiate_equation(("grad_out", "input", "weight"), _layer_norm_backward)(needs, tuple(kept), n)


rule("native_layer_norm_backward", joint=_layer_norm_second)


def _nll(g, n):
    return aten.nll_loss_backward(g[0], n.self, n.target, n.weight, n.reduction, n.ignore_index, n.y[1])


def _nll_tangent(t, n):
    return [aten.nll_loss_forward(t["self"], n.target, n.weight, n.reduction, n.ignore_index)[0], None]


rule(
    "nll_loss_forward",
    self=lambda g, n: None if g[0] is None else _nll(g, n),
    tangent=_nll_tangent,
    nondifferentiable=(1,),
)
linear(
    "nll_loss_backward",
    self=no_cotangent,
    total_weight=no_cotangent,
    grad_output=lambda g, n: aten.nll_loss_forward(g, n.target, n.weight, n.reduction, n.ignore_index)[0],
)
