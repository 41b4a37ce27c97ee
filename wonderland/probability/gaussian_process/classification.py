"""Classification with a Gaussian process: Laplace's approximation, one class against the rest."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError, mix
from wonderland.ops.algebra.arguments import Numbers, numbers
from wonderland.probability.gaussian_process.bfgs import bfgs
from wonderland.probability.gaussian_process.kernels import Kernel
from wonderland.probability.gaussian_process.regression import BOUNDS, rows, starts

# The logistic function as a sum of five error functions, whose mean under a Gaussian is known. Williams and Barber, 1998.
WIDTHS = torch.tensor([0.41, 0.4, 0.37, 0.44, 0.39], dtype=torch.float64).unsqueeze(1)
SHARES = torch.tensor([-1854.8214151, 3516.89893646, 221.29346712, 128.12323805, -2010.49422654], dtype=torch.float64).unsqueeze(1)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Mode:
    """The posterior of one binary problem: kernel, gradient of the log-likelihood, root weights, factor, evidence."""

    kernel: Kernel
    gradient: Tensor
    root: Tensor
    factor: Tensor
    evidence: float

    def latent(self, X: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of the latent function. Shapes: (m, d) -> (m,), (m,)."""
        across = self.kernel(X, new)
        half = torch.linalg.solve_triangular(self.factor, self.root.unsqueeze(1) * across, upper=False)
        return across.T @ self.gradient, (self.kernel.diagonal(new) - half.square().sum(0)).clamp(min=1e-300)


@dataclass(frozen=True, eq=False)
class LaplaceClassifier:
    """Fitted Laplace approximations: one for two classes, else one for each class. Shapes: X (n, d)."""

    X: Tensor
    modes: tuple[Mode, ...]
    classes: int

    def probabilities(self, X: Numbers) -> Tensor:
        """Probabilities of classes, averaged over the latent function. Shapes: (m, d) -> (m, c)."""
        new = rows("X", X, self.X.shape[1])
        chances = torch.stack([averaged_chance(*mode.latent(self.X, new)) for mode in self.modes], 1)
        if self.classes == 2:
            return torch.cat([1 - chances, chances], 1)
        return chances / chances.sum(1, keepdim=True)

    def predict(self, X: Numbers) -> Tensor:
        """The most probable class. Shapes: (m, d) -> (m,)."""
        return self.probabilities(X).argmax(1)

    @property
    def evidence(self) -> float:
        """The approximate log marginal likelihood, the mean over binary problems."""
        return sum(mode.evidence for mode in self.modes) / len(self.modes)


def averaged_chance(mean: Tensor, variance: Tensor) -> Tensor:
    """The mean of the logistic function of a Gaussian. Shapes: (n,), (n,) -> (n,)."""
    alpha = 1 / (2 * variance)
    parts = (math.pi / alpha).sqrt() * torch.erf(WIDTHS * mean * (alpha / (alpha + WIDTHS.square())).sqrt())
    parts = parts / (2 * (variance * 2 * math.pi).sqrt())
    return ((SHARES * parts).sum(0) + 0.5 * SHARES.sum()).clamp(0, 1)


def _mode(kernel: Kernel, X: Tensor, y: Tensor, *, slope: bool = False) -> tuple[Mode, Tensor]:
    r"""Newton's method for the mode of the latent function, and the evidence with its gradient by log hyperparameters.

    Rasmussen and Williams, algorithms 3.1 and 5.1. Shapes: X (n, d), y (n,) of 0 and 1.
    """
    theta = kernel.theta.detach().clone().requires_grad_(slope)
    with torch.set_grad_enabled(slope):
        graph = kernel.with_theta(theta)(X)
    with torch.no_grad():
        K = graph.detach()
        f, last = torch.zeros_like(y), -math.inf
        eye = torch.eye(len(y), dtype=torch.float64)
        chance = root = a = factor = evidence = None
        for _ in range(100):
            chance = f.sigmoid()
            weight = chance * (1 - chance)
            root = weight.sqrt()
            factor = torch.linalg.cholesky(eye + root.unsqueeze(1) * K * root)
            b = weight * f + (y - chance)
            a = b - root * torch.cholesky_solve((root * (K @ b)).unsqueeze(1), factor).squeeze(1)
            f = K @ a
            evidence = float(
                -0.5 * a @ f - torch.nn.functional.softplus(-(2 * y - 1) * f).sum() - factor.diagonal().log().sum()
            )
            if evidence - last < 1e-10:
                break
            last = evidence
        assert chance is not None
        assert root is not None
        assert factor is not None
        assert a is not None
        assert evidence is not None
        mode = Mode(kernel, y - chance, root, factor, evidence)
        if not slope:
            return mode, torch.zeros(0, dtype=torch.float64)
        R = root.unsqueeze(1) * torch.cholesky_solve(torch.diag(root), factor)
        C = torch.linalg.solve_triangular(factor, root.unsqueeze(1) * K, upper=False)
        # Third derivative of the log-likelihood.
        third = (chance * (1 - chance)) * (1 - 2 * chance)
        s2 = -0.5 * (K.diagonal() - C.square().sum(0)) * third
        v = s2 - R @ (K @ s2)
        cotangent = 0.5 * (torch.outer(a, a) - R) + torch.outer(v, y - chance)
        cotangent = (cotangent + cotangent.T) / 2
    return mode, torch.autograd.grad(graph, theta, cotangent)[0]


