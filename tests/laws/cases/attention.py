"""Attention in all its forms."""

import torch

from wonderland.laws import Example
from wonderland.nn.mixers.additive_attention import AdditiveAttention, AdditiveSelfAttention
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.mixers.cross_attention import CrossAttention
from wonderland.nn.mixers.disentangled_attention import DisentangledAttention
from wonderland.nn.mixers.gated_attention_unit import GatedAttentionUnit
from wonderland.nn.mixers.hard_attention import HardAttention
from wonderland.nn.mixers.latent_attention import LatentAttention
from wonderland.nn.mixers.memory_attention import MemoryAttention
from wonderland.nn.norms.norm import RMSNorm
from wonderland.nn.positions import Alibi, RelativeBias, RelativeTable, Rotary

CASES = {
    "gated attention unit": lambda: GatedAttentionUnit(8, key_dim=4, position=Rotary.spec()),
    "gated attention unit that sees all": lambda: GatedAttentionUnit(8, key_dim=3, causal=False),
    "disentangled attention": lambda: DisentangledAttention(8, heads=2, position=RelativeTable.spec(farthest=3)),
    "disentangled attention with buckets": lambda: DisentangledAttention(
        8,
        heads=2,
        shared_keys=False,
        terms=["c2p"],
        position=RelativeTable.spec(farthest=8, buckets=4, norm=RMSNorm.spec()),
    ),
    "disentangled attention of contents": lambda: DisentangledAttention(8, heads=2),
    "attention": lambda: Attention(8, heads=2),
    "attention, grouped, with bias": lambda: Attention(8, heads=4, kv_heads=2, bias=True),
    "attention, one key head, own widths": lambda: Attention(8, heads=2, kv_heads=1, key_dim=3, value_dim=5),
    "attention, both ways": lambda: Attention(8, heads=2, causal=False),
    "attention, window": lambda: Attention(8, heads=2, window=3),
    "attention, window, both ways": lambda: Attention(8, heads=2, window=3, causal=False),
    "attention, normalised queries and keys": lambda: Attention(
        8, heads=4, kv_heads=2, qk_norm=RMSNorm.spec(eps=1e-3), position=Rotary.spec()
    ),
    "attention, bounded scores": lambda: Attention(8, heads=2, softcap=2.0, window=3, position=Rotary.spec()),
    "attention, rotary": lambda: Attention(8, heads=2, position=Rotary.spec()),
    "attention, rotary, both ways": lambda: Attention(8, heads=2, causal=False, position=Rotary.spec()),
    "attention, rotary, interleaved, window": lambda: Attention(
        8, heads=2, window=3, position=Rotary.spec(layout="interleaved")
    ),
    "attention, alibi": lambda: Attention(8, heads=2, position=Alibi.spec()),
    "attention, alibi, trained, window": lambda: Attention(8, heads=2, window=3, position=Alibi.spec(trainable=True)),
    "attention, relative bias": lambda: Attention(8, heads=2, position=RelativeBias.spec(length=4)),
    "attention, free bias, window": lambda: Attention(
        8, heads=2, window=3, position=RelativeBias.spec(length=300, tied=False)
    ),
    "cross attention": lambda: CrossAttention(8, heads=2, context_dim=6),
    "memory": lambda: MemoryAttention(8, slots=5),
    "memory, as an mlp": lambda: MemoryAttention(8, slots=5, project=False, scale=1.0, activation=torch.tanh),
    "hard attention": lambda: HardAttention(8, heads=2),
    "hard attention, both ways": lambda: HardAttention(8, heads=2, causal=False),
    "hard attention, straight through": lambda: HardAttention(8, heads=2, straight_through=True),
    "latents": lambda: LatentAttention(8, latents=3, heads=2),
    "additive attention": lambda: AdditiveAttention(8, context_dim=6, hidden=5),
    "additive attention, one width": lambda: AdditiveAttention(8, hidden=5),
    "additive self-attention": lambda: AdditiveSelfAttention(8, hidden=5),
    "additive self-attention, both ways": lambda: AdditiveSelfAttention(8, hidden=5, causal=False),
    "attention, itself alone": lambda: Attention(8, heads=2, causal=False, window=1),
}


def _with_context(width: int):
    generator = torch.Generator().manual_seed(1)
    context = torch.randn(3, 4, width, generator=generator, dtype=torch.float64)
    return lambda t: Example((Example.floats(3, t, 8, seed=t).input, context))


def _alike(t: int) -> Example:
    """Tokens that hardly differ: all answer a query alike, in some heads worse than zeros would."""
    x = Example.floats(3, t, 8, seed=t).input
    return Example((x[:, :1] + 0.1 * x,))


EXAMPLES = {
    "hard attention, both ways": _alike,
    "cross attention": _with_context(6),
    "additive attention": _with_context(6),
    "additive attention, one width": _with_context(8),
    "latents": lambda t: Example.floats(3, t, 8, seed=t, axes={0: ("batch", "time"), "output": ("batch",)}),
}
