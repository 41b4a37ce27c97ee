"""Vector quantisation: a vector becomes the nearest of a few that are learned."""

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.arguments import Checked


@part
class VectorQuantiser(Checked, nn.Module):
    r"""The nearest code, with gradients straight through; codes follow the vectors they stand for.

    .. math:: k = \arg\min_j \lVert z - e_j \rVert, \quad q = e_k, \quad L = \lVert \text{sg}(z) - e_k \rVert^2 + \beta \lVert z - \text{sg}(e_k) \rVert^2

    `loss` holds L of the last call, `tokens` the codes. Shapes: z (..., dim) -> (..., dim), tokens (...).
    Book: Alice 11.2. Paper: van den Oord et al., 2017.

    >>> quantiser = VectorQuantiser(codes=8, dim=4)
    >>> quantiser(torch.randn(2, 3, 4)).shape, quantiser.tokens.shape
    (torch.Size([2, 3, 4]), torch.Size([2, 3]))
    """

    def __init__(self, codes: int, dim: int, *, beta: float = 0.25):
        super().__init__()
        if codes < 1 or dim < 1:
            raise WonderlandError("A quantiser needs at least one code and one feature.")
        self.beta = beta
        self.codes = nn.Parameter(torch.randn(codes, dim) / dim**0.5)
        self.loss, self.tokens = torch.zeros(()), torch.zeros(0, dtype=torch.long)

    def nearest(self, z: Tensor) -> Tensor:
        """The code of each vector: (..., dim) -> (...)."""
        flat = z.reshape(-1, z.shape[-1])
        return torch.cdist(flat, self.codes).argmin(-1).view(z.shape[:-1])

    def forward(self, z: Tensor) -> Tensor:
        self.tokens = self.nearest(z.detach())
        q = self.codes[self.tokens]
        self.loss = (z.detach() - q).square().mean() + self.beta * (z - q.detach()).square().mean()
        return z + (q - z).detach()
