"""Convolutions in use: batch norm folded into the weights, activation and shortcut into the kernel of oneDNN.

Folded weights are copies in oneDNN's own order. They are made again when a weight or a statistic was replaced or written to; to notice
writes through `.data`, which leave no trace, a number of each filter and the sums of the norm are compared too.
"""

import functools
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.fast.guard import has_no_hooks, plain, unobserved
from wonderland.nn.channel.activations import relu

MANY = 16  # images from which on large weights are used as they are: copies of them would only cost memory
SHAPES = 2  # inputs whose packing is kept for each layer: batches, and the last smaller one

_Key = tuple[Any, ...]
_CACHE: WeakKeyDictionary[nn.Module, tuple[_Key, dict[tuple[int, ...], tuple[Tensor, Tensor]]]] = WeakKeyDictionary()


@functools.cache
def available() -> bool:
    """Whether this build of torch has the fused convolutions, under the signatures known here."""
    try:
        one = torch.ops.mkldnn._convolution_pointwise.default._schema
        two = torch.ops.mkldnn._convolution_pointwise.binary._schema
        reorder = torch._C._nn.mkldnn_reorder_conv2d_weight  # pyright: ignore[reportAttributeAccessIssue]
    except (AttributeError, RuntimeError):
        return False
    return (
        callable(reorder)
        and (len(one.arguments), len(two.arguments)) == (10, 13)
        and torch.backends.mkldnn.is_available()
    )


def usable(x: Tensor) -> bool:
    """Whether the fused kernels may read this input now."""
    return (
        x.dim() == 4
        and x.dtype is torch.float32
        and x.numel() > 0
        and plain(x)
        and unobserved()
        and torch._C._get_tracing_state() is None
        and torch._C._get_mkldnn_enabled()
        and available()
    )


def conv_norm(module: Any, x: Tensor) -> Tensor | None:
    """A `ConvNorm` by one kernel, with relu inside it; another activation follows."""
    if not usable(x) or not _whole(module):
        return None
    y = _run(module, x, rectified=module.activation is relu)
    if y is None or module.activation in (None, relu):
        return y
    return module.activation(y)


def residual(module: Any, x: Tensor) -> Tensor | None:
    """A residual block of two or three `ConvNorm` without gate, its sum and last relu in the last kernel."""
    convs = list(module.convs)
    layers = convs if module.shortcut is None else [*convs, module.shortcut]
    fits = module.squeeze is None and usable(x) and has_no_hooks(module.convs)
    if not fits or not all(_whole(layer) and has_no_hooks(layer) for layer in layers):
        return None
    if any(layer.activation is not relu for layer in convs[:-1]) or any(
        layer.activation is not None for layer in layers[len(convs) - 1 :]
    ):
        return None
    x = x.contiguous(memory_format=torch.channels_last)
    aside = x if module.shortcut is None else _run(module.shortcut, x, rectified=False)
    y: Tensor | None = x
    for layer in convs[:-1]:
        y = None if y is None else _run(layer, y, rectified=True)
    return None if y is None or aside is None else _run(convs[-1], y, rectified=True, plus=aside)


def _whole(module: Any) -> bool:
    """Whether a ConvNorm is as it was built: plain layers without hooks, in use, with statistics."""
    conv, norm = module.conv, module.norm
    return (
        type(conv) is nn.Conv2d
        and type(norm) is nn.BatchNorm2d
        and not norm.training
        and norm.running_mean is not None
        and norm.weight is not None
        and conv.padding_mode == "zeros"
        and isinstance(conv.padding, tuple)
        and has_no_hooks(conv, norm)
    )


def _run(module: Any, x: Tensor, *, rectified: bool, plus: Tensor | None = None) -> Tensor | None:
    """One kernel: convolution, norm, an addend, relu. None where the weights are not plain float32."""
    conv = module.conv
    if len(x) >= MANY and conv.weight.numel() > x.numel():
        return _unfolded(module, x, rectified=rectified, plus=plus)
    x = x.contiguous(memory_format=torch.channels_last)
    folded = _folded(module, x)
    if folded is None:
        return None
    weight, bias = folded
    sizes = conv.padding, conv.stride, conv.dilation, conv.groups
    if plus is None:
        return torch.ops.mkldnn._convolution_pointwise.default(
            x, weight, bias, *sizes, "relu" if rectified else "none", [], ""
        )
    return torch.ops.mkldnn._convolution_pointwise.binary(
        x, plus, weight, bias, *sizes, "add", 1.0, "relu" if rectified else None, [], ""
    )


def _unfolded(module: Any, x: Tensor, *, rectified: bool, plus: Tensor | None) -> Tensor | None:
    """Convolution, norm, addend and relu one after the other, where weights are larger than the maps: no copy of the weights is made."""
    conv, norm = module.conv, module.norm
    if not plain(x, conv.weight, norm.weight, norm.bias, norm.running_mean, norm.running_var):
        return None
    y = conv(x.contiguous())
    y = F.batch_norm(y, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps)
    y = y.contiguous(memory_format=torch.channels_last)
    if plus is not None:
        y += plus
    return y.relu_() if rectified else y


def _folded(module: Any, x: Tensor) -> tuple[Tensor, Tensor] | None:
    """The weight and bias with the norm inside, packed for inputs of this shape."""
    conv, norm = module.conv, module.norm
    tensors = conv.weight, norm.weight, norm.bias, norm.running_mean, norm.running_var
    if not plain(x, *tensors) or conv.bias is not None or any(tensor.is_inference() for tensor in tensors):
        return None
    key = _key(tensors, norm.eps)
    kept = _CACHE.get(module)
    if kept is None or kept[0] != key:
        kept = _CACHE[module] = (key, {})
    shape, packed = tuple(x.shape), kept[1]
    if shape not in packed:
        if len(packed) >= SHAPES:
            packed.pop(next(iter(packed)))
        packed[shape] = _pack(conv, norm, shape)
    return packed[shape]


def _key(tensors: tuple[Tensor, ...], eps: float) -> _Key:
    """What changes when a layer does: where its numbers lie, how often they were written to, and some of their sums."""
    weight, gain, shift, _, variance = tensors
    middle = weight[:, 0, weight.shape[2] // 2, weight.shape[3] // 2]
    seen = [(tensor.data_ptr(), tensor._version) for tensor in tensors]
    return (eps, *seen, *(value.sum().item() for value in (middle, gain, shift, variance)))


def _fold(conv: nn.Conv2d, norm: Any) -> tuple[Tensor, Tensor]:
    """The weight and bias of the convolution that does what both do."""
    scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
    weight = (conv.weight * scale.view(-1, 1, 1, 1)).detach()
    return weight, (norm.bias - norm.running_mean * scale).detach()


def _pack(conv: nn.Conv2d, norm: Any, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    weight, bias = _fold(conv, norm)
    reorder = torch._C._nn.mkldnn_reorder_conv2d_weight  # pyright: ignore[reportAttributeAccessIssue]
    packed = reorder(weight.to_mkldnn(), conv.padding, conv.stride, conv.dilation, conv.groups, list(shape))
    return packed, bias
