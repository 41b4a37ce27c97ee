"""The contract of positions: one of embed, rotate, bias and table, as a function of the positions of tokens."""

from typing import Any, Literal

from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.nn.contract.arguments import Checked


class Position(Checked, nn.Module):
    """A positional encoding. `kind` says what it does.

    - "embed": `embed(positions)` is added to the embeddings, once, at the model's door;
    - "rotate": `rotate(x, positions)` rotates queries and keys, in every attention layer;
    - "bias": `bias(query_positions, key_positions)` is added to the scores, in every attention layer.
    - "table": vectors of distances, which `DisentangledAttention` compares with queries and keys.

    The module that builds one from its spec adds the sizes: `spec.build(dim=width, heads=heads)`, where width is that of the model
    for "embed" and of one head for "rotate" ("bias" has no use for it).

    `relative` is True when only the difference of two positions counts: shifting all of them changes no score.
    Positions are integers (b, t), or (1, t) when all rows stand alike.
    """

    kind: Literal["embed", "rotate", "bias", "table"]
    relative: bool = False

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        # In half precision far positions would share an angle: tables stay in single precision, only results are cast.
        before = dict(self._buffers)
        super()._apply(fn, recurse)
        for name, table in self._buffers.items():
            old = before[name]
            if table is not None and old is not None and table.is_floating_point() and table.element_size() < 4:
                self._buffers[name] = old.to(table.device)
        return self

    def embed(self, positions: Tensor) -> Tensor:
        """What is added to the embeddings at these positions: (b, t) -> (b, t, dim)."""
        raise self._other("embed")

    def rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        """Queries or keys (b, t, heads, k) rotated by their positions; the same shape."""
        raise self._other("rotate")

    def bias(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """What is added to the scores: (b, q), (b, k) -> (b, heads, q, k)."""
        raise self._other("bias")

    def _other(self, asked: str) -> WonderlandError:
        return WonderlandError(f"{type(self).__name__} is a position of the kind {self.kind!r}, so it has no {asked}.")
