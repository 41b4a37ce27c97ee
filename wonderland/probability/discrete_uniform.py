"""The uniform distribution over the whole numbers from 1 to n."""

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from wonderland.ops.algebra.arguments import count


class DiscreteUniform(Distribution):
    r"""Each of the numbers 1, ..., n with the same probability.

    .. math:: P(X = i) = \frac1n, \qquad \mathrm{E}[X] = \frac{1 + n}{2}, \quad \operatorname{Var}[X] = \frac{n^2 - 1}{12}

    torch.distributions has only the continuous one. Shapes: samples and events are scalars.
    Book: D2L 22.5 (discrete uniform).

    >>> die = DiscreteUniform(6)
    >>> die.mean, die.variance
    (tensor(3.5000, dtype=torch.float64), tensor(2.9167, dtype=torch.float64))
    >>> die.cdf(torch.tensor([0.0, 2.0, 9.0]))
    tensor([0.0000, 0.3333, 1.0000], dtype=torch.float64)
    """

    has_enumerate_support = True

    def __init__(self, n: int):
        self.n = count("n", n)
        super().__init__(validate_args=False)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        return {}

    @property
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(1, self.n)

    @property
    def mean(self) -> Tensor:
        return torch.tensor((1 + self.n) / 2, dtype=torch.float64)

    @property
    def variance(self) -> Tensor:
        return torch.tensor((self.n**2 - 1) / 12, dtype=torch.float64)

    def entropy(self) -> Tensor:
        return torch.tensor(float(self.n), dtype=torch.float64).log()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return torch.arange(1, self.n + 1)

    def sample(self, sample_shape: torch.Size | tuple[int, ...] = ()) -> Tensor:  # pyright: ignore
        return torch.randint(1, self.n + 1, tuple(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        inside = (value >= 1) & (value <= self.n) & (value == value.round())
        return torch.where(inside, -self.entropy(), -torch.inf)

    def cdf(self, value: Tensor) -> Tensor:
        return value.to(torch.float64).floor().clamp(0, self.n) / self.n
