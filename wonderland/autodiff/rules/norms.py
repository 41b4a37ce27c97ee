"""Rules of layer norm and dropout."""

import torch

from wonderland.autodiff.rules.table import rule

aten = torch.ops.aten


def _layer_norm(needs, g, n):
    if g[0] is None:
        return dict.fromkeys(needs)
    mask = ["input" in needs, "weight" in needs, "bias" in needs]
    gradients = aten.native_layer_norm_backward(
        g[0], n.input, n.normalized_shape, n.y[1], n.y[2], n.weight, n.bias, mask
    )
    return dict(zip(("input", "weight", "bias"), gradients, strict=True))


def _layer_norm_tangent(t, n):
    axes = list(range(n.input.dim() - len(n.normalized_shape), n.input.dim()))
    # Mean and rate are recomputed: as outputs of the kernel they have no derivative.
    centred = n.input - n.input.mean(axes, keepdim=True)
    rate = (centred.square().mean(axes, keepdim=True) + n.eps).rsqrt()
    normed = centred * rate
    out = None
    if "input" in t:
        centred_t = t["input"] - t["input"].mean(axes, keepdim=True)
        out = rate * (centred_t - normed * (normed * centred_t).mean(axes, keepdim=True))
        out = out if n.weight is None else out * n.weight
    if "weight" in t:
        out = normed * t["weight"] if out is None else out + normed * t["weight"]
    if "bias" in t:
        out = t["bias"].expand(n.input.shape) if out is None else out + t["bias"]
    return [out, None, None]


rule("native_layer_norm", joint=_layer_norm, tangent=_layer_norm_tangent, nondifferentiable=(1, 2))
rule(
    "native_dropout",
    input=lambda g, n: None if g[0] is None else g[0] * n.y[1] / (1 - n.p) if n.p < 1 else torch.zeros_like(g[0]),
    tangent=lambda t, n: [t["input"] * n.y[1] / (1 - n.p), None],
    nondifferentiable=(1,),
)
