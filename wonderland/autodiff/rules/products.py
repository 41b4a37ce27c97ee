"""Rules of matrix products, convolutions and attention."""

import torch

from wonderland.autodiff.rules.table import bilinear, conj, from_program, plain, rule, total

aten = torch.ops.aten


def _h(x):
    """The conjugate transpose of the last two axes."""
    return conj(x.mT)


bilinear("mm bmm", self=lambda g, n: g @ _h(n.mat2), mat2=lambda g, n: _h(n.self) @ g)
bilinear("mv", self=lambda g, n: g.outer(conj(n.vec)), vec=lambda g, n: _h(n.self) @ g)
bilinear("dot", self=lambda g, n: g * conj(n.tensor), tensor=lambda g, n: g * conj(n.self))
bilinear("vdot", self=lambda g, n: conj(g) * n.other, other=lambda g, n: g * n.self)
bilinear("outer ger", self=lambda g, n: g @ conj(n.vec2), vec2=lambda g, n: g.mT @ conj(n.self))
bilinear(
    "linalg_cross",
    self=lambda g, n: torch.linalg.cross(conj(n.other), g, dim=n.dim),
    other=lambda g, n: torch.linalg.cross(g, conj(n.self), dim=n.dim),
)


def _product_tangent(first, second, product):
    """The tangent rule of beta * self + alpha * product(first, second)."""

    def tangent(t, n):
        a, b = getattr(n, first), getattr(n, second)
        terms = []
        if "self" in t:
            terms.append(t["self"] * n.beta)
        if first in t:
            terms.append(product(t[first], b) * n.alpha)
        if second in t:
            terms.append(product(a, t[second]) * n.alpha)
        return total(terms)

    return tangent


rule(
    "addmm",
    self=lambda g, n: _scaled(g, n.beta),
    mat1=lambda g, n: _scaled(g @ _h(n.mat2), n.alpha),
    mat2=lambda g, n: _scaled(_h(n.mat1) @ g, n.alpha),
    tangent=_product_tangent("mat1", "mat2", torch.matmul),
)
rule(
    "baddbmm",
    self=lambda g, n: _scaled(g, n.beta),
    batch1=lambda g, n: _scaled(g @ _h(n.batch2), n.alpha),
    batch2=lambda g, n: _scaled(_h(n.batch1) @ g, n.alpha),
    tangent=_product_tangent("batch1", "batch2", torch.matmul),
)
rule(
    "addbmm",
    self=lambda g, n: _scaled(g, n.beta),
    batch1=lambda g, n: _scaled(g @ _h(n.batch2), n.alpha),
    batch2=lambda g, n: _scaled(_h(n.batch1) @ g, n.alpha),
    tangent=_product_tangent("batch1", "batch2", lambda a, b: (a @ b).sum(0)),
)
rule(
    "addmv",
    self=lambda g, n: _scaled(g, n.beta),
    mat=lambda g, n: _scaled(g.outer(conj(n.vec)), n.alpha),
    vec=lambda g, n: _scaled(_h(n.mat) @ g, n.alpha),
    tangent=_product_tangent("mat", "vec", torch.matmul),
)
rule(
    "addr",
    self=lambda g, n: _scaled(g, n.beta),
    vec1=lambda g, n: _scaled(g @ conj(n.vec2), n.alpha),
    vec2=lambda g, n: _scaled(g.mT @ conj(n.vec1), n.alpha),
    tangent=_product_tangent("vec1", "vec2", torch.outer),
)


def _scaled(g, factor):
    """The cotangent of an argument that was multiplied by a plain number."""
    return g if factor == 1 else g * conj(factor)


def _trilinear(n):
    factors = []
    for x, axes in ((n.i1, n.expand1), (n.i2, n.expand2), (n.i3, n.expand3)):
        for axis in sorted(axes):
            x = x.unsqueeze(axis)
        factors.append(x)
    return (factors[0] * factors[1] * factors[2]).sum(n.sumdim)


