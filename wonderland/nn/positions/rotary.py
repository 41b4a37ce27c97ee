"""Rotary positions: queries and keys turn with their place, so that their product sees the distance."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wonderland.core import WonderlandError, part
from wonderland.nn.positions.position import Position


@part
class Rotary(Position):
    r"""Each pair of features of a query or key is a point in the plane, turned by an angle proportional to its position.

    .. math::
        \begin{pmatrix} a \\ b \end{pmatrix} \leftarrow
        \begin{pmatrix} \cos m\theta_j & -\sin m\theta_j \\ \sin m\theta_j & \cos m\theta_j \end{pmatrix}
        \begin{pmatrix} a \\ b \end{pmatrix}, \qquad \theta_j = \mathrm{base}^{-2j / k}

    Norms stay, position 0 turns nothing, and the product of a query and a key depends on their distance alone.

    `layout` says which features are a pair: "half" pairs feature j with j + k / 2 (LLaMA, GPT-NeoX), "interleaved" pairs
    2j with 2j + 1 (the paper, GPT-J). `fraction` of the features are turned, the first ones (GPT-NeoX: 0.25).

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
    ):
        super().__init__()
        width = round(dim * fraction)
        if width < 2 or width % 2 or width > dim or base <= 1 or layout not in ("half", "interleaved"):
            raise WonderlandError(
                f"Rotary cannot be built with dim={dim}, base={base}, layout={layout!r}, fraction={fraction}: "
                'the number of turned features, dim times fraction, is even, base is above 1, layout is "half" or "interleaved".'
            )
        self.width, self.layout = (None if width == dim else width), layout
        steps = torch.arange(0, width, 2, dtype=torch.float64) / width
        frequencies = (float(base) ** -steps).to(torch.get_default_dtype())
        # The first of a pair turns backwards: cosines stay, sines change sign, and both members follow one formula.
        # Kept with the weights: a model built on the meta device gets it from the file, and it follows the model's type.
        both = torch.stack([-frequencies, frequencies], 0 if layout == "half" else 1)
        self.register_buffer("frequencies", both.flatten())

    def rotate(self, x: Float[Tensor, "b t heads k"], positions: Int[Tensor, "#b t"]) -> Float[Tensor, "b t heads k"]:
        self._check(x, positions)
        if self.width is not None:
            return torch.cat([self._turn(x[..., : self.width], positions), x[..., self.width :]], -1)
        return self._turn(x, positions)

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

    def _turn(self, x: Tensor, positions: Tensor) -> Tensor:
        angles = positions.view(*positions.shape, 1, 1) * self.frequencies
        cosine, sine = angles.cos(), angles.sin()
        if x.dtype != cosine.dtype:
            cosine, sine = cosine.to(x.dtype), sine.to(x.dtype)
        if self.layout == "half":
            partner = x.roll(x.shape[-1] // 2, -1)
        else:
            partner = x.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)
        return torch.addcmul(x * cosine, partner, sine)
