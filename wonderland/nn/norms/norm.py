"""Norms: each token brought to a standard size, so that depth does not blow it up."""

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.mixer import Pointwise
from wonderland.ops import steps
from wonderland.ops.layer_norm import layer_norm
from wonderland.ops.rms_norm import rms_norm


class Norm(Pointwise):
    """A norm over the features of each token, with a trained gain and an `eps` that keeps 0 finite."""

    no_decay = frozenset({"weight"})

    def __init__(self, dim: int, *, eps: float | int):
        super().__init__()
        if not eps > 0:
            raise WonderlandError(
                f"{type(self).__name__} adds a small positive eps, which keeps a token of zeros finite, not {eps}."
            )
        self.dim, self.eps = dim, float(eps)
        self.weight = nn.Parameter(torch.ones(dim))

    def form(self) -> tuple[Tensor, Tensor | None, float, bool] | None:
        """Gain, shift, eps, and whether the mean is taken away, for kernels that have the norm in them."""
        return None

    def laws(self):
        from wonderland import laws

        return (*super().laws(), laws.scale_invariance)


@part
class LayerNorm(Norm):
    r"""Each token to mean 0 and variance 1 over its features, then a trained gain and shift.

    .. math:: y = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} \odot \gamma + \beta

    Shapes: x (..., dim) -> (..., dim).
    Book: Alice 9.3.2; D2L 11.7. Paper: Ba et al., 2016.

    >>> LayerNorm(4)(torch.tensor([[[1.0, 2.0, 3.0, 4.0]]])).round(decimals=2)
    tensor([[[-1.3400, -0.4500,  0.4500,  1.3400]]], grad_fn=<RoundBackward1>)
    """

    def __init__(self, dim: int, *, bias: bool = True, eps: float | int = 1e-5):
        super().__init__(dim, eps=eps)
        self.bias = nn.Parameter(torch.zeros(dim)) if bias else None

    def branch(self, program: steps.Program) -> bool:
        weight, bias = (program.look(self._parameters, name) for name in ("weight", "bias"))
        program.add(steps.LAYER_NORM, (), (weight, bias), program.look(self, "eps"))
        return program.reads(weight)

    def form(self) -> tuple[Tensor, Tensor | None, float, bool] | None:
        return (self.weight, self.bias, self.eps, True) if type(self) is LayerNorm else None

    def apply_to(self, x: Tensor) -> Tensor:
        return layer_norm(x, self.weight, self.bias, self.eps)


@part
class RMSNorm(Norm):
    r"""Each token to mean square 1 over its features, then a trained gain; no mean is taken away.

    .. math:: y = \frac{x}{\sqrt{\frac{1}{d} \sum_i x_i^2 + \epsilon}} \odot \gamma

    Shapes: x (..., dim) -> (..., dim). Paper: Zhang and Sennrich, 2019.

    >>> RMSNorm(2)(torch.tensor([[[3.0, 4.0]]])).detach()
    tensor([[[0.8485, 1.1314]]])
    """

    def __init__(self, dim: int, *, eps: float | int = 1e-6):
        super().__init__(dim, eps=eps)

    def branch(self, program: steps.Program) -> bool:
        weight = program.look(self._parameters, "weight")
        program.add(steps.RMS_NORM, (), (weight,), program.look(self, "eps"))
        return program.reads(weight)

    def form(self) -> tuple[Tensor, Tensor | None, float, bool] | None:
        return (self.weight, None, self.eps, False) if type(self) is RMSNorm else None

    def apply_to(self, x: Tensor) -> Tensor:
        return rms_norm(x, self.weight, self.eps)