from_program("_trilinear", _trilinear)


def _convolution(needs, g, n):
    mask = ["input" in needs, "weight" in needs, "bias" in needs]
    sizes = None if n.bias is None else list(n.bias.shape)
    gradients = aten.convolution_backward(
        g, n.input, n.weight, sizes, n.stride, n.padding, n.dilation, n.transposed, n.output_padding, n.groups, mask
    )
    return dict(zip(("input", "weight", "bias"), gradients, strict=True))


def _convolution_tangent(t, n):
    shape = (n.stride, n.padding, n.dilation, n.transposed, n.output_padding, n.groups)
    terms = []
    if "input" in t:
        terms.append(aten.convolution(t["input"], n.weight, None, *shape))
    if "weight" in t:
        terms.append(aten.convolution(n.input, t["weight"], None, *shape))
    if "bias" in t:
        terms.append(t["bias"].view(1, -1, *[1] * (n.y.dim() - 2)) if n.input.dim() == n.y.dim() else t["bias"])
    return total(terms)


rule("convolution", joint=_convolution, tangent=_convolution_tangent)


def _convolution_second(needs, g, n):
    """The backward pass of a convolution is linear in its cotangent, in input and in weight: convolutions again."""
    to_input, to_weight, to_bias = g
    shape = (n.stride, n.padding, n.dilation, n.transposed, n.output_padding, n.groups)
    cotangents = dict.fromkeys(needs)
    if "grad_output" in needs:
        terms = []
        if to_input is not None:
            terms.append(aten.convolution(to_input, n.weight, None, *shape))
        if to_weight is not None:
            terms.append(aten.convolution(n.input, to_weight, None, *shape))
        if to_bias is not None:
            terms.append(to_bias.view(1, -1, *[1] * (n.grad_output.dim() - 2)).expand(n.grad_output.shape))
        cotangents["grad_output"] = total(terms)
    if "input" in needs and to_weight is not None:
        cotangents["input"] = aten.convolution_backward(
            n.grad_output, n.input, to_weight, None, *shape, [True, False, False]
        )[0]
    if "weight" in needs and to_input is not None:
        cotangents["weight"] = aten.convolution_backward(
            n.grad_output, to_input, n.weight, None, *shape, [False, True, False]
        )[1]
    return cotangents


rule("convolution_backward", joint=_convolution_second)


def _flash(needs, g, n):
    """The cotangents of fused attention, by its backward kernel; the mask's cotangent in torch operations."""
    if g[0] is None:
        return dict.fromkeys(needs)
    if plain():
        given = {name: getattr(n, name) for name in ("query", "key", "value", "attn_mask") if name in needs}
        return dict(zip(given, _unfused(g[0], n, list(given)), strict=True))
    gradients = aten._scaled_dot_product_flash_attention_for_cpu_backward(
        g[0], n.query, n.key, n.value, n.y[0], n.y[1], n.dropout_p, n.is_causal, attn_mask=n.attn_mask, scale=n.scale
    )
    cotangents: dict[str, torch.Tensor] = dict(zip(("query", "key", "value"), gradients, strict=True))
    if "attn_mask" in needs:
        weights = attention_weights(n.query, n.key, n.value, n.attn_mask, n.is_causal, n.scale)
        to_weights = g[0] @ repeat_heads(n.value, n.query).mT
        cotangents["attn_mask"] = weights * (to_weights - (weights * to_weights).sum(-1, keepdim=True))
    return cotangents


