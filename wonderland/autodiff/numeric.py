"""Numerical derivatives: finite differences and the complex step."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from wonderland.core import WonderlandError, nearest

Function = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Scheme:
    """A difference scheme: its rule, its order in the step, how often it calls the function, and its best step eps**power.

    With a truncation error of order h**order and a rounding error of order eps / h, the sum is least at
    h = eps ** (1 / (order + 1)); a scheme that subtracts nothing has no rounding error to balance.
    """

    rule: Callable[[Function, Tensor, Tensor], Tensor]
    order: int
    calls: int
    power: float

    def step(self, dtype: torch.dtype) -> float:
        """The step that balances both errors, for a point of size one."""
        return torch.finfo(dtype).eps ** self.power


def forward_difference(f: Function, x: Tensor, move: Tensor) -> Tensor:
    r"""The one-sided change of f along a small move; the caller divides by the length of the move.

    .. math:: f(x + hv) - f(x) = h \, \partial f(x) v + O(h^2)

    Divided by h the error is of order h, and rounding adds eps / h: best at h = eps**(1/2), where half of the digits
    are right (about 1e-8 in float64). One call more than the value itself. Book: Alice 2.2.1 (E.2.15), 6.1.2; D2L 2.4.
    """
    return f(x + move) - f(x)


def central_difference(f: Function, x: Tensor, move: Tensor) -> Tensor:
    r"""Half the change of f from -move to +move; the caller divides by the length of the move.

    .. math:: \tfrac12 \left( f(x + hv) - f(x - hv) \right) = h \, \partial f(x) v + O(h^3)

    Even powers cancel: divided by h the error is of order h**2, and rounding adds eps / h: best at h = eps**(1/3), where
    two thirds of the digits are right (about 1e-10 in float64). Two calls. Book: Alice 6.1.2.
    """
    return (f(x + move) - f(x - move)) / 2


def complex_step(f: Function, x: Tensor, move: Tensor) -> Tensor:
    r"""The imaginary part of f after a small imaginary move; the caller divides by the length of the move.

    .. math:: \operatorname{Im} f(x + ihv) = h \, \partial f(x) v + O(h^3)

    Nothing is subtracted, so h may be so small that h**2 is below any rounding: all digits are right (1e-16 in float64).
    One call, in complex numbers. f must be real-analytic and consist of operations on complex numbers:
    no abs, no maximum, no comparison. Not in the books. Paper: Squire and Trapp, 1998.
    """
    try:
        out = f(torch.complex(x, move))
    except RuntimeError as error:
        if "omplex" not in str(error):
            raise
        raise WonderlandError(
            f"The complex step needs a function that accepts complex numbers ({error}): use 'central'."
        ) from error
    if not out.is_complex():
        raise WonderlandError(
            "The function returned real numbers for complex input, so it is not analytic (abs, real, a norm?): use 'central'."
        )
    return out.imag


SCHEMES = {
    "forward": Scheme(forward_difference, order=1, calls=2, power=1 / 2),
    "central": Scheme(central_difference, order=2, calls=2, power=1 / 3),
    "complex": Scheme(complex_step, order=2, calls=1, power=2),
}


def numerical_jacobian(f: Function, x: Tensor, *, scheme: str = "central", step: float | None = None) -> Tensor:
    r"""All partial derivatives of a function of one tensor, a difference for each entry of x.

    .. math:: \partial_j f_i(x) \approx \frac{f_i(x + h_j e_j) - f_i(x - h_j e_j)}{2 h_j}, \qquad
        h_j = \text{step} \cdot \max(1, |x_j|)

    Schemes: "forward" (error of order h), "central" (h**2), "complex" (h**2 without rounding error). The default step
    balances truncation and rounding for the precision of x. Costs the scheme's calls for every entry of x: for checking.

    Shapes: x (b), f(x) (a) -> (a, b), where a and b may be any shapes. Book: Alice 2.2.3, 6.1.2.

    >>> x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    >>> numerical_jacobian(lambda x: torch.stack([x[0] * x[1], x[0] ** 2]), x).round(decimals=6)
    tensor([[2., 1.],
            [2., 0.]], dtype=torch.float64)
    """
    chosen = _scheme(scheme)
    if not isinstance(x, Tensor) or not x.is_floating_point():
        actual = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise WonderlandError(f"Numerical derivatives need a tensor of real floating point numbers, not {actual}.")
    step = chosen.step(x.dtype) if step is None else step
    if not step > 0:
        raise WonderlandError(f"The step must be positive, not {step}.")
    columns = []
    with torch.no_grad():
        flat = x.detach().reshape(-1)
        for index in range(flat.numel()):
            columns.append(_along(f, x.detach(), index, step * max(1.0, abs(flat[index].item())), chosen))
        if not columns:
            out = f(x.detach())
            return out.new_zeros((*out.shape, *x.shape))
    return torch.stack(columns, -1).reshape((*columns[0].shape, *x.shape))


def _scheme(name: str) -> Scheme:
    if name not in SCHEMES:
        raise WonderlandError(
            f"There is no scheme {name!r}; the schemes are {', '.join(SCHEMES)}.{nearest(name, SCHEMES)}"
        )
    return SCHEMES[name]


def _along(f: Function, x: Tensor, index: int, h: float, scheme: Scheme) -> Tensor:
    """The derivative with respect to one entry. The move is (x + h) - x as computed, so that the rounding of x + h does not
    become an error of the quotient."""
    move = torch.zeros_like(x).reshape(-1)
    entry = x.reshape(-1)[index]
    move[index] = h if scheme.rule is complex_step else (entry + h) - entry
    if not move[index] > 0:
        raise WonderlandError(
            f"A step of {h:g} vanishes when added to {entry.item():g} in {x.dtype}: use a larger step, or float64."
        )
    return scheme.rule(f, x, move.reshape(x.shape)) / move[index]


def numerical_gradient(f: Function, x: Tensor, *, scheme: str = "central", step: float | None = None) -> Tensor:
    r"""The gradient of a scalar function of one tensor by differences: two calls of f for each entry of x.

    .. math:: \nabla f(x)_j \approx \frac{f(x + h_j e_j) - f(x - h_j e_j)}{2 h_j}

    Shapes: x (b) -> (b). Schemes and steps as in `numerical_jacobian`. Book: Alice 2.2.2, 6.1.2; D2L 2.4.

    >>> x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    >>> numerical_gradient(lambda x: (x**3).sum(), x, scheme="complex")
    tensor([ 3., 12.], dtype=torch.float64)
    >>> numerical_gradient(lambda x: (x**3).sum(), x, scheme="forward", step=0.1)
    tensor([ 3.3100, 13.2400], dtype=torch.float64)
    """
    jacobian = numerical_jacobian(f, x, scheme=scheme, step=step)
    if jacobian.dim() > x.dim():
        raise WonderlandError(
            f"A gradient needs a function that returns a scalar, not a tensor {tuple(jacobian.shape[: jacobian.dim() - x.dim()])}: "
            "take .sum(), or use numerical_jacobian."
        )
    return jacobian


def numerical_derivative(
    f: Function, x: Tensor, direction: Tensor, *, scheme: str = "central", step: float | None = None
) -> Tensor:
    r"""The directional derivative of a function at x, by differences: as many calls of f as the scheme needs.

    .. math:: D_v f(x) \approx \frac{f(x + hv) - f(x - hv)}{2h}

    Shapes: x (b), direction (b), f(x) (a) -> (a). Book: Alice 2.2.2 (E.2.20).

    >>> x, v = torch.tensor([1.0, 2.0], dtype=torch.float64), torch.tensor([3.0, 4.0], dtype=torch.float64)
    >>> numerical_derivative(lambda x: (x**2).sum(), x, v, scheme="complex")
    tensor(22., dtype=torch.float64)
    """
    if direction.shape != x.shape:
        raise WonderlandError(f"The direction has shape {tuple(direction.shape)} where x has {tuple(x.shape)}.")
    direction_size = direction.abs().max().item() if direction.numel() else 0.0
    if direction_size == 0:
        return torch.zeros_like(f(x))
    point_size = max(1.0, x.abs().max().item())

    def line(s: Tensor) -> Tensor:
        return f(x + s * (point_size / direction_size) * direction)

    return numerical_jacobian(line, x.new_zeros(()), scheme=scheme, step=step) * (direction_size / point_size)
