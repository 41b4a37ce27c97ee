"""Linear attention, the attention-free transformer and RWKV, with the options that change what they do."""

from wonderland.nn.mixers.aft import AFT
from wonderland.nn.mixers.feature_maps import ExpFeatures, RandomFeatures, ReluFeatures
from wonderland.nn.mixers.linear_attention import LinearAttention
from wonderland.nn.mixers.rwkv import RWKV, RWKVChannel

CASES = {
    "LinearAttention": lambda: LinearAttention(8, heads=2),
    "LinearAttention-relu": lambda: LinearAttention(8, heads=2, feature_map=ReluFeatures.spec()),
    "LinearAttention-exp": lambda: LinearAttention(8, heads=1, feature_map=ExpFeatures.spec()),
    "LinearAttention-random": lambda: LinearAttention(8, heads=2, feature_map=RandomFeatures.spec(features=6)),
    "LinearAttention-everywhere": lambda: LinearAttention(8, heads=2, causal=False),
    "AFT": lambda: AFT(8),
    "AFT-everywhere": lambda: AFT(8, causal=False),
    "AFT-local": lambda: AFT(8, form="local", window=2, length=300),
    "AFT-full": lambda: AFT(8, form="full", length=300),
    "AFT-full-rank": lambda: AFT(8, form="full", length=300, rank=2),
    "AFT-full-everywhere": lambda: AFT(8, form="full", length=300, causal=False),
    "RWKV": lambda: RWKV(8),
    "RWKV-book": lambda: RWKV(8, count="book", inner=6),
    "RWKVChannel": lambda: RWKVChannel(8, expand=2),
}
