"""Heads: from a sequence of features to one output, or one for each token."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, nearest, part
from wonderland.nn.channel.activations import Activation
from wonderland.nn.channel.activations import activation as resolve
from wonderland.nn.contract.arguments import Checked, at_least_one
from wonderland.nn.contract.mixer import check_features, check_mask, check_rows, hide, lengths

POOLS = ("mean", "max", "first", "last", "attention")


@part
class Pool(Checked, nn.Module):
    r"""A sequence to one vector.

    "mean" and "max" over the real tokens, the "first" or the "last" real token, or "attention": a trained query weighs
    them,

    .. math:: y = \sum_i \mathrm{softmax}_i(q^\top x_i / \sqrt{d})\; x_i .

    All but "first" and "last" ignore the order of the tokens. Shapes: x (b, t, dim) -> (b, dim).
    Book: Alice 10.3.1. Paper for "attention": Ilse et al., 2018.

    >>> Pool(1, how="max")(torch.tensor([[[1.0], [3.0]]]), torch.tensor([[True, False]]))
    tensor([[1.]])
    """

    no_decay = frozenset({"query"})

    def __init__(self, dim: int, *, how: str = "mean"):
        super().__init__()
        if how not in POOLS:
            raise WonderlandError(
                f"There is no way to pool called {how!r}.{nearest(how, POOLS)} The choices are {', '.join(POOLS)}."
            )
        at_least_one("Pool", dim=dim)
        self.dim, self.how = dim, how
        if how == "attention":
            self.query = nn.Parameter(torch.randn(dim) * dim**-0.5)

    def laws(self):
        """What this instance promises; the suite checks it."""
        from wonderland import laws

        always = (laws.batch_independence, laws.padding_invariance, laws.gradients, laws.determinism, laws.save_load)
        order = () if self.how in ("first", "last") else (laws.permutation_invariance,)
        return (*always, laws.finiteness, laws.compiles, *order)

    def forward(self, x: Any, mask: Any = None) -> Tensor:
        check_sequence(x, self.dim, mask, "Pool", next(self.parameters(), None))
        if self.how == "first":
            return x[:, 0]
        if self.how == "last":
            return x[:, -1] if mask is None else x[torch.arange(x.shape[0], device=x.device), lengths(mask) - 1]
        if self.how == "max":
            return (x if mask is None else x.masked_fill(~mask.unsqueeze(-1), -torch.inf)).amax(1)
        x = hide(x, mask)
        if self.how == "mean":
            return x.mean(1) if mask is None else x.sum(1) / lengths(mask).unsqueeze(1)
        score = x @ self.query * self.dim**-0.5
        weight = (score if mask is None else score.masked_fill(~mask, -torch.inf)).softmax(1)
        return (weight.unsqueeze(1) @ x).squeeze(1)


@part
class SequenceHead(Checked, nn.Module):
    """One output for a sequence: pooled, then a linear layer, after a hidden one where `hidden` is given.

    Shapes: x (b, t, dim) -> (b, outputs); logits, not probabilities. Book: Alice 10.3.1.

    >>> SequenceHead(dim=8, outputs=3)(torch.zeros(2, 5, 8)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        dim: int,
        outputs: int,
        *,
        pool: str = "mean",
        hidden: int | None = None,
        activation: str | Activation = "gelu",
    ):
        super().__init__()
        at_least_one("SequenceHead", dim=dim, outputs=outputs, hidden=hidden)
        self.dim, self.pool = dim, Pool(dim, how=pool)
        self.hidden = None if hidden is None else nn.Linear(dim, hidden)
        self.activation = resolve(activation)
        self.outward = nn.Linear(dim if hidden is None else hidden, outputs)

    def laws(self):
        """What this instance promises; the suite checks it."""
        return self.pool.laws()

    def forward(self, x: Any, mask: Any = None) -> Tensor:
        check_sequence(x, self.dim, mask, "SequenceHead", self.outward.weight)
        pooled = self.pool(x, mask)
        return self.outward(pooled if self.hidden is None else self.activation(self.hidden(pooled)))


@part
class TokenHead(Checked, nn.Module):
    """One output for each token: a linear layer; 0 where the mask hides.

    Shapes: x (b, t, dim) -> (b, t, outputs).

    >>> TokenHead(dim=8, outputs=3)(torch.zeros(2, 5, 8)).shape
    torch.Size([2, 5, 3])
    """

    receptive_field = (0, 0)

    def __init__(self, dim: int, outputs: int, *, bias: bool = True):
        super().__init__()
        at_least_one("TokenHead", dim=dim, outputs=outputs)
        self.dim = dim
        self.outward = nn.Linear(dim, outputs, bias=bias)

    def laws(self):
        """What this instance promises; the suite checks it."""
        from wonderland import laws

        return (
            laws.causality,
            laws.strict_causality,
            laws.batch_independence,
            laws.padding_invariance,
            laws.permutation_equivariance,
            laws.shift_equivariance,
            laws.locality,
            laws.gradients,
            laws.determinism,
            laws.save_load,
            laws.finiteness,
            laws.compiles,
        )

    def forward(self, x: Any, mask: Any = None) -> Tensor:
        check_sequence(x, self.dim, mask, "TokenHead", self.outward.weight)
        return hide(self.outward(hide(x, mask)), mask)


def check_sequence(x: Any, dim: int, mask: Any, name: str, like: Tensor | None = None) -> None:
    """Say what is wrong with a sequence, or with a mask that leaves a row without a real token."""
    check_features(x, dim, name, like)
    check_mask(mask, x, name)
    check_rows(mask, name)
