"""Newton's step, and the step preconditioned by the diagonal of the Hessian."""

import torch
from jaxtyping import Float
from torch import Tensor


def newton(gradient: Float[Tensor, " d"], hessian: Float[Tensor, "d d"], *, lr: float = 1.0) -> Float[Tensor, " d"]:
    r"""The step to the minimum of the local quadratic model.

    .. math:: \Delta x = -\eta\, H^{-1} \nabla f(x)

    On a quadratic one step of rate 1 reaches the minimum. Where H has negative eigenvalues the step leads towards a
    saddle or a maximum; that of `preconditioned` does not. Book: D2L 12.3.

    >>> h = torch.tensor([[0.2, 0.0], [0.0, 4.0]])
    >>> x = torch.tensor([-5.0, -2.0])
    >>> x + newton(h @ x, h)
    tensor([0., 0.])
    """
    return -lr * torch.linalg.solve(hessian, gradient)


def preconditioned(gradient: Tensor, diagonal: Tensor, *, lr: float = 1.0, eps: float = 0.0) -> Tensor:
    r"""A step with each coordinate divided by its own curvature.

    .. math:: \Delta x = -\eta\, \frac{\nabla f(x)}{|\operatorname{diag}(H)| + \epsilon}

    The absolute value keeps the step downhill where the curvature is negative. Book: D2L 12.3.

    >>> preconditioned(torch.tensor([-1.0, -8.0]), torch.tensor([0.2, -4.0]))
    tensor([5., 2.])
    """
    return -lr * gradient / (diagonal.abs() + eps)
