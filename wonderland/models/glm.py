"""A generalised linear model of tables: counts, positive amounts, or two classes."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.rows import row_features, width_of
from wonderland.nn.contract.arguments import Checked, at_least_one
from wonderland.ops.algebra.arguments import choice
from wonderland.solvers.generalised import FAMILIES, generalised_linear

OF_CLASSES = ("probit", "logit")


@part
class GLM(Checked, nn.Module):
    r"""A generalised linear model, fitted by Newton's method: the mean is a function of :math:`\eta = w^\top x + b`.

    `family` is "poisson" (counts) or "gamma" (positive amounts), both with mean :math:`e^\eta`; or "probit" or "logit" for two
    classes. `ridge` keeps weights finite where columns repeat each other or classes can be separated.

    Shapes: x (b, p + q) -> (b, 1), or log-probabilities (b, 2). Book: Alice 4.3.1.

    >>> model = GLM(numbers=1)
    >>> model.fit_rows(torch.tensor([[0.0], [0.0], [1.0], [1.0]]), torch.tensor([1.0, 3.0, 4.0, 8.0]))
    >>> model(torch.tensor([[0.0], [1.0]])).round(decimals=1).tolist()
    [[2.0], [6.0]]
    """

    closed_form = True
    number_families = ("poisson", "gamma")
    own_scale = True  # targets are given as they are, and not brought to mean 0

    def __init__(
        self,
        numbers: int,
        levels: Sequence[int] = (),
        outputs: int = 1,
        *,
        family: str | None = None,
        ridge: float = 1e-3,
    ):
        super().__init__()
        family = ("poisson" if outputs == 1 else "logit") if family is None else family
        choice("family", family, FAMILIES)
        if outputs != (2 if family in OF_CLASSES else 1):
            has = "two classes" if family in OF_CLASSES else "numbers"
            here = "a number is" if outputs == 1 else f"{outputs} classes are"
            raise WonderlandError(f"GLM(family={family!r}) predicts {has}, and here {here} to be predicted.")
        if not 0 <= ridge < 1e9:
            raise WonderlandError(f"GLM takes a ridge of 0 or more, not {ridge}.")
        self.numbers, self.levels, self.outputs, self.family, self.ridge = numbers, list(levels), outputs, family, ridge
        width = width_of("GLM", numbers, levels)
        at_least_one("GLM", features=width)
        self.register_buffer("weights", torch.zeros(width, dtype=torch.float64))
        self.register_buffer("bias", torch.zeros((), dtype=torch.float64))
        self.register_buffer("standard", torch.tensor([0.0, 1.0], dtype=torch.float64))

    weights: Tensor
    bias: Tensor
    standard: Tensor

    def fit_rows(
        self, x: Tensor, y: Tensor, weight: Tensor | None = None, mean: float = 0.0, scale: float = 1.0
    ) -> None:
        """Fit to all rows at once; outputs are (prediction - mean) / scale. Shapes: x (n, p + q), y (n,)."""
        X = row_features(x, self.numbers, self.levels)
        mass = None if weight is None else weight.double()
        try:
            fit = generalised_linear(X, y.double(), family=self.family, ridge=self.ridge, sample_weight=mass)
        except WonderlandError as error:
            raise WonderlandError(f"GLM(family={self.family!r}) cannot be fitted: {error}") from error
        with torch.no_grad():
            self.weights.copy_(fit.weights)
            self.bias.fill_(fit.bias)
            self.standard.copy_(torch.tensor([mean, scale], dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        eta = row_features(x, self.numbers, self.levels) @ self.weights + self.bias
        if self.family == "logit":
            output = torch.stack([nn.functional.logsigmoid(-eta), nn.functional.logsigmoid(eta)], 1)
        elif self.family == "probit":
            output = torch.stack([torch.special.log_ndtr(-eta), torch.special.log_ndtr(eta)], 1)
        else:
            output = ((eta.clamp(max=300).exp() - self.standard[0]) / self.standard[1]).unsqueeze(1)
        return output.to(x.dtype if x.is_floating_point() else torch.float32)
