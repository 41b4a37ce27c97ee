"""Positions: added to embeddings (embed), applied to queries and keys (rotate), or added to scores (bias, table)."""

from wonderland.nn.positions.alibi import Alibi
from wonderland.nn.positions.learned import Learned
from wonderland.nn.positions.position import Position
from wonderland.nn.positions.relative_bias import RelativeBias
from wonderland.nn.positions.relative_buckets import RelativeBuckets
from wonderland.nn.positions.relative_table import RelativeTable
from wonderland.nn.positions.rotary import Rotary
from wonderland.nn.positions.sinusoidal import Sinusoidal

__all__ = ["Alibi", "Learned", "Position", "RelativeBias", "RelativeBuckets", "RelativeTable", "Rotary", "Sinusoidal"]
