"""Rotary positions: queries and keys are rotated by their positions, so that their product depends on the distance."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wonderland.core import WonderlandError, part
from wonderland.nn.positions.position import Position


@part
class Rotary(Position):
    r"""Each pair of features of a query or key is a point in the plane, rotated by an angle proportional to its position.

    .. math::
        \begin{pmatrix} a \\ b \end{pmatrix} \leftarrow
        \begin{pmatrix} \cos m\theta_j & -\sin m\theta_j \\ \sin m\theta_j & \cos m\theta_j \end{pmatrix}
        \begin{pmatrix} a \\ b \end{pmatrix}, \qquad \theta_j = \mathrm{base}^{-2j / k}

    Norms stay, position 0 is not rotated, and the product of a query and a key depends on their distance alone.

    `layout` says which features are a pair: "half" pairs feature j with j + k / 2 (LLaMA, GPT-NeoX), "interleaved" pairs
    2j with 2j + 1 (the paper, GPT-J). `fraction` of the features are rotated, the first ones (GPT-NeoX: 0.25). `stretch`
    rotates all pairs that many times slower, for longer texts than were trained on; with `bands` = (low, high, length), as
    LLaMA 3.1 has it, only those that rotate less than `low` times in `length` tokens, those above `high` not at all, and
    those between in part.

    Shapes: x (b, t, heads, dim), positions (b, t) -> (b, t, heads, dim); dim is the width of one head.
    Book: Alice 10.2.3. Paper: Su et al., 2021.

    >>> Rotary(4).rotate(torch.ones(1, 1, 2, 4), torch.tensor([[0]]))
    tensor([[[[1., 1., 1., 1.],
              [1., 1., 1., 1.]]]])
    """

    kind = "rotate"
    relative = True
    frequencies: Tensor

    def __init__(
        self,
        dim: int,
        heads: int = 1,
        *,
        base: float | int = 10000.0,
        layout: str = "half",
        fraction: float | int = 1.0,
        stretch: float | int = 1.0,
        bands: Sequence[float | int] | None = None,
    ):
        super().__init__()
        banded = isinstance(bands, Sequence) and len(bands) == 3
        if not stretch > 0 or (bands is not None and (not banded or not 0 < bands[0] < bands[1] or bands[2] <= 0)):
            raise WonderlandError(
                f"Rotary cannot be built with stretch={stretch}, bands={bands}: stretch is above 0, bands are three numbers, "
                "two counts of turns of which the second is larger, and a length."
            )
        width = round(dim * fraction)
        if width < 2 or width % 2 or width > dim or base <= 1 or layout not in ("half", "interleaved"):
            raise WonderlandError(
                f"Rotary cannot be built with dim={dim}, base={base}, layout={layout!r}, fraction={fraction}: "
                'the number of turned features, dim times fraction, is even, base is above 1, layout is "half" or "interleaved".'
            )
        self.width, self.layout = (None if width == dim else width), layout
        self.base, self.stretch, self.bands = float(base), float(stretch), None if bands is None else tuple(bands)
        self.register_buffer("frequencies", self.speeds(width, torch.float64).to(torch.get_default_dtype()))

    def speeds(self, width: int, dtype: torch.dtype) -> Tensor:
        """The angle by which each feature is rotated from one token to the next, in the order of the features."""
        steps = torch.arange(0, width, 2).to(dtype) / width
        frequencies = 1 / self.base**steps
        slower = frequencies / self.stretch
        if self.bands is not None:
            low, high, length = self.bands
            turns = length / (2 * math.pi / frequencies)
            part = ((turns - low) / (high - low)).clamp(0, 1)
            slower = (1 - part) * slower + part * frequencies
        # The first member of a pair has the negative frequency: its cosine is the same and its sine changes sign, so that
        # one formula serves both members.
        # Kept with the weights: a model built on the meta device gets it from the file, and it follows the model's type.
        return torch.stack([-slower, slower], 0 if self.layout == "half" else 1).flatten()

    def rotate(self, x: Float[Tensor, "b t heads k"], positions: Int[Tensor, "#b t"]) -> Float[Tensor, "b t heads k"]:
        self._check(x, positions)
        if self.width is not None:
            return torch.cat([self._rotated(x[..., : self.width], positions), x[..., self.width :]], -1)
        return self._rotated(x, positions)

    def _check(self, x: Tensor, positions: Tensor) -> None:
        turned = self.frequencies.shape[0]
        if x.dim() != 4 or x.shape[3] < turned or (self.width is None and x.shape[3] != turned):
            raise WonderlandError(
                f"Rotary takes queries or keys (batch, time, heads, {turned}{'' if self.width is None else ' or more'}), "
                f"not {tuple(x.shape)}."
            )
        if positions.dim() != 2 or positions.shape[1] != x.shape[1] or positions.shape[0] not in (1, x.shape[0]):
            raise WonderlandError(
                f"Rotary takes positions ({x.shape[0]}, {x.shape[1]}), or one row for all, not {tuple(positions.shape)}."
            )

    def _rotated(self, x: Tensor, positions: Tensor) -> Tensor:
        angles = positions.view(*positions.shape, 1, 1) * self.frequencies
        cosine, sine = angles.cos(), angles.sin()
        if x.dtype != cosine.dtype:
            cosine, sine = cosine.to(x.dtype), sine.to(x.dtype)
        if self.layout == "half":
            partner = x.roll(x.shape[-1] // 2, -1)
        else:
            partner = x.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)
        return torch.addcmul(x * cosine, partner, sine)