def laplace_classifier(
    kernel: Kernel, X: Numbers, y: Numbers, *, fit: bool = True, restarts: int = 0, seed: int = 0
) -> LaplaceClassifier:
    r"""Gaussian process classification with a logistic likelihood.

    .. math:: q(f) = N\bigl(\hat f, (K^{-1} + W)^{-1}\bigr), \qquad \hat f = \arg\max_f \log p(y | f) - \tfrac12 f^\top K^{-1} f

    With `fit` the kernel's hyperparameters maximise the approximate evidence, for each binary problem by itself.
    Shapes: X (n, d), y (n,) labels from 0. Paper: Williams and Barber, 1998.

    >>> from wonderland.probability.gaussian_process.kernels import RBF
    >>> model = laplace_classifier(RBF(), [0.0, 1.0, 5.0, 6.0], [0, 0, 1, 1], fit=False)
    >>> model.predict([0.5, 5.5])
    tensor([0, 1])
    """
    if not isinstance(kernel, Kernel):
        raise WonderlandError(f"`kernel` has to be a kernel such as RBF(), not {kernel!r}.")
    places, labels = rows("X", X), numbers("y", y, 1)
    if len(places) != len(labels):
        raise WonderlandError(f"`y` has {len(labels)} entries where `X` has {len(places)} rows.")
    if bool(((labels != labels.round()) | (labels < 0)).any()):
        raise WonderlandError("`y` has to hold labels, whole numbers from 0.")
    classes = int(labels.max()) + 1
    missing = sorted(set(range(classes)) - set(labels.long().tolist()))
    if missing or classes < 2:
        said = f"no row of class {missing[0]}" if missing else "rows of one class only"
        raise WonderlandError(f"`y` has {said}: every class needs at least one, and there have to be two.")
    modes = []
    for k in [1] if classes == 2 else range(classes):
        target = (labels == k).to(torch.float64)
        chosen = kernel
        if fit and len(kernel.theta):
            chosen = _best(kernel, places, target, restarts, seed)
        modes.append(_mode(chosen, places, target)[0])
    return LaplaceClassifier(places, tuple(modes), classes)


def _best(kernel: Kernel, X: Tensor, y: Tensor, restarts: int, seed: int) -> Kernel:
    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        mode, gradient = _mode(kernel.with_theta(torch.from_numpy(theta)), X, y, slope=True)
        return -mode.evidence, -gradient.numpy()

    start = kernel.theta.detach().numpy()
    low, high = np.full(len(start), BOUNDS[0]), np.full(len(start), BOUNDS[1])
    best = min(
        (bfgs(objective, np.clip(begin, low, high), low, high) for begin in starts(start, restarts, seed)),
        key=lambda candidate: candidate[1],
    )
    return kernel.with_theta(torch.from_numpy(best[0]))


def latent_samples(model: LaplaceClassifier, X: Numbers, count: int, *, seed: int = 0) -> Tensor:
    """Draws of the latent functions at new places, independent between places. Shapes: (m, d) -> (count, m, problems)."""
    new = rows("X", X, model.X.shape[1])
    moments = [mode.latent(model.X, new) for mode in model.modes]
    mean, wide = (torch.stack(parts, 1) for parts in zip(*moments, strict=True))
    noise = np.random.Generator(np.random.Philox(mix(seed, count, len(new)))).standard_normal((count, *mean.shape))
    return mean + wide.sqrt() * torch.from_numpy(noise)


__all__ = ["LaplaceClassifier", "Mode", "averaged_chance", "laplace_classifier", "latent_samples"]
