"""Hamiltonian Monte Carlo: draws from a density whose gradient is known, such as the posterior of a small network."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import count


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws of a chain. Shapes: values (n, p), log_density (n,); `accepted` is the mean chance of acceptance."""

    values: Tensor
    log_density: Tensor
    accepted: float
    step: float

    def effective(self) -> Tensor:
        r"""The number of independent draws that these are worth, for each coordinate. Shapes: -> (p,).

        .. math:: n / (1 + 2 \sum_t \rho_t)

        with autocorrelations summed in pairs while the pairs are positive. Paper: Geyer, 1992.
        """
        x = self.values - self.values.mean(0)
        n = len(x)
        spectrum = torch.fft.rfft(x, 2 * n, dim=0)
        covariance = torch.fft.irfft(spectrum * spectrum.conj(), 2 * n, dim=0)[:n]
        rho = covariance / covariance[0].clamp(min=1e-300)
        pairs = rho[: n // 2 * 2].reshape(-1, 2, x.shape[1]).sum(1)
        positive = (pairs > 0).cumprod(0)
        return n / (2 * (pairs * positive).sum(0) - 1).clamp(min=1 / n)


def hamiltonian(
    log_density: Callable[[Tensor], Tensor],
    start: Tensor,
    *,
    draws: int = 1000,
    warmup: int = 500,
    leapfrogs: int = 20,
    step: float | None = None,
    target: float = 0.8,
    seed: int = 0,
) -> Draws:
    r"""A chain of draws from an unnormalised density over vectors.

    .. math:: p \leftarrow p + \tfrac\epsilon2 \nabla \log \pi(q), \quad q \leftarrow q + \epsilon M^{-1} p, \quad
              p \leftarrow p + \tfrac\epsilon2 \nabla \log \pi(q), \qquad
              a = \min\bigl(1, e^{H(q, p) - H(q', p')}\bigr)

    During the warm-up the step is tuned to accept a share of about `target` (dual averaging), and the masses M become the
    inverse variances seen so far. The number of leapfrog steps is drawn between 1 and `leapfrogs`, against resonance.
    Shapes: start (p,). Papers: Duane et al., 1987; Neal, 2011; Hoffman and Gelman, 2014.

    >>> chain = hamiltonian(lambda q: -q.square().sum() / 2, torch.zeros(1), draws=400, warmup=200)
    >>> bool((chain.values.std() - 1).abs() < 0.2)
    True
    """
    count("draws", draws)
    count("leapfrogs", leapfrogs)
    if not 0 < target < 1:
        raise WonderlandError(f"`target` has to lie strictly between 0 and 1, not at {target}.")
    generator = torch.Generator().manual_seed(seed)
    q = start.detach().double().flatten().clone()

    def gradient(at: Tensor) -> tuple[float, Tensor]:
        with torch.enable_grad():
            place = at.clone().requires_grad_()
            value = log_density(place)
            (slope,) = torch.autograd.grad(value, place)
        return float(value.detach()), slope.double()

    value, slope = gradient(q)
    if not math.isfinite(value):
        raise WonderlandError("The log density is not finite where the chain starts: start somewhere else.")
    spread = torch.ones_like(q)  # inverse masses
    size = step or _first_step(gradient, q, value, slope, generator)
    mu, average, log_average = math.log(10 * size), 0.0, math.log(size)
    seen_mean, seen_square, seen = torch.zeros_like(q), torch.zeros_like(q), 0
    tuned = 0
    kept, densities, accepted = [], [], 0.0
    for t in range(warmup + draws):
        momentum = torch.randn(len(q), dtype=torch.float64, generator=generator) / spread.sqrt()
        energy = -value + float((momentum.square() * spread).sum()) / 2
        there, slope_there, value_there = q, slope, value
        for _ in range(int(torch.randint(1, leapfrogs + 1, (), generator=generator))):
            momentum = momentum + size / 2 * slope_there
            there = there + size * spread * momentum
            value_there, slope_there = gradient(there)
            if not math.isfinite(value_there):
                break
            momentum = momentum + size / 2 * slope_there
        moved = -value_there + float((momentum.square() * spread).sum()) / 2
        chance = math.exp(min(0.0, energy - moved)) if math.isfinite(moved) else 0.0
        if float(torch.rand((), generator=generator)) < chance:
            q, value, slope = there, value_there, slope_there
        if t < warmup:
            if step is None:
                tuned += 1
                average = (1 - 1 / (tuned + 10)) * average + (target - chance) / (tuned + 10)
                log_size = mu - math.sqrt(tuned) / 0.05 * average
                share = tuned**-0.75
                log_average = share * log_size + (1 - share) * log_average
                size = math.exp(log_size) if t < warmup - 1 else math.exp(log_average)
            if warmup // 4 <= t:
                seen += 1
                apart = q - seen_mean
                seen_mean = seen_mean + apart / seen
                seen_square = seen_square + apart * (q - seen_mean)
            if t == warmup * 3 // 5 and seen > 10 and step is None:
                # Shrunk towards 1 as Stan does, since few draws tell little.
                spread = (seen * seen_square / (seen - 1) + 5e-3) / (seen + 5)
                spread = spread.clamp(min=1e-8)
                size = _first_step(gradient, q, value, slope, generator, spread)
                mu, average, log_average, tuned = math.log(10 * size), 0.0, math.log(size), 0
        else:
            kept.append(q)
            densities.append(value)
            accepted += chance
    return Draws(torch.stack(kept), torch.tensor(densities, dtype=torch.float64), accepted / draws, size)


def _first_step(
    gradient: Callable[[Tensor], tuple[float, Tensor]],
    q: Tensor,
    value: float,
    slope: Tensor,
    generator: torch.Generator,
    spread: Tensor | None = None,
) -> float:
    """A step that changes the energy by about log 2: doubled or halved until it does."""
    spread = torch.ones_like(q) if spread is None else spread
    size, last = 0.1, 0
    momentum = torch.randn(len(q), dtype=torch.float64, generator=generator) / spread.sqrt()
    for _ in range(50):
        p = momentum + size / 2 * slope
        there = q + size * spread * p
        new, slope_there = gradient(there)
        p = p + size / 2 * slope_there
        change = new - value - float((p.square() * spread).sum()) / 2 + float((momentum.square() * spread).sum()) / 2
        way = 1 if math.isfinite(change) and change > -math.log(2) else -1
        if last and way != last:
            break
        size, last = size * 2.0**way, way
    return size


def split_r_hat(chains: Tensor) -> Tensor:
    r"""Do several chains agree? The spread of all by the spread within each half chain; 1 when they do.

    .. math:: \hat R = \sqrt{\frac{(n - 1) W / n + B / n}{W}}

    Shapes: (chains, n, p) -> (p,). Paper: Gelman and Rubin, 1992; Vehtari et al., 2021 (split).

    >>> bool(split_r_hat(torch.randn(4, 500, 1, generator=torch.Generator().manual_seed(0))) < 1.02)
    True
    """
    if chains.dim() != 3 or chains.shape[1] < 4:
        raise WonderlandError(
            f"`chains` has shape {tuple(chains.shape)}: it needs chains, four draws or more, and coordinates."
        )
    half = chains.shape[1] // 2
    parts = torch.cat([chains[:, :half], chains[:, -half:]]).double()
    within = parts.var(1).mean(0)
    between = half * parts.mean(1).var(0)
    return (((half - 1) / half * within + between / half) / within.clamp(min=1e-300)).sqrt()
