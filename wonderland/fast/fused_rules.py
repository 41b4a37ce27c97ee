"""How attention and MLPs with their norm become one kernel over whole sequences: `x + mixer(norm(x))`."""

from typing import Any

from torch import Tensor, nn

from wonderland.fast import guard
from wonderland.fast.table import rule_of
from wonderland.nn.channel.activations import name_of
from wonderland.nn.contract.nonfinite import mask_nonfinite
from wonderland.nn.positions import Rotary
from wonderland.ops import fused_attention_block, fused_block, fused_mlp_block, native

# A norm as kernels read it: gain, shift, eps, and whether the mean is subtracted.
NormForm = tuple[Tensor, Tensor | None, float, bool]


def layer_norm(module: Any) -> NormForm:
    return module.weight, module.bias, module.eps, True


def rms_norm(module: Any) -> NormForm:
    return module.weight, None, module.eps, False


def attention(module: Any, norm: Any, x: Tensor) -> Tensor | None:
    """Inputs with tokens that are not finite are left to plain torch, where the contract masks these."""
    form, position = _weights(module, norm, x, "project", "out"), module.position
    if form is None or module.key_dim != module.value_dim or module.scale <= 0 or (module.training and module.dropout):
        return None
    if position is not None and (type(position) is not Rotary or module._modules["position"] is not position):
        return None
    if module.window is not None and module.window < x.shape[1]:
        return None
    if module.query_norm is not None or module.softcap is not None:
        return None
    weights, eps, centred = form
    frequencies = None if position is None else position.frequencies
    width = (module.heads + 2 * module.kv_heads) * module.key_dim
    mixed = module.heads * module.key_dim
    if not fused_block.weights_fit(x.shape[-1], mixed, weights) or weights[2].shape[0] != width:  # pyright: ignore
        return None
    if not fused_attention_block.short(x, module.causal) or not guard.plain(x, frequencies):
        return None
    if module.causal and mask_nonfinite(x)[1] is not None:
        return None
    return fused_attention_block.unchecked(
        x, weights, frequencies, heads=module.heads, kv_heads=module.kv_heads, scale=module.scale, causal=module.causal,
        half=position is not None and position.layout == "half", eps=eps, centred=centred,
    )  # fmt: skip


def mlp(module: Any, norm: Any, x: Tensor) -> Tensor | None:
    form, activation = _weights(module, norm, x, "inward", "outward"), name_of(module.activation)
    if form is None or activation not in fused_mlp_block.ACTIVATIONS or (module.training and module.dropout):
        return None
    weights, eps, centred = form
    if not fused_block.weights_fit(x.shape[-1], None, weights):
        return None
    return fused_mlp_block.unchecked(x, weights, eps=eps, centred=centred, activation=activation)


def _weights(
    module: Any, norm: Any, x: Tensor, first: str, second: str
) -> tuple[tuple[Tensor | None, ...], float, bool] | None:
    """Gain, shift, and weights and biases of two linear layers; then eps and whether the mean is subtracted.

    None where a kernel may not be used (see `guard`) or gains nothing, the norm has no such form, or a layer was replaced, as
    by an adapter.
    """
    norm_form, inward, outward = rule_of(norm).norm_form, module._modules[first], module._modules[second]
    if norm_form is None or type(inward) is not nn.Linear or type(outward) is not nn.Linear:
        return None
    if not guard.unobserved() or not guard.has_no_hooks(module, norm, inward, outward):
        return None
    gain, shift, eps, centred = norm_form(norm)
    weights = (gain, shift, inward.weight, inward.bias, outward.weight, outward.bias)
    used = guard.plain(x, *weights) and fused_block.pays(x, *weights) and native.available("fused_block")
    return (weights, eps, centred) if used else None
