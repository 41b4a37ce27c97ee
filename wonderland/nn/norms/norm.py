"""Norms: the features of each token are normalised, so that activations keep their size through many layers."""

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.mixer import Pointwise
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

    def apply_to(self, x: Tensor) -> Tensor:
        return rms_norm(x, self.weight, self.eps)


@part
class ZeroCentredRMSNorm(RMSNorm):
    r"""RMSNorm whose gain is 1 plus its weight, which begins at 0, so that decay pulls the gain to 1 (Gemma).

    .. math:: y = \frac{x}{\sqrt{\frac{1}{d} \sum_i x_i^2 + \epsilon}} \odot (1 + \gamma)

    Shapes: x (..., dim) -> (..., dim). Paper: Gemma Team, 2024.

    >>> ZeroCentredRMSNorm(2)(torch.tensor([[[3.0, 4.0]]])).detach()
    tensor([[[0.8485, 1.1314]]])
    """

    no_decay = frozenset()

    def __init__(self, dim: int, *, eps: float | int = 1e-6):
        super().__init__(dim, eps=eps)
        nn.init.zeros_(self.weight)

    def apply_to(self, x: Tensor) -> Tensor:
        return rms_norm(x, 1 + self.weight, self.eps)


@part
class NoNorm(Pointwise):
    """Features as they are, where a block has a place for a norm and a model has none there (ModernBERT's first layer).

    Shapes: x (..., dim) -> (..., dim).

    >>> NoNorm(2)(torch.tensor([[[3.0, 4.0]]]))
    tensor([[[3., 4.]]])
    """

    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def apply_to(self, x: Tensor) -> Tensor:
        return x
