"""A Gaussian process as a model of tables: fitted in one step, with a standard deviation for each prediction."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, nearest, part
from wonderland.models.rows import copies, row_features, width_of
from wonderland.nn.contract.arguments import Checked, at_least_one
from wonderland.probability.gaussian_process.classification import averaged_chance, laplace_classifier
from wonderland.probability.gaussian_process.kernels import (
    RBF,
    ArcSine,
    Kernel,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
)
from wonderland.probability.gaussian_process.regression import GaussianProcess as Process
from wonderland.probability.gaussian_process.sparse import fit_sparse
from wonderland.probability.gaussian_process.variational import fit_variational

KERNELS = {
    "rbf": lambda scale: RBF(scale),
    "matern": lambda scale: Matern(scale, nu=2.5),
    "matern12": lambda scale: Matern(scale, nu=0.5),
    "matern32": lambda scale: Matern(scale, nu=1.5),
    "rational_quadratic": lambda scale: RationalQuadratic(scale),
    "periodic": lambda scale: Periodic(),
    "linear": lambda scale: Linear(),
    "polynomial": lambda scale: Polynomial(),
    "arcsine": lambda scale: ArcSine(),
}
MOST_ENTRIES = 8_000_000  # of the factors that are stored
MOST_TERMS = 10
ARD = 16  # features up to which each has a length scale of its own
EXACT, SPARSE, LAPLACE, VARIATIONAL = range(4)


def read_kernel(text: str, features: int, ard: bool) -> Kernel:
    """A kernel from its name, or names joined by + and *; each term has a variance of its own.

    >>> read_kernel("rbf + linear", 2, ard=True).names
    ('constant', 'length_scale[0]', 'length_scale[1]', 'constant', 'bias')
    """
    scale = [features**0.5] * features if ard else features**0.5
    terms = []
    if not isinstance(text, str) or len(text) > 500:
        raise WonderlandError("The kernel of GaussianProcess is a text such as 'rbf' or 'matern + linear'.")
    names = [[name.strip() for name in term.split("*")] for term in text.split("+")]
    if sum(map(len, names)) > MOST_TERMS:
        raise WonderlandError(
            f"The kernel of GaussianProcess has at most {MOST_TERMS} parts, not {sum(map(len, names))}."
        )
    for term in names:
        product: Kernel | None = None
        for name in term:
            if name not in KERNELS:
                raise WonderlandError(
                    f"There is no kernel {name[:60]!r}.{nearest(name[:60], KERNELS)} Known are {', '.join(KERNELS)}, and "
                    "sums and products of them."
                )
            own = KERNELS[name](scale)
            product = own if product is None else product * own
        assert product is not None
        terms.append(1.0 * product)
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


@part
class GaussianProcess(Checked, nn.Module):
    r"""A Gaussian process over the rows of a table: numbers, two classes, or one process for each class.

    .. math:: f \sim \mathcal{GP}(0, k), \qquad y_i = f(x_i) + \varepsilon_i, \qquad p(y_i = 1) = \sigma(f(x_i))

    Hyperparameters maximise the marginal likelihood. Up to `exact` rows the posterior is exact (classes: Laplace's
    approximation); with more, `inducing` points stand for all rows (SGPR for numbers, SVGP for classes).
    The kernel is a name, or names joined by + and *: rbf, matern, matern32, matern12, rational_quadratic, periodic, linear,
    polynomial, arcsine. With `ard` each feature has a length scale of its own (default: up to 16 features).

    Shapes: x (b, p + q) -> (b, 1), or log-probabilities (b, outputs). Book: D2L 18.

    >>> model = GaussianProcess(numbers=1, rows=3)
    >>> model.fit_rows(torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([-1.0, 1.0, -1.0]))
    >>> model(torch.tensor([[1.0]])).shape, bool(model.spread(torch.tensor([[9.0]])) > model.spread(torch.tensor([[1.0]])))
    (torch.Size([1, 1]), True)
    """

    closed_form = True

    def __init__(
        self,
        numbers: int,
        levels: Sequence[int] = (),
        outputs: int = 1,
        rows: int = 1,
        *,
        kernel: str = "rbf",
        ard: bool | None = None,
        exact: int = 1000,
        inducing: int = 256,
        restarts: int = 0,
        noise: float = 0.1,
    ):
        super().__init__()
        at_least_one("GaussianProcess", outputs=outputs, rows=rows, exact=exact, inducing=inducing)
        if not 0 < noise < 1e6 or not 0 <= restarts <= 100:
            raise WonderlandError("GaussianProcess takes a noise variance above 0, and from 0 to 100 restarts.")
        self.numbers, self.levels, self.outputs, self.rows = numbers, list(levels), outputs, rows
        self.inducing, self.restarts, self.first_noise = inducing, restarts, float(noise)
        self.features = width_of("GaussianProcess", numbers, levels)
        at_least_one("GaussianProcess", features=self.features)
        self.problems = 1 if outputs <= 2 else outputs
        self.ard = self.features <= ARD if ard is None else ard
        self.exact = rows <= min(exact, math.isqrt(MOST_ENTRIES // self.problems))
        points = rows if self.exact else min(inducing, rows, math.isqrt(MOST_ENTRIES // self.problems))
        self.points = points
        with torch.device("cpu"):  # kernels check their values, which a model on the meta device has not
            self.kernel = read_kernel(kernel, self.features, self.ard)
            entries = len(self.kernel.theta)
        sizes = {
            "places": (points, self.features), "theta": (entries,), "noise": (), "weights": (points,),
            "root": (points,), "factor": (points, points), "inner": (points, points), "mode": (), "count": (),
        }  # fmt: skip
        for name, shape in sizes.items():
            self.register_buffer(name, torch.zeros(self.problems, *shape, dtype=torch.float64))

    no_export = (
        "A Gaussian process solves a system of linear equations for each row, and ONNX has no operator for that."
    )

    places: Tensor
    theta: Tensor
    noise: Tensor
    weights: Tensor
    root: Tensor
    factor: Tensor
    inner: Tensor
    mode: Tensor
    count: Tensor

    def fit_rows(self, x: Tensor, y: Tensor, weight: Tensor | None = None) -> None:
        """Fit to all rows at once: targets of mean 0 and deviation 1, or codes of classes. Shapes: x (n, p + q), y (n,)."""
        repeats = copies(weight)
        X = row_features(x, self.numbers, self.levels)
        if repeats is not None:
            X, y = X.repeat_interleave(repeats, 0), y.repeat_interleave(repeats)
        exact = self.exact and len(X) <= self.points
        if y.is_floating_point():
            if self.outputs > 1:
                raise WonderlandError("GaussianProcess has intervals of its own: leave conformal cqr out.")
            self._fit_numbers(X, y.double(), exact)
        else:
            self._fit_classes(X, y, exact)

    def _fit_numbers(self, X: Tensor, y: Tensor, exact: bool) -> None:
        if exact:
            posterior = Process(self.kernel, self.first_noise).fit(X, y, restarts=self.restarts, standardise=False)
            whitened = posterior.factor.T @ posterior.weights
            self._store(
                0, EXACT, posterior.process.kernel, X, whitened, posterior.factor, noise=posterior.process.noise
            )
            return
        sparse = fit_sparse(self.kernel, X, y, noise=self.first_noise, inducing=self.points, standardise=False)
        self._store(
            0, SPARSE, sparse.kernel, sparse.places, sparse.weights, sparse.factor, sparse.inner, noise=sparse.noise
        )

    def _fit_classes(self, X: Tensor, y: Tensor, exact: bool) -> None:
        for k in range(self.problems):
            own = (y == (1 if self.problems == 1 else k)).long()
            if exact and 0 < int(own.sum()) < len(own):
                (mode,) = laplace_classifier(self.kernel, X, own, restarts=self.restarts).modes
                self._store(k, LAPLACE, mode.kernel, X, mode.gradient, mode.factor, root=mode.root)
                continue
            target = own.double()
            posterior = fit_variational(self.kernel, X, target, likelihood="bernoulli", inducing=self.points, noise=1.0)
            self._store(
                k, VARIATIONAL, posterior.kernel, posterior.places, posterior.mean, posterior.factor, posterior.spread
            )

    def _store(
        self,
        k: int,
        mode: int,
        kernel: Kernel,
        places: Tensor,
        weights: Tensor,
        factor: Tensor,
        inner: Tensor | None = None,
        *,
        root: Tensor | None = None,
        noise: float = 0.0,
    ) -> None:
        """Keep one posterior; fewer points than there is room for leave the rest zero."""
        count = len(places)
        with torch.no_grad():
            for buffer in (self.places, self.weights, self.root, self.factor, self.inner):
                buffer[k].zero_()
            self.mode[k], self.count[k], self.noise[k] = mode, count, noise
            self.theta[k], self.places[k, :count], self.weights[k, :count] = kernel.theta, places, weights
            self.factor[k, :count, :count] = factor
            if inner is not None:
                self.inner[k, :count, :count] = inner
            if root is not None:
                self.root[k, :count] = root

    def latent(self, x: Tensor, k: int = 0) -> tuple[Tensor, Tensor]:
        """Mean and variance of the function of one problem. Shapes: x (b, p + q) -> (b,), (b,)."""
        count, mode = int(self.count[k]), int(self.mode[k])
        if not 0 < count <= self.points:
            raise WonderlandError("This Gaussian process has not been fitted: call fit_rows first.")
        new = row_features(x, self.numbers, self.levels)
        kernel = self.kernel.with_theta(self.theta[k])
        factor, inner, weights = self.factor[k, :count, :count], self.inner[k, :count, :count], self.weights[k, :count]
        across = kernel(self.places[k, :count], new)
        if mode == LAPLACE:
            half = torch.linalg.solve_triangular(factor, self.root[k, :count, None] * across, upper=False)
            return across.T @ weights, (kernel.diagonal(new) - half.square().sum(0)).clamp(min=1e-12)
        half = torch.linalg.solve_triangular(factor, across, upper=False)
        left = kernel.diagonal(new) - half.square().sum(0)
        if mode == EXACT:
            return half.T @ weights, left.clamp(min=0)
        if mode == SPARSE:
            deep = torch.linalg.solve_triangular(inner, half, upper=False)
            return deep.T @ weights, (left + deep.square().sum(0)).clamp(min=0)
        return half.T @ weights, (left + (inner.T @ half).square().sum(0)).clamp(min=1e-12)

    def forward(self, x: Tensor) -> Tensor:
        if self.outputs == 1:
            output = self.latent(x)[0].unsqueeze(1)
        else:
            chances = torch.stack([averaged_chance(*self.latent(x, k)) for k in range(self.problems)], 1)
            chances = chances.clamp(1e-9, 1 - 1e-9)
            p = torch.cat([1 - chances, chances], 1) if self.problems == 1 else chances
            output = (p / p.sum(1, keepdim=True)).log()
        return output.to(x.dtype if x.is_floating_point() else torch.float32)

    def spread(self, x: Tensor) -> Tensor:
        """The standard deviation of an observation, in units of the standardised target. Shapes: x (b, p + q) -> (b,)."""
        return (self.latent(x)[1] + self.noise[0]).sqrt()

    def describe(self) -> str:
        """How it is fitted, in a sentence."""
        if self.exact:
            return f"Gaussian process of {self.rows:,} rows, exact."
        return f"Gaussian process of {self.rows:,} rows through {self.points} inducing points; fewer rows would get the exact posterior."
