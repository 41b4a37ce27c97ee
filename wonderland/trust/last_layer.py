"""The posterior of a linear layer, by Laplace's approximation: a Gaussian with the curvature of the loss."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from wonderland.core import WonderlandError

LIKELIHOODS = ("categorical", "gaussian")
STRENGTHS = tuple(10.0 ** (k / 2) for k in range(-8, 9))
FULL = 2000  # weights; beyond, those of different outputs are taken as independent
MOST_INPUTS = 4096


@dataclass(frozen=True, eq=False)
class LayerPosterior:
    r"""A Gaussian over the weights (c, d) of a linear layer with d inputs and c outputs.

    .. math:: w \sim N\bigl(\hat w, (H + \lambda I)^{-1}\bigr), \qquad H = V \mathrm{diag}(s) V^\top

    in `blocks` of outputs: one for all of them, or one for each. `values` (blocks, k) are the eigenvalues s, `vectors`
    (blocks, k, k) the eigenvectors, `strength` is :math:`\lambda`, and `evidence` the log marginal likelihood.
    """

    mean: Tensor
    values: Tensor
    vectors: Tensor
    strength: float
    evidence: float
    noise: float | None

    @property
    def roots(self) -> Tensor:
        """A root of the covariance: (blocks, k, k)."""
        return self.vectors / (self.values + self.strength).sqrt().unsqueeze(-2)

    def covariance(self, phi: Tensor) -> Tensor:
        """The covariance of the outputs for inputs (n, d) of the layer: (n, c, c)."""
        c, d = self.mean.shape
        if len(self.roots) == 1:
            half = torch.einsum("nd,cdk->nck", phi, self.roots[0].reshape(c, d, -1))
            return half @ half.mT
        return torch.diag_embed(torch.einsum("nd,cdk->nck", phi, self.roots).square().sum(-1))

    def draws(self, count: int, generator: torch.Generator | None = None) -> Tensor:
        """Weights drawn from the Gaussian: (count, c, d)."""
        noise = torch.randn(count, *self.values.shape, dtype=self.mean.dtype, generator=generator)
        steps = torch.einsum("bkj,nbj->nbk", self.roots, noise)
        return self.mean + steps.reshape(count, *self.mean.shape)


def layer_posterior(
    phi: Tensor,
    out: Tensor,
    y: Tensor,
    mean: Tensor,
    likelihood: str,
    *,
    strength: float | None = None,
    noise: float | None = None,
    weights: Tensor | None = None,
) -> LayerPosterior:
    r"""The posterior of the weights of a layer from its inputs and the outputs of the model at training rows.

    .. math:: H = \sum_i \omega_i \phi_i \phi_i^\top \otimes \Lambda_i, \qquad
              \Lambda = \mathrm{diag}(p) - p p^\top \text{ or } I / \sigma^2

    Without `strength`, the precision of the prior that maximises the marginal likelihood. Shapes: phi (n, d) with a 1 for the
    bias, out (n, c), y (n,) labels or (n, c) numbers, mean (c, d), weights (n,).
    Papers: MacKay, 1992; Kristiadi et al., 2020; Daxberger et al., 2021.
    """
    if likelihood not in LIKELIHOODS:
        raise WonderlandError(f"`likelihood` is 'categorical' or 'gaussian', not {likelihood!r}.")
    (n, c), d = out.shape, phi.shape[1]
    if d > MOST_INPUTS:
        raise WonderlandError(f"Laplace's approximation takes a layer of at most {MOST_INPUTS:,} inputs, not {d:,}.")
    omega = torch.ones(n, dtype=phi.dtype) if weights is None else weights.to(phi.dtype)
    if likelihood == "categorical":
        p, noise = out.softmax(-1), None
        loss = -(omega * p[torch.arange(n), y.long()].clamp(min=1e-300).log()).sum()
        curvature = _full(phi, p, omega) if c * d <= FULL else _by_output(phi, p * (1 - p) * omega[:, None])
    else:
        errors = (out - y.to(out.dtype).reshape(n, -1)).square()
        noise = float((omega[:, None] * errors).sum() / (omega.sum() * c)) if noise is None else noise
        scale = max(noise, 1e-12)
        loss = (omega[:, None] * errors).sum() / (2 * scale) + omega.sum() * c / 2 * math.log(2 * math.pi * scale)
        curvature = _by_output(phi, (omega / scale).unsqueeze(1).expand(n, c))
    values, vectors = torch.linalg.eigh(curvature)
    values, size = values.clamp(min=0), float(mean.square().sum())
    evidences = {
        s: -float(loss) - s * size / 2 + (c * d) / 2 * math.log(s) - float((values + s).log().sum()) / 2
        for s in (STRENGTHS if strength is None else (strength,))
    }
    best = max(evidences, key=lambda s: evidences[s])
    return LayerPosterior(mean, values, vectors, best, evidences[best], noise)


def _full(phi: Tensor, p: Tensor, omega: Tensor) -> Tensor:
    """The curvature of all outputs together: (1, c d, c d)."""
    (_, c), d = p.shape, phi.shape[1]
    H = torch.zeros(c, d, c, d, dtype=phi.dtype)
    for j in range(c):
        for k in range(j, c):
            share = omega * p[:, j] * (1.0 * (j == k) - p[:, k])
            H[j, :, k] = H[k, :, j] = (phi.T * share) @ phi
    return H.reshape(1, c * d, c * d)


def _by_output(phi: Tensor, shares: Tensor) -> Tensor:
    """The curvature of each output alone: (c, d, d)."""
    return torch.stack([(phi.T * share) @ phi for share in shares.T])
