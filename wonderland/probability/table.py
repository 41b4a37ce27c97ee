"""The joint probability table of two discrete variables: margins, conditionals, Bayes' theorem."""

from dataclasses import dataclass

from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, numbers
from wonderland.probability.arguments import probabilities


@dataclass(frozen=True, eq=False)
class JointTable:
    r"""The joint probabilities of two discrete variables, rows for the first and columns for the second.

    .. math::
        p(r) = \sum_w p(r, w), \qquad p(r, w) = p(r | w) p(w), \qquad
        p(r | w) = \frac{p(w | r) p(r)}{\sum_{r'} p(w | r') p(r')}

    Shapes: probs (a, b), summing to 1. Book: Alice A.1 (E.A.1-E.A.3, table A.1); D2L 2.6.

    >>> table = JointTable.from_counts([[58, 2], [27, 3], [2, 8]])
    >>> table.rows, table.given_row(2)
    (tensor([0.6000, 0.3000, 0.1000], dtype=torch.float64), tensor([0.2000, 0.8000], dtype=torch.float64))
    """

    probs: Tensor

    def __post_init__(self):
        object.__setattr__(self, "probs", probabilities("probs", self.probs, 2))

    @classmethod
    def from_counts(cls, counts: Numbers) -> "JointTable":
        """The table of relative frequencies."""
        table = numbers("counts", counts, 2)
        if bool((table < 0).any()) or float(table.sum()) == 0:
            raise WonderlandError("`counts` has to be non-negative, with at least one count above 0.")
        return cls(table / table.sum())

    @classmethod
    def from_conditional(cls, prior: Numbers, likelihood: Numbers) -> "JointTable":
        """The product rule: p(row) (a,) and p(column | row) (a, b), each row of which sums to 1."""
        margin = probabilities("prior", prior, 1)
        conditional = numbers("likelihood", likelihood, 2)
        if len(conditional) != len(margin):
            raise WonderlandError(f"`likelihood` has {len(conditional)} rows where `prior` has {len(margin)} entries.")
        for index, row in enumerate(likelihood if isinstance(likelihood, Tensor) else conditional):
            probabilities(f"likelihood[{index}]", row)
        joint = margin.unsqueeze(1) * conditional
        # Probabilities given in float32 sum to 1 within their rounding only.
        rounded = abs(float(joint.sum()) - 1) > 1e-8
        return cls(joint / joint.sum() if rounded else joint)

    @property
    def rows(self) -> Tensor:
        """The sum rule: probabilities of the first variable (a,)."""
        return self.probs.sum(1)

    @property
    def columns(self) -> Tensor:
        """The sum rule: probabilities of the second variable (b,)."""
        return self.probs.sum(0)

    def given_row(self, row: int) -> Tensor:
        """Probabilities of the second variable when the first is known (b,)."""
        return _conditional(self.probs, row, "row")

    def given_column(self, column: int) -> Tensor:
        """Bayes: probabilities of the first variable when the second is known (a,)."""
        return _conditional(self.probs.T, column, "column")

    def independent(self, tolerance: float = 1e-9) -> bool:
        """Whether the table is the product of its margins."""
        product = self.rows.unsqueeze(1) * self.columns
        return bool(((self.probs - product).abs() <= tolerance).all())


def _conditional(table: Tensor, index: int, name: str) -> Tensor:
    if not 0 <= index < len(table):
        raise WonderlandError(f"`{name}` is {index}, and the table has {len(table)}, counted from 0.")
    total = table[index].sum()
    if float(total) == 0:
        raise WonderlandError(f"`{name}` {index} has probability 0: there is no distribution given it.")
    return table[index] / total
