"""Memory attention: keys and values are parameters, read by each token alone."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.channel.activations import Activation
from wonderland.nn.channel.activations import activation as resolve
from wonderland.nn.contract.mixer import Pointwise


@part
class MemoryAttention(Pointwise):
    r"""Attention over trainable keys and values: no token sees another.

    .. math::
        y_i = \mathrm{softmax}\!\left(\frac{K W_q x_i}{\sqrt{k}}\right)^{\!\top} V, \qquad
        K \in \mathbb{R}^{m \times k}, \quad V \in \mathbb{R}^{m \times d}

    - `slots`: how many entries m the memory has, 4 dim unless given. `key_dim`: their width k, dim unless given.
    - `scale`: what scores are multiplied with, 1 / sqrt(k) unless given.
    - `project`: whether queries are projected; without, the token is its own query and key_dim is dim.
    - `activation`: a function of the scores, or its name, in place of the softmax. With `project=False, scale=1.0` the layer is then the
      MLP :math:`V^\top \phi(K x_i)`: an MLP is a memory whose attention was never normalised.

    Shapes: x (..., dim) -> (..., dim); the state is empty.
    Book: Alice 11.1. Paper: Sukhbaatar et al., 2019; Geva et al., 2021.

    >>> MemoryAttention(16, slots=32)(torch.randn(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    def __init__(
        self,
        dim: int,
        *,
        slots: int | None = None,
        key_dim: int | None = None,
        scale: float | None = None,
        project: bool = True,
        activation: str | Activation | None = None,
    ):
        super().__init__()
        slots, key_dim = 4 * dim if slots is None else slots, dim if key_dim is None else key_dim
        if min(dim, slots, key_dim) < 1 or not (project or key_dim == dim):
            raise WonderlandError(
                f"MemoryAttention cannot be built with dim={dim}, slots={slots}, key_dim={key_dim}, project={project}: "
                "sizes are whole numbers from 1, and without a projection key_dim is dim."
            )
        self.dim, self.activation = dim, None if activation is None else resolve(activation)
        self.scale = 1 / math.sqrt(key_dim) if scale is None else scale
        self.query = nn.Linear(dim, key_dim, bias=False) if project else None
        self.keys = nn.Parameter(torch.empty(slots, key_dim))
        self.values = nn.Parameter(torch.empty(slots, dim))
        nn.init.normal_(self.keys)
        nn.init.normal_(self.values, std=1 / math.sqrt(slots))

    def apply_to(self, x: Tensor) -> Tensor:
        return self._weights(x) @ self.values

    def weights(self, x: Tensor) -> Float[Tensor, "... slots"]:
        """How much each token takes from each slot."""
        self.check(x, None)
        return self._weights(x)

    def _weights(self, x: Tensor) -> Tensor:
        scores = F.linear(x if self.query is None else self.query(x), self.keys) * self.scale
        return scores.softmax(-1) if self.activation is None else self.activation(scores)