def _unfused(g, n, needs):
    """The cotangents of attention in torch operations."""
    weights = attention_weights(n.query, n.key, n.value, n.attn_mask, n.is_causal, n.scale)
    scale = n.query.shape[-1] ** -0.5 if n.scale is None else n.scale
    to_weights = g @ repeat_heads(n.value, n.query).mT
    to_scores = weights * (to_weights - (weights * to_weights).sum(-1, keepdim=True))
    cotangents = {
        "query": lambda: to_scores @ repeat_heads(n.key, n.query) * scale,
        "key": lambda: sum_heads(to_scores.mT @ n.query * scale, n.key),
        "value": lambda: sum_heads(weights.mT @ g, n.value),
        "attn_mask": lambda: to_scores,
    }
    return [cotangents[name]() for name in needs]


def repeat_heads(shared, query):
    """Keys or values (b, fewer heads, t, d) with each head repeated for the query heads that share it."""
    times = query.shape[1] // shared.shape[1]
    return shared if times == 1 else shared.repeat_interleave(times, 1)


def sum_heads(g, shared):
    """The cotangent of shared heads: the sum over the query heads that share each."""
    return g if g.shape[1] == shared.shape[1] else g.unflatten(1, (shared.shape[1], -1)).sum(2)


def attention_weights(query, key, value, mask, causal, scale):
    """The weights of attention, written out: for forward mode and second derivatives, which have no kernel."""
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ repeat_heads(key, query).mT * scale
    if causal:
        ones = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device)
        scores = scores.masked_fill(ones.triu(1), float("-inf"))
    if mask is not None:
        scores = scores + mask if mask.dtype != torch.bool else scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, -1)
    if mask is None:
        return weights
    # A query that is fully masked has no weights, as in the fused kernel.
    return weights.masked_fill((scores == float("-inf")).all(-1, keepdim=True), 0)


def _flash_tangent(t, n):
    weights = attention_weights(n.query, n.key, n.value, n.attn_mask, n.is_causal, n.scale)
    scale = n.query.shape[-1] ** -0.5 if n.scale is None else n.scale
    moved = total(
        [
            None if t.get("query") is None else t["query"] @ repeat_heads(n.key, n.query).mT * scale,
            None if t.get("key") is None else n.query @ repeat_heads(t["key"], n.query).mT * scale,
            t.get("attn_mask"),
        ]
    )
    terms = []
    if moved is not None:
        moved = weights * (moved - (weights * moved).sum(-1, keepdim=True))
        terms.append(moved @ repeat_heads(n.value, n.query))
    if t.get("value") is not None:
        terms.append(weights @ repeat_heads(t["value"], n.query))
    return [total(terms), None]


def _flash_second(needs, g, n):
    """Second derivatives of fused attention: the backward pass written out in torch operations, differentiated again."""
    from wonderland.autodiff.transforms import vjp

    def equation(cotangent, query, key, value, mask=n.attn_mask):
        weights = attention_weights(query, key, value, mask, n.is_causal, n.scale)
        scale = query.shape[-1] ** -0.5 if n.scale is None else n.scale
        to_weights = cotangent @ repeat_heads(value, query).mT
        to_scores = weights * (to_weights - (weights * to_weights).sum(-1, keepdim=True)) * scale
        to_key, to_value = to_scores.mT @ query, weights.mT @ cotangent
        return to_scores @ repeat_heads(key, query), sum_heads(to_key, key), sum_heads(to_value, value)

    given = {"grad_out": n.grad_out, "query": n.query, "key": n.key, "value": n.value}
    if "attn_mask" in needs:
        given["attn_mask"] = n.attn_mask
    out, pullback = vjp(equation, *given.values())
    cotangents = tuple(
        torch.zeros_like(y) if cotangent is None else cotangent for cotangent, y in zip(g, out, strict=True)
    )
    # The saved output and logsumexp are functions of these arguments, so they get no cotangent.
    return {"out": None, "logsumexp": None, **dict(zip(given, pullback(cotangents), strict=True))}


rule("_scaled_dot_product_flash_attention_for_cpu", joint=_flash, tangent=_flash_tangent, nondifferentiable=(1,))
rule("_scaled_dot_product_flash_attention_for_cpu_backward", joint=_flash_second)
