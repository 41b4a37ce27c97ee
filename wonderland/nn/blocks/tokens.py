"""Extra tokens: a class token that the head reads, registers that it does not; both are trained, not given."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.arguments import Checked, at_least_one
from wonderland.nn.contract.mixer import check_features, check_mask, lengths


class ExtraTokens(Checked, nn.Module):
    """`count` trained tokens, the same for every row, added before or after each row's own.

    `forward(x, mask)` gives the longer sequence and its mask; `split(y, mask)` takes the mixed sequence apart again, into
    the row's own tokens and the extra ones. Added "last", they follow the real tokens of each row, not its padding.
    """

    no_decay = frozenset({"tokens"})

    def __init__(self, dim: int, count: int, position: str):
        super().__init__()
        name = type(self).__name__
        if count < 0:
            raise WonderlandError(f"{name} adds 0 or more tokens, not {count}.")
        at_least_one(name, dim=dim)
        if position not in ("first", "last"):
            raise WonderlandError(f"{name} puts its tokens 'first' or 'last', not {position!r}.")
        self.dim, self.count, self.position = dim, count, position
        self.tokens = nn.Parameter(torch.empty(count, dim).normal_(std=0.02))

    def laws(self) -> tuple[Callable[..., Any], ...]:
        """What this instance promises; the suite checks it."""
        from wonderland import laws

        always = (laws.batch_independence, laws.gradients, laws.determinism, laws.save_load)
        return (*always, laws.finiteness, laws.compiles)

    def forward(self, x: Any, mask: Any = None) -> tuple[Tensor, Tensor | None]:
        b, t = self.check(x, 0, mask)
        extra = self.tokens.to(x.dtype).expand(b, -1, -1)
        if self.position == "first":
            x = torch.cat([extra, x], 1)
        else:
            x = torch.cat([x, extra], 1)
            if mask is not None:
                place, n = torch.arange(t + self.count, device=x.device), lengths(mask).unsqueeze(1)
                source = torch.where(
                    place < n, place, torch.where(place < n + self.count, place - n + t, place - self.count)
                )
                x = _take(x, source)
        return x, mask if mask is None else torch.cat([mask.new_ones(b, self.count), mask], 1)

    def split(self, y: Any, mask: Any = None) -> tuple[Tensor, Tensor]:
        """The row's own tokens (b, t, dim) and the extra ones (b, count, dim); `mask` (b, t) as before they were added."""
        _, t = self.check(y, self.count, mask)
        if self.position == "first":
            return y[:, self.count :], y[:, : self.count]
        if mask is None:
            return y[:, :t], y[:, t:]
        place, n = torch.arange(t, device=y.device), lengths(mask).unsqueeze(1)
        own = _take(y, torch.where(place < n, place, place + self.count))
        return own, _take(y, n + torch.arange(self.count, device=y.device))

    def check(self, x: Any, extra: int, mask: Any) -> tuple[int, int]:
        """Say what is wrong with a sequence that holds `extra` tokens beside its own; how many rows and tokens it has."""
        name = type(self).__name__
        if not isinstance(x, Tensor) or x.dim() != 3 or x.shape[2] != self.dim or x.shape[1] <= extra:
            had = tuple(x.shape) if isinstance(x, Tensor) else f"a {type(x).__name__}"
            raise WonderlandError(
                f"{name} takes a sequence (batch, time, {self.dim}), of one token at least beside its own, not {had}."
            )
        check_features(x, self.dim, name, self.tokens)
        t = x.shape[1] - extra
        check_mask(mask, x[:, extra:], name)
        return x.shape[0], t


@part
class ClassToken(ExtraTokens):
    r"""One trained token that joins the sequence and is all the head reads of it.

    .. math:: X \leftarrow [X;\, c^\top]

    Last, as the book has it; `position="first"` as in ViT and BERT, and never for causal mixers, where the first token
    sees nothing. Shapes: x (b, t, dim) -> (b, t + 1, dim).
    Book: Alice 10.3.2. Paper: Devlin et al., 2019; Dosovitskiy et al., 2021.

    >>> token = ClassToken(dim=8)
    >>> longer, _ = token(torch.zeros(2, 5, 8))
    >>> [piece.shape[1] for piece in token.split(longer)]
    [5, 1]
    """

    def __init__(self, dim: int, *, position: str = "last"):
        super().__init__(dim, 1, position)


@part
class Registers(ExtraTokens):
    """Trained tokens that the head does not read: scratch space that keeps attention maps clean.

    First by default, so that causal mixers see them too. Shapes: x (b, t, dim) -> (b, t + count, dim).
    Book: Alice 10.3.2. Paper: Darcet et al., 2024.

    >>> Registers(dim=8, count=3)(torch.zeros(2, 5, 8))[0].shape
    torch.Size([2, 8, 8])
    """

    def __init__(self, dim: int, *, count: int = 4, position: str = "first"):
        super().__init__(dim, count, position)


def _take(x: Tensor, index: Tensor) -> Tensor:
    """The positions (b, s) of x (b, t, dim)."""
    return x.gather(1, index.unsqueeze(-1).expand(-1, -1, x.shape[2]))
