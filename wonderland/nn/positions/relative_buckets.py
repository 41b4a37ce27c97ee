"""Relative buckets: a trained bias for each small distance, and shared ones for large distances, as in T5."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.positions.position import Position


@part
class RelativeBuckets(Position):
    r"""A trainable number for each head and bucket of distances, added to the scores; T5 has one table for all layers.

    .. math::
        g(x_i, x_j) = q_i^\top k_j + b_{\mathrm{bucket}(j - i)}, \qquad
        \mathrm{bucket}(n) = \begin{cases} n & n < e \\
        e + \left\lfloor \frac{\log(n / e)}{\log(\mathrm{farthest} / e)} (B - e) \right\rfloor & n \ge e \end{cases}

    with :math:`e = B / 2`: half of the B buckets hold one distance each, the others grow with the logarithm up to
    `farthest`, and all that is further shares the last. Without `causal`, half of the `buckets` are for tokens ahead.

    Starts at 0: attention that does not look at positions. `nn.Stack(position=...)` shares one among its blocks.

    Shapes: positions (b, q), (b, k) -> (b, heads, q, k). Paper: Raffel et al., 2020.

    >>> RelativeBuckets(8, heads=2, buckets=8, farthest=20).bucket(torch.tensor([-30, -3, -1, 0, 1, 3, 30])).tolist()
    [3, 2, 1, 0, 5, 6, 7]
    """

    kind = "bias"
    relative = True

    def __init__(self, dim: int, heads: int = 1, *, buckets: int = 32, farthest: int = 128, causal: bool = False):
        super().__init__()
        exact = (buckets if causal else buckets // 2) // 2
        if heads < 1 or exact < 1 or farthest <= exact:
            raise WonderlandError(
                f"RelativeBuckets cannot be built with heads={heads}, buckets={buckets}, farthest={farthest}, "
                f"causal={causal}: heads is at least 1, buckets at least {2 if causal else 4}, and farthest above the "
                "distances that have a bucket of their own, a half of the buckets of one side."
            )
        self.buckets, self.farthest, self.causal = buckets, farthest, causal
        self.weight = nn.Parameter(torch.zeros(buckets, heads))

    def bucket(self, offset: Tensor) -> Tensor:
        """The bucket of an offset, the place of the key less that of the query."""
        count = self.buckets if self.causal else self.buckets // 2
        first = 0 if self.causal else (offset > 0).long() * count
        distance = (-offset).clamp_min(0) if self.causal else offset.abs()
        exact = count // 2
        # In single precision whatever the model's: published tables were trained with the buckets that this gives.
        far = torch.log(distance.clamp_min(1).float() / exact) / math.log(self.farthest / exact) * (count - exact)
        far = (exact + far.long()).clamp_max(count - 1)
        return first + torch.where(distance < exact, distance, far)

    def bias(
        self, query_positions: Int[Tensor, "#b q"], key_positions: Int[Tensor, "#b k"]
    ) -> Float[Tensor, "_ heads q k"]:
        offset = key_positions.unsqueeze(1) - query_positions.unsqueeze(2)
        return F.embedding(self.bucket(offset), self.weight).permute(0, 3, 1, 2)
