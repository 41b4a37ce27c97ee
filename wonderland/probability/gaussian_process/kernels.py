"""Kernels: how alike the values of a function are at two places, and the algebra of kernels."""

import math
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, numbers
from wonderland.probability.gaussian_process.distances import Stationary


def positive(name: str, value: Numbers, dims: tuple[int, ...] = (0,)) -> Tensor:
    """The argument `name` as positive numbers in float64."""
    tensor = numbers(name, value)
    if tensor.dim() not in dims:
        raise WonderlandError(
            f"`{name}` has shape {tuple(tensor.shape)} and has to be one number{' or a vector' if 1 in dims else ''}."
        )
    if bool((tensor.detach() <= 0).any()):
        raise WonderlandError(f"`{name}` holds {float(tensor.min()):g}: it has to be above 0.")
    return tensor


class Kernel(ABC):
    """A covariance function. Hyperparameters are positive; `theta` is the vector of their logarithms.

    Kernels are values: `with_theta` makes another one, `+` and `*` combine them, a number scales. They are float64.

    >>> kernel = 2.0 * RBF(0.5) + Linear()
    >>> kernel.names
    ('constant', 'length_scale', 'bias')
    """

    values: dict[str, Tensor]

    @abstractmethod
    def matrix(self, x: Tensor, y: Tensor, same: bool) -> Tensor:
        """Covariances of all pairs of rows. Shapes: (n, d), (m, d) -> (n, m)."""

    @abstractmethod
    def diagonal(self, x: Tensor) -> Tensor:
        """Variances. Shapes: (n, d) -> (n,)."""

    @abstractmethod
    def rebuilt(self, values: dict[str, Tensor]) -> "Kernel":
        """The same kernel with other hyperparameters."""

    def __call__(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Covariances of all pairs of rows. Shapes: (n, d), (m, d) -> (n, m); without y those of x with itself."""
        return self.matrix(x, x, True) if y is None else self.matrix(x, y, False)

    @property
    def parts(self) -> tuple["Kernel", ...]:
        """Kernels this one is made of."""
        return ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the hyperparameters, one for each entry of theta."""
        own = tuple(
            f"{name}[{i}]" if value.dim() else name
            for name, value in self.values.items()
            for i in range(max(1, value.numel()))
        )
        return own + tuple(name for part in self.parts for name in part.names)

    @property
    def theta(self) -> Tensor:
        """Logarithms of all hyperparameters. Shapes: (p,)."""
        own = [value.log().reshape(-1) for value in self.values.values()]
        return torch.cat([*own, *(part.theta for part in self.parts), torch.zeros(0, dtype=torch.float64)])

    def with_theta(self, theta: Tensor) -> "Kernel":
        """The kernel with these log hyperparameters; gradients flow through them. Shapes: (p,)."""
        kernel, used = self._take(theta, 0)
        if used != len(theta):
            raise WonderlandError(f"`theta` has {len(theta)} entries where the kernel has {used}.")
        return kernel

    def _take(self, theta: Tensor, start: int) -> tuple["Kernel", int]:
        values = {}
        for name, value in self.values.items():
            values[name] = theta[start : start + value.numel()].exp().reshape(value.shape)
            start += value.numel()
        return self.rebuilt(values), start

    def __add__(self, other: Any) -> "Kernel":
        return Sum(self, _kernel(other))

    __radd__ = __add__

    def __mul__(self, other: Any) -> "Kernel":
        return Product(_kernel(other), self) if isinstance(other, int | float) else Product(self, _kernel(other))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={_short(value)}" for name, value in self.values.items())
        return f"{type(self).__name__}({inside})"


def _short(value: Tensor) -> str:
    numbers_ = [f"{number:.3g}" for number in value.detach().reshape(-1).tolist()]
    return f"[{', '.join(numbers_)}]" if value.dim() else numbers_[0]


def _kernel(value: Any) -> Kernel:
    if isinstance(value, Kernel):
        return value
    if isinstance(value, int | float):
        return Constant(value)
    raise WonderlandError(f"A kernel is combined with kernels and numbers, not with {value!r}.")


class _Scaled(Kernel):
    """A kernel with a length scale: one, or one for each feature (ARD)."""

    shape_name = ""

    def __init__(self, length_scale: Numbers = 1.0):
        self.values = {"length_scale": positive("length_scale", length_scale, (0, 1))}

    def scaled(self, x: Tensor) -> Tensor:
        scale = self.values["length_scale"]
        if scale.dim() and len(scale) != x.shape[1]:
            raise WonderlandError(f"`length_scale` has {len(scale)} entries where rows have {x.shape[1]} features.")
        return x / scale

    def diagonal(self, x: Tensor) -> Tensor:
        return torch.ones(len(x), dtype=torch.float64)


class RBF(_Scaled):
    r"""Smooth functions: :math:`\exp\left(-\tfrac12 \sum_d (x_d - y_d)^2 / \ell_d^2\right)`. Book: D2L 18.1.

    >>> RBF(2.0)(torch.tensor([[0.0], [2.0]], dtype=torch.float64))[0, 1].item() == math.exp(-0.5)
    True
    """

    def matrix(self, x: Tensor, y: Tensor, same: bool) -> Tensor:
        u = self.scaled(x)
        return _apply(u, u if same else self.scaled(y), "rbf", None, None, same)

    def rebuilt(self, values: dict[str, Tensor]) -> "RBF":
        return _with(RBF, values)


class Matern(_Scaled):
    r"""Rough functions, :math:`\nu = \tfrac12, \tfrac32, \tfrac52`: none, one or two derivatives.

    .. math:: k_{1/2} = e^{-r}, \quad k_{3/2} = (1 + \sqrt3 r) e^{-\sqrt3 r}, \quad
              k_{5/2} = (1 + \sqrt5 r + \tfrac53 r^2) e^{-\sqrt5 r}, \qquad r = \|(x - y) / \ell\|

    >>> Matern(1.0, nu=0.5)(torch.tensor([[0.0], [1.0]], dtype=torch.float64))[0, 1].item() == math.exp(-1)
    True
    """

    def __init__(self, length_scale: Numbers = 1.0, *, nu: float = 2.5):
        super().__init__(length_scale)
        if nu not in (0.5, 1.5, 2.5):
            raise WonderlandError(f"`nu` is 0.5, 1.5 or 2.5, not {nu}.")
        self.nu = nu

    def matrix(self, x: Tensor, y: Tensor, same: bool) -> Tensor:
        u = self.scaled(x)
        return _apply(u, u if same else self.scaled(y), "matern", None, self.nu, same)

    def rebuilt(self, values: dict[str, Tensor]) -> "Matern":
        return _with(Matern, values, nu=self.nu)


class RationalQuadratic(_Scaled):
    r"""A mixture of length scales: :math:`\left(1 + \tfrac{r^2}{2 \alpha}\right)^{-\alpha}`.

    >>> RationalQuadratic(1.0, alpha=1.0)(torch.tensor([[0.0], [2.0]], dtype=torch.float64))[0, 1]
    tensor(0.3333, dtype=torch.float64)
    """

    def __init__(self, length_scale: Numbers = 1.0, alpha: float = 1.0):
        super().__init__(length_scale)
        self.values["alpha"] = positive("alpha", alpha)

    def matrix(self, x: Tensor, y: Tensor, same: bool) -> Tensor:
        u = self.scaled(x)
        return _apply(u, u if same else self.scaled(y), "quadratic", self.values["alpha"], None, same)

    def rebuilt(self, values: dict[str, Tensor]) -> "RationalQuadratic":
        return _with(RationalQuadratic, values)


class Periodic(Kernel):
    r"""Functions that repeat: :math:`\exp\left(-2 \sum_d \sin^2(\pi (x_d - y_d) / p) / \ell^2\right)`.

    For one feature this is scikit-learn's ExpSineSquared; with several, theirs takes the sine of the whole distance, which
    is no covariance.

    >>> Periodic(1.0, period=3.0)(torch.tensor([[0.0], [3.0]], dtype=torch.float64))[0, 1].round(decimals=6)
    tensor(1., dtype=torch.float64)
    """

    def __init__(self, length_scale: float = 1.0, period: float = 1.0):
        self.values = {"length_scale": positive("length_scale", length_scale), "period": positive("period", period)}

    def matrix(self, x: Tensor, y: Tensor, same: bool) -> Tensor:
        turn = torch.zeros(len(x), len(y), dtype=torch.float64)
        for d in range(x.shape[1]):
            turn = turn + torch.sin((x[:, d, None] - y[None, :, d]) * (math.pi / self.values["period"])).square()
        return torch.exp(turn * (-2 / self.values["length_scale"].square()))

    def diagonal(self, x: Tensor) -> Tensor:
        return torch.ones(len(x), dtype=torch.float64)

    def rebuilt(self, values: dict[str, Tensor]) -> "Periodic":
        return _with(Periodic, values)


class Linear(Kernel):
    r"""Lines: :math:`\sigma^2 + x^\top y`, scikit-learn's DotProduct. `bias` is :math:`\sigma`.

    >>> Linear(1.0)(torch.tensor([[2.0]], dtype=torch.float64))
    tensor([[5.]], dtype=torch.float64)
    """

    def __init__(self, bias: float = 1.0):
        self.values = {"bias": positive("bias", bias)}

    def matrix(self, x: Tensor, y: Tensor, same: bool) -> Tensor:
        return x @ y.T + self.values["bias"].square()

    def diagonal(self, x: Tensor) -> Tensor:
        return x.square().sum(1) + self.values["bias"].square()

    def rebuilt(self, values: dict[str, Tensor]) -> "Linear":
        return _with(Linear, values)


class Polynomial(Kernel):
    r"""Polynomials of a degree: :math:`(x^\top y + c)^p`. `offset` is c.

    >>> Polynomial(2, offset=1.0)(torch.tensor([[2.0]], dtype=torch.float64))
    tensor([[25.]], dtype=torch.float64)
    """

    def __init__(self, degree: int = 2, offset: float = 1.0):
        if isinstance(degree, bool) or not isinstance(degree, int) or degree < 1:
            raise WonderlandError(f"`degree` has to be a whole number of at least 1, not {degree}.")
        self.degree = degree
        self.values = {"offset": positive("offset", offset)}

    def matrix(self, x: Tensor, y: Tensor, same: bool) -> Tensor:
        return (x @ y.T + self.values["offset"]).pow(self.degree)

    def diagonal(self, x: Tensor) -> Tensor:
        return (x.square().sum(1) + self.values["offset"]).pow(self.degree)

    def rebuilt(self, values: dict[str, Tensor]) -> "Polynomial":
        return _with(Polynomial, values, degree=self.degree)


class ArcSine(Kernel):
    r"""A network with one endless hidden layer of erf units.

    .. math:: \frac2\pi \arcsin \frac{2 \tilde x^\top \Sigma \tilde y}{\sqrt{(1 + 2 \tilde x^\top \Sigma \tilde x)
              (1 + 2 \tilde y^\top \Sigma \tilde y)}}, \qquad \tilde x = (1, x)

    with variance `bias` for the constant and `weight` for the features. Paper: Williams, 1998.

    >>> kernel = ArcSine()
    >>> x = torch.tensor([[0.0], [5.0]], dtype=torch.float64)
    >>> torch.allclose(kernel(x).diagonal(), kernel.diagonal(x))
    True
    """

    def __init__(self, weight: float = 1.0, bias: float = 1.0):
        self.values = {"weight": positive("weight", weight), "bias": positive("bias", bias)}

    def _inner(self, x: Tensor) -> Tensor:
        return 2 * (self.values["bias"] + self.values["weight"] * x.square().sum(1))

    def matrix(self, x: Tensor, y: Tensor, same: bool) -> Tensor:
        inner = 2 * (self.values["bias"] + self.values["weight"] * (x @ y.T))
        wide = (1 + self._inner(x)).unsqueeze(1) * (1 + self._inner(y))
        return torch.asin(inner / wide.sqrt()) * (2 / math.pi)

    def diagonal(self, x: Tensor) -> Tensor:
        inner = self._inner(x)
        return torch.asin(inner / (1 + inner)) * (2 / math.pi)

    def rebuilt(self, values: dict[str, Tensor]) -> "ArcSine":
        return _with(ArcSine, values)


class Constant(Kernel):
    """A constant covariance; times a kernel it is the variance of the function. `2.0 * RBF()` makes one.

    >>> Constant(3.0)(torch.zeros(1, 1, dtype=torch.float64))
    tensor([[3.]], dtype=torch.float64)
    """

    def __init__(self, constant: float = 1.0):
        self.values = {"constant": positive("constant", constant)}

    def matrix(self, x: Tensor, y: Tensor, same: bool) -> Tensor:
        return self.values["constant"].expand(len(x), len(y))

    def diagonal(self, x: Tensor) -> Tensor:
        return self.values["constant"].expand(len(x))

    def rebuilt(self, values: dict[str, Tensor]) -> "Constant":
        return _with(Constant, values)


class _Pair(Kernel):
    sign = ""

    def __init__(self, first: Kernel, second: Kernel):
        self.values, self.first, self.second = {}, first, second

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return self.first, self.second

    def rebuilt(self, values: dict[str, Tensor]) -> Kernel:
        return self

    def _take(self, theta: Tensor, start: int) -> tuple[Kernel, int]:
        first, start = self.first._take(theta, start)
        second, start = self.second._take(theta, start)
        return type(self)(first, second), start

    def __repr__(self) -> str:
        return f"({self.first!r} {self.sign} {self.second!r})"


class Sum(_Pair):
    """The covariance of a sum of independent functions.

    >>> (RBF() + 1.0)(torch.zeros(1, 1, dtype=torch.float64))
    tensor([[2.]], dtype=torch.float64)
    """

    sign = "+"

    def matrix(self, x: Tensor, y: Tensor, same: bool) -> Tensor:
        return self.first.matrix(x, y, same) + self.second.matrix(x, y, same)

    def diagonal(self, x: Tensor) -> Tensor:
        return self.first.diagonal(x) + self.second.diagonal(x)


class Product(_Pair):
    """The product of two covariances, which is a covariance.

    >>> (2.0 * RBF())(torch.zeros(1, 1, dtype=torch.float64))
    tensor([[2.]], dtype=torch.float64)
    """

    sign = "*"

    def matrix(self, x: Tensor, y: Tensor, same: bool) -> Tensor:
        if isinstance(self.first, Constant):
            return self.second.matrix(x, y, same) * self.first.values["constant"]
        return self.first.matrix(x, y, same) * self.second.matrix(x, y, same)

    def diagonal(self, x: Tensor) -> Tensor:
        return self.first.diagonal(x) * self.second.diagonal(x)


def _with(kind: Any, values: dict[str, Tensor], **rest: Any) -> Any:
    """A kernel of a kind with these tensors as they are, so that gradients flow."""
    kernel = kind(**rest)
    kernel.values = values
    return kernel


def _apply(u: Tensor, v: Tensor, name: str, shape: Tensor | None, nu: float | None, same: bool) -> Tensor:
    matrix = Stationary.apply(u, v, name, shape, nu, same)
    assert isinstance(matrix, Tensor)
    return matrix
