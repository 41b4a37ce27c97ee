"""Deep Sets: the linear layer that is equivariant to permutations, each element beside the mean of all."""

from torch import Tensor, nn

from wonderland.core import part
from wonderland.nn.contract.mixer import Mixer, positions
from wonderland.nn.contract.state import Layout, Slot, State


@part
class DeepSets(Mixer):
    r"""The linear layer that commutes with every reordering of the tokens.

    .. math:: y_i = \Lambda x_i + \Gamma \frac{1}{n} \sum_j x_j + b

    With `causal=True` the mean runs over the tokens so far; the order then matters, and the layer streams.

    Shapes: x (b, t, dim) -> (b, t, dim); state of the causal form: the sum so far (b, dim), and the count.
    Book: Alice 10, exercise. Paper: Zaheer et al., 2017.

    >>> import torch
    >>> DeepSets(dim=8)(torch.zeros(2, 5, 8)).shape
    torch.Size([2, 5, 8])
    """

    def __init__(self, dim: int, *, bias: bool = True, causal: bool = False):
        super().__init__()
        self.dim, self.causal = dim, causal
        self.each = nn.Linear(dim, dim, bias=bias)
        self.mean = nn.Linear(dim, dim, bias=False)

    def laws(self):
        from wonderland import laws

        return (*super().laws(), laws.strict_causality if self.causal else laws.permutation_equivariance)

    def layout(self) -> Layout:
        return (Slot((self.dim,)),)

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        if not self.causal:
            total = x.sum(1, keepdim=True)
            mean = total / (x.shape[1] if mask is None else mask.sum(1).view(-1, 1, 1))
            return self.each(x) + self.mean(mean), ()
        sums = x.cumsum(1) if state is None else x.cumsum(1) + state[0].unsqueeze(1)
        count = (positions(x, seen) + 1).unsqueeze(-1)
        return self.each(x) + self.mean(sums / count), (sums[:, -1].clone(),)
