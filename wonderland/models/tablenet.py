"""TableNet: an ensemble of small networks for the rows of a table."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.blocks.ensemble import MemberDropout, MemberEmbeddings, MemberLinear, PeriodicNumbers
from wonderland.nn.contract.arguments import Checked, at_least_one


@part
class TableNet(Checked, nn.Module):
    r"""An ensemble of MLPs over rows of numbers and categories; one output for each member.

    Numbers are encoded periodically and categories embedded; hidden layers follow, with a linear skip connection from the
    inputs to the outputs:

    .. math::
        h_0 = [e(z), E(c)], \quad h_{l+1} = \mathrm{dropout}(\mathrm{silu}(h_l W_l + b_l)), \quad
        y = h_L W_L + b_L + [z, E(c)] V

    The skip connection V is initialised to zero. There is a member for each entry of `sigmas` (the scale of its initial
    frequencies) and `dropout`. Members that `linear` marks have no hidden layers, y = [z, E(c)] V + b_L.

    Shapes: x (b, p + q), the same rows for every member, or (m, b, p + q) -> (m, b, outputs); the first p = `numbers`
    columns are numbers, the last q are codes of categories with `levels` codes each.

    >>> net = TableNet(numbers=3, levels=[4], outputs=2, sigmas=[0.1, 0.7], dropout=[0.0, 0.1])
    >>> net(torch.zeros(5, 4)).shape
    torch.Size([2, 5, 2])
    """

    deep: Tensor
    flat: Tensor
    order: Tensor

    def __init__(
        self,
        numbers: int,
        levels: Sequence[int],
        outputs: int,
        *,
        sigmas: Sequence[float] = (0.1, 0.7),
        dropout: Sequence[float] = (0.1, 0.1),
        dim: int = 128,
        depth: int = 2,
        number_dim: int = 4,
        category_dim: int = 4,
        frequencies: int = 16,
        linear: Sequence[bool] | None = None,
    ):
        super().__init__()
        if linear is not None and (len(linear) != len(sigmas) or all(linear)):
            raise WonderlandError(
                f"linear says for each of {len(sigmas)} members whether it has no hidden layers, and at least one has some."
            )
        self.linear = None if linear is None or not any(linear) else [bool(flag) for flag in linear]
        if len(sigmas) != len(dropout) or not sigmas:
            raise WonderlandError(
                f"TableNet needs a sigma and a dropout for each member, not {len(sigmas)} and {len(dropout)}."
            )
        if numbers + len(levels) < 1 or min(numbers, outputs - 1, depth - 1, dim - 1, number_dim - 2) < 0:
            raise WonderlandError(
                "TableNet needs at least one column, one output, one layer, and number_dim of at least 2."
            )
        at_least_one("TableNet", category_dim=category_dim, frequencies=frequencies)
        self.members, self.numbers, self.columns = len(sigmas), numbers, numbers + len(levels)
        self.encode = PeriodicNumbers(numbers, number_dim, sigmas, frequencies=frequencies) if numbers else None
        self.embed = MemberEmbeddings(self.members, levels, category_dim) if levels else None
        width = numbers * number_dim + len(levels) * category_dim
        self.hidden = nn.ModuleList(MemberLinear(self.members, dim if i else width, dim) for i in range(depth))
        self.dropout = MemberDropout(dropout)
        self.head = MemberLinear(self.members, dim, outputs)
        nn.init.zeros_(self.head.bias)
        self.line = nn.Parameter(torch.zeros(self.members, numbers + len(levels) * category_dim, outputs))
        flags = self.linear or [False] * self.members
        deep, flat = ([i for i, flag in enumerate(flags) if flag is kind] for kind in (False, True))
        order = {member: place for place, member in enumerate([*deep, *flat])}
        self.register_buffer("deep", torch.tensor(deep), persistent=False)  # members with hidden layers
        self.register_buffer("flat", torch.tensor(flat, dtype=torch.long), persistent=False)
        self.register_buffer("order", torch.tensor([order[i] for i in range(self.members)]), persistent=False)

    def forward(self, x: Float[Tensor, "*m b c"]) -> Float[Tensor, "k b o"]:
        if x.shape[-1] != self.columns:
            raise WonderlandError(f"This model reads {self.columns} columns, not {x.shape[-1]}.")
        if x.dim() == 2:
            x = x.expand(self.members, *x.shape)
        codes = [] if self.embed is None else [self.embed(x[..., self.numbers :])]
        if self.linear is not None:
            return self._with_linear(x[..., : self.numbers], codes)
        encoded = [] if self.encode is None else [self.encode(x[..., : self.numbers])]
        plain = [part[..., : self.numbers] for part in encoded] + codes
        bent = self.head(self._hidden(torch.cat(encoded + codes, -1)))
        return bent + torch.bmm(torch.cat(plain, -1), self.line)

    def _hidden(self, h: Tensor, members: Tensor | None = None) -> Tensor:
        for layer in self.hidden:
            h = self.dropout(F.silu(layer(h, members)), members)
        return h

    def _with_linear(self, z: Tensor, codes: list[Tensor]) -> Tensor:
        """The outputs where some members have no hidden layers, which are computed for the others only."""
        plain, encoded = list(codes), [part[self.deep] for part in codes]
        if self.encode is not None:
            plain.insert(0, z * self.encode.scale)
            encoded.insert(0, self.encode(z[self.deep], self.deep))
        bent = self.head(self._hidden(torch.cat(encoded, -1), self.deep), self.deep)
        flat = self.head.bias[self.flat].expand(-1, z.shape[1], -1)
        return torch.cat([bent, flat])[self.order] + torch.bmm(torch.cat(plain, -1), self.line)
