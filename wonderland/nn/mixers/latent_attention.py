"""Latent attention: a few trainable queries summarise a sequence of any length."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.arguments import Checked
from wonderland.nn.contract.mixer import check_features, check_mask, check_rows, hide
from wonderland.nn.mixers.cross_attention import CrossAttention


@part
class LatentAttention(Checked, nn.Module):
    r"""Cross-attention whose queries are parameters: t tokens become `latents` tokens, at a cost linear in t.

    .. math::
        Y = \mathrm{CA}(Z, X), \qquad Z \in \mathbb{R}^{m \times d} \text{ trainable}

    The order of the tokens does not matter. Options besides `latents` are those of `CrossAttention`. The other direction,
    latents as keys and values, is `MemoryAttention`.

    Shapes: x (b, t, dim), mask (b, t) -> (b, latents, dim).
    Book: Alice 11.2.1. Paper: Jaegle et al., 2021; Lee et al., 2019.

    >>> LatentAttention(16, latents=3)(torch.randn(2, 50, 16)).shape
    torch.Size([2, 3, 16])
    """

    def __init__(
        self,
        dim: int,
        *,
        latents: int = 16,
        heads: int | None = None,
        kv_heads: int | None = None,
        key_dim: int | None = None,
        value_dim: int | None = None,
        dropout: float | int = 0.0,
        bias: bool = False,
    ):
        super().__init__()
        if latents < 1:
            raise WonderlandError(
                f"LatentAttention cannot be built with latents={latents}: it is a whole number from 1."
            )
        self.dim = dim
        self.cross = CrossAttention(
            dim, heads=heads, kv_heads=kv_heads, key_dim=key_dim, value_dim=value_dim, dropout=dropout, bias=bias
        )
        self.latents = nn.Parameter(torch.empty(latents, dim))
        nn.init.normal_(self.latents)

    def laws(self) -> tuple[Callable[..., Any], ...]:
        """What this instance promises; the suite checks it."""
        from wonderland import laws

        return (
            laws.permutation_invariance,
            laws.batch_independence,
            laws.padding_invariance,
            laws.gradients,
            laws.determinism,
            laws.save_load,
            laws.finiteness,
            laws.compiles,
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Float[Tensor, "b latents dim"]:
        name = type(self).__name__
        check_features(x, self.dim, name, self.latents)
        check_mask(mask, x, name)
        check_rows(mask, name)
        state = self.cross.read(hide(x, mask), mask)
        return self.cross.proceed(self.latents.expand(x.shape[0], -1, -1), state, None)
