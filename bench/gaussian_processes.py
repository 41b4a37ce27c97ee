"""Gaussian processes beside scikit-learn and gpytorch: one likelihood with its gradient, a whole fit, and many rows.

    python -m bench.gaussian_processes              n = 1,000; 20,000 rows by inducing points
    python -m bench.gaussian_processes --rounds 5

Times are CPU seconds of the process on one thread, which other programs on the machine disturb little. Likelihood and gradient
are compared before anything is timed. gpytorch runs with fast computations off (Cholesky), as here.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from bench.race import HEADER, setting
from wonderland.probability.gaussian_process import RBF, GaussianProcess, fit_sparse


def data(rows: int, features: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """A smooth function of four features with noise of deviation 0.1."""
    generator = np.random.default_rng(0)
    X = generator.uniform(-2, 2, (rows, features))
    return X, np.sin(2 * X[:, 0]) + np.cos(X[:, 1]) * X[:, 2] + 0.1 * generator.normal(size=rows)


def race(label: str, ours: Callable[[], object], theirs: Callable[[], object], rounds: int, *, peer: str) -> float:
    """Both in turns by CPU time; print and return theirs by ours, best by best."""
    mine, other = [], []
    for _ in range(rounds + 1):
        for call, times in ((ours, mine), (theirs, other)):
            began = time.process_time()
            call()
            times.append(time.process_time() - began)
    ratios = sorted(b / a for a, b in zip(mine, other, strict=True))
    ratio = min(other) / min(mine)
    print(
        f"{label:44}{1e3 * min(mine):8.3f} ms{1e3 * min(other):11.3f} ms{ratio:7.2f}x   "
        f"({ratios[len(ratios) // 4]:.2f} to {ratios[3 * len(ratios) // 4]:.2f}) {peer}",
        flush=True,
    )
    return ratio


def gpytorch_loss(X: np.ndarray, y: np.ndarray, noise: float, ard: bool) -> Any:
    """A function that computes the likelihood and its gradient, and returns both."""
    import gpytorch

    x, t = torch.from_numpy(X), torch.from_numpy(y)

    class Model(gpytorch.models.ExactGP):
        def __init__(self, likelihood: Any):
            super().__init__(x, t, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            base = gpytorch.kernels.RBFKernel(ard_num_dims=X.shape[1] if ard else None)
            self.covar_module = gpytorch.kernels.ScaleKernel(base)

        def forward(self, places: torch.Tensor) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(places), self.covar_module(places))

    likelihood = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=gpytorch.constraints.GreaterThan(1e-8))
    model = Model(likelihood).double()
    likelihood.double()
    model.covar_module.base_kernel.lengthscale = torch.ones(1, X.shape[1] if ard else 1, dtype=torch.float64)
    model.covar_module.outputscale = torch.tensor(1.0, dtype=torch.float64)
    likelihood.noise = torch.tensor(noise, dtype=torch.float64)
    model.train()
    likelihood.train()
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)

    def call() -> float:
        model.zero_grad()
        off = gpytorch.settings.fast_computations(covar_root_decomposition=False, log_prob=False, solves=False)
        with off, gpytorch.settings.cholesky_jitter(double_value=0.0):
            value = mll(model(x), t) * len(y)
            value.backward()
        return float(value.detach())

    return call


def main() -> None:
    """Print the races."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rows", type=int, default=1000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process import kernels as sk
    from threadpoolctl import threadpool_limits

    print(setting(options.threads, False, options.rounds).replace("float32", "float64"))
    X, y = data(options.rows)
    with threadpool_limits(options.threads):
        print(HEADER)
        for name, scale in (("one length scale", 1.0), ("a length scale for each feature", [1.0] * X.shape[1])):
            process = GaussianProcess(1.0 * RBF(scale), 0.05)
            kernel = sk.ConstantKernel() * sk.RBF(scale) + sk.WhiteKernel(0.05)
            peer = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(X, y)
            theta = peer.kernel_.theta
            value, gradient = peer.log_marginal_likelihood(theta, eval_gradient=True, clone_kernel=False)
            evidence = process.evidence(X, y)
            other = gpytorch_loss(X, y, 0.05, isinstance(scale, list))
            assert abs(evidence.total - value) < 1e-7, (evidence.total, value)
            assert np.abs(evidence.gradient.numpy() - gradient).max() < 1e-7 * np.abs(gradient).max()
            assert abs(evidence.total - other()) < 1e-6
            race(
                f"likelihood and gradient, {name}"[:43], lambda p=process: p.evidence(X, y),
                lambda p=peer, t=theta: p.log_marginal_likelihood(t, eval_gradient=True, clone_kernel=False),
                options.rounds, peer="scikit-learn",
            )  # fmt: skip
            race(
                f"likelihood and gradient, {name}"[:43],
                lambda p=process: p.evidence(X, y),
                other,
                options.rounds,
                peer="gpytorch",
            )
        start = time.process_time()
        ours = GaussianProcess(1.0 * RBF([1.0] * X.shape[1]), 0.05).fit(X, y, standardise=False)
        mine = time.process_time() - start
        start = time.process_time()
        kernel = sk.ConstantKernel() * sk.RBF([1.0] * X.shape[1]) + sk.WhiteKernel(0.05)
        fitted = GaussianProcessRegressor(kernel, alpha=0.0).fit(X, y)
        theirs = time.process_time() - start
        print(
            f"{'a whole fit':44}{1e3 * mine:8.0f} ms{1e3 * theirs:11.0f} ms{theirs / mine:7.2f}x   log likelihood "
            f"{ours.evidence:.4f}, scikit-learn {fitted.log_marginal_likelihood_value_:.4f}"
        )
    X, y = data(21_000)
    start = time.perf_counter()
    posterior = fit_sparse(1.0 * RBF([1.0] * X.shape[1]), X[:20_000], y[:20_000], inducing=300)
    took = time.perf_counter() - start
    mean, _ = posterior.predict(X[20_000:])
    low, high = posterior.band(X[20_000:], 0.9)
    fresh = torch.from_numpy(y[20_000:])
    error = float((mean - fresh).square().mean().sqrt())
    inside = float(((low <= fresh) & (fresh <= high)).double().mean())
    print(
        f"20,000 rows by {len(posterior.places)} inducing points: {took:.1f} s, error {error:.4f} on new rows (noise 0.1), "
        f"90 % bands hold {100 * inside:.1f} %"
    )


if __name__ == "__main__":
    main()
