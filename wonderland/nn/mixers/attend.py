"""What attentions share: the fused product of heads, and the sizes of heads."""

import torch.nn.functional as F
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.fused_attention import fused_attention


def attend(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float, *, causal: bool = False, dropout: float = 0.0
) -> Tensor:
    """Fused attention of heads (b, h, t, width), with views instead of copies; the heads side by side: (b, t, h * v)."""
    key_dim, value_dim = k.shape[3], v.shape[3]
    if key_dim < value_dim:
        q, k = F.pad(q, (0, value_dim - key_dim)), F.pad(k, (0, value_dim - key_dim))
    elif value_dim < key_dim:
        # The fused kernel needs keys and values of one width; padding with zeros costs less than the matrix of scores.
        v = F.pad(v, (0, key_dim - value_dim))
    if scale <= 0:
        # The fused kernel scales masked scores too, and -inf times a scale of 0 or below is not -inf.
        q, scale = q * scale, 1.0
    y = fused_attention(q, k, v, bias, scale, causal=causal, dropout=dropout)
    y = y if y.shape[3] == value_dim else y[..., :value_dim]
    return y.reshape(y.shape[0], 1, -1) if y.shape[2] == 1 else y.transpose(1, 2).flatten(2)


def head_sizes(
    name: str,
    dim: int,
    heads: int | None,
    kv_heads: int | None,
    key_dim: int | None,
    value_dim: int | None,
    dropout: float = 0.0,
) -> tuple[int, int, int, int]:
    """Heads, heads of keys and values, and their widths, with the defaults filled in."""
    given = f"{name} cannot be built with dim={dim}, heads={heads}"
    if dim < 1:
        raise WonderlandError(f"{given}: dim is a whole number from 1.")
    if heads is None:
        heads = next(count for count in (4, 3, 2, 1) if dim % count == 0)
    if heads < 1 or (dim % heads and None in (key_dim, value_dim)):
        raise WonderlandError(f"{given}: heads divides dim, unless key_dim and value_dim are given.")
    kv_heads = heads if kv_heads is None else kv_heads
    if kv_heads < 1 or heads % kv_heads:
        raise WonderlandError(f"{given}, kv_heads={kv_heads}: kv_heads divides heads.")
    key_dim = dim // heads if key_dim is None else key_dim
    value_dim = dim // heads if value_dim is None else value_dim
    if min(key_dim, value_dim) < 1:
        raise WonderlandError(f"{given}, key_dim={key_dim}, value_dim={value_dim}: widths are whole numbers from 1.")
    if not 0 <= dropout < 1:
        raise WonderlandError(f"{given}, dropout={dropout}: dropout is at least 0 and below 1.")
    return heads, kv_heads, key_dim, value_dim
