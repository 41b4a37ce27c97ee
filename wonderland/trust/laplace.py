"""Laplace's approximation: a Gaussian around trained weights, from the curvature of the loss."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.trust.last_layer import LIKELIHOODS, STRENGTHS, LayerPosterior, layer_posterior


def _checked(likelihood: str) -> str:
    if likelihood not in LIKELIHOODS:
        raise WonderlandError(f"`likelihood` is 'categorical' or 'gaussian', not {likelihood!r}.")
    return likelihood


@dataclass(frozen=True, eq=False)
class Predicted:
    """Latent outputs of a linearised network. Shapes: mean (n, c), covariance (n, c, c)."""

    mean: Tensor
    covariance: Tensor

    def probabilities(self) -> Tensor:
        r"""Class probabilities by the probit approximation: :math:`\mathrm{softmax}(\mu_k / \sqrt{1 + \tfrac\pi8 \sigma_k^2})`.

        Shapes: (n, c). Paper: MacKay, 1992.
        """
        variance = self.covariance.diagonal(dim1=1, dim2=2)
        return (self.mean / (1 + math.pi / 8 * variance).sqrt()).softmax(-1)

    def draws(self, count: int, generator: torch.Generator | None = None) -> Tensor:
        """Outputs drawn from the Gaussian. Shapes: -> (count, n, c)."""
        values, vectors = torch.linalg.eigh(self.covariance)
        root = vectors * values.clamp(min=0).sqrt().unsqueeze(1)
        noise = torch.randn(count, *self.mean.shape, dtype=self.mean.dtype, generator=generator)
        return self.mean + torch.einsum("ncd,knd->knc", root, noise)


class LastLayerLaplace:
    r"""A Gaussian over the weights of the last linear layer, everything before it kept as it is.

    .. math:: p(w | D) \approx N\bigl(\hat w, (H + \lambda I)^{-1}\bigr), \qquad
              H = \sum_i \phi_i \phi_i^\top \otimes \Lambda_i, \qquad \Lambda = \mathrm{diag}(p) - p p^\top \text{ or } I / \sigma^2

    with :math:`\phi` the inputs of the layer, a 1 for the bias among them. Without `strength` the prior's precision
    :math:`\lambda` maximises the marginal likelihood. Predictions cost one pass and a small product.
    Papers: MacKay, 1992; Kristiadi et al., 2020; Daxberger et al., 2021.

    >>> model = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 3))
    >>> fit = LastLayerLaplace(model).fit(torch.randn(20, 2), torch.arange(20) % 3)
    >>> fit.predict(torch.zeros(5, 2)).covariance.shape
    torch.Size([5, 3, 3])
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        likelihood: str = "categorical",
        strength: float | None = None,
        noise: float | None = None,
    ):
        self.model, self.likelihood = model, _checked(likelihood)
        linear = [module for module in model.modules() if isinstance(module, nn.Linear)]
        if not linear:
            raise WonderlandError("Laplace's approximation of the last layer needs a model that ends in nn.Linear.")
        self.layer, self.strength, self.noise = linear[-1], strength, noise
        self.posterior: LayerPosterior | None = None

    def _features(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs of the last layer and outputs of the model, in evaluation mode. Shapes: (n, d), (n, c)."""
        kept: list[Tensor] = []
        hook = self.layer.register_forward_pre_hook(lambda _, inputs: kept.append(inputs[0].detach()))
        modes = [(module, module.training) for module in self.model.modules()]
        try:
            self.model.eval()
            with torch.no_grad():
                out = self.model(x)
        finally:
            hook.remove()
            for module, mode in modes:
                module.training = mode
        phi = kept[-1].double()
        if phi.dim() != 2 or out.dim() != 2 or out.shape[1] != self.layer.out_features:
            raise WonderlandError("The model has to end in its last nn.Linear, with a row for each example.")
        if self.layer.bias is not None:
            phi = torch.cat([phi, phi.new_ones(len(phi), 1)], 1)
        return phi, out.double()

    def fit(self, x: Tensor, y: Tensor) -> "LastLayerLaplace":
        """Curvature at training rows. Shapes: x (n, ...), y (n,) labels, or (n, c) numbers."""
        phi, out = self._features(x)
        mean = self.layer.weight.detach().double()
        if self.layer.bias is not None:
            mean = torch.cat([mean, self.layer.bias.detach().double().unsqueeze(1)], 1)
        fitted = layer_posterior(phi, out, y, mean, self.likelihood, strength=self.strength, noise=self.noise)
        self.posterior, self.noise = fitted, fitted.noise
        self.strength, self.evidence = fitted.strength, fitted.evidence
        return self

    def predict(self, x: Tensor) -> Predicted:
        """Mean and covariance of the outputs. Shapes: (n, ...) -> (n, c), (n, c, c)."""
        if self.posterior is None:
            raise WonderlandError("Call `fit` before `predict`: the curvature is not known yet.")
        phi, out = self._features(x)
        return Predicted(out, self.posterior.covariance(phi))


class KroneckerLaplace:
    r"""A Gaussian over the weights of every linear layer, with the curvature of each as a Kronecker product.

    .. math:: H_\ell \approx \underbrace{\Bigl(\sum_i a_i a_i^\top\Bigr)}_{A_\ell} \otimes
              \underbrace{\Bigl(\tfrac1n \sum_i g_i g_i^\top\Bigr)}_{G_\ell}, \qquad
              f(x) \sim N\Bigl(f_{\hat w}(x), \sum_\ell J_\ell (A_\ell \otimes G_\ell + \lambda I)^{-1} J_\ell^\top\Bigr)

    a are the inputs of a layer, g the gradients of the outputs by its results, weighted by the likelihood's curvature.
    The eigenvectors of A and G make the inverse cheap, and exact for any :math:`\lambda`. Predictions use the network
    linearised in its weights. Papers: Ritter et al., 2018; Immer et al., 2021.

    >>> model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 3))
    >>> fit = KroneckerLaplace(model).fit(torch.randn(20, 2), torch.arange(20) % 3)
    >>> fit.predict(torch.zeros(5, 2)).covariance.shape
    torch.Size([5, 3, 3])
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        likelihood: str = "categorical",
        strength: float | None = None,
        noise: float | None = None,
    ):
        self.model, self.likelihood, self.strength, self.noise = model, _checked(likelihood), strength, noise
        self.layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
        if not self.layers:
            raise WonderlandError("Laplace's approximation needs a model with nn.Linear in it.")
        self.factors: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []

    def _passes(self, x: Tensor) -> tuple[Tensor, list[Tensor], list[list[Tensor]]]:
        """Outputs (n, c), inputs of each layer (n, d), and gradients of each output by each layer's results (n, e)."""
        inputs: list[Tensor] = []
        results: list[Tensor] = []

        def keep(module: nn.Module, given: tuple[Any, ...], out: Tensor) -> None:
            inputs.append(given[0].detach())
            results.append(out)

        hooks = [layer.register_forward_hook(keep) for layer in self.layers]
        modes = [(module, module.training) for module in self.model.modules()]
        try:
            self.model.eval()
            with torch.enable_grad():
                out = self.model(x)
        finally:
            for hook in hooks:
                hook.remove()
            for module, mode in modes:
                module.training = mode
        if len(inputs) != len(self.layers) or any(a.dim() != 2 for a in inputs):
            raise WonderlandError(
                "Laplace's approximation takes networks that use each nn.Linear once, on rows (n, d)."
            )
        gradients = [
            list(torch.autograd.grad(out[:, k].sum(), results, retain_graph=k < out.shape[1] - 1))
            for k in range(out.shape[1])
        ]
        inputs = [
            (torch.cat([a, a.new_ones(len(a), 1)], 1) if layer.bias is not None else a).double()
            for a, layer in zip(inputs, self.layers, strict=True)
        ]
        return out.detach().double(), inputs, [[g.double() for g in row] for row in gradients]

    def fit(self, x: Tensor, y: Tensor) -> "KroneckerLaplace":
        """Curvature at training rows. Shapes: x (n, d), y (n,) labels, or (n, c) numbers."""
        out, inputs, gradients = self._passes(x)
        n, c = out.shape
        if self.likelihood == "categorical":
            p = out.softmax(-1)
            loss = -p[torch.arange(n), y.long()].clamp(min=1e-300).log().sum()
            # A root of diag(p) - pp^T, row by row: B B^T with B = diag(sqrt p) - p sqrt(p)^T.
            root = torch.diag_embed(p.sqrt()) - p.unsqueeze(2) * p.sqrt().unsqueeze(1)
        else:
            target = y.double().reshape(n, -1)
            self.noise = float((out - target).square().mean()) if self.noise is None else self.noise
            noise = max(self.noise, 1e-12)
            loss = (out - target).square().sum() / (2 * noise) + n * c / 2 * math.log(2 * math.pi * noise)
            root = (torch.eye(c, dtype=torch.float64) / math.sqrt(noise)).expand(n, c, c)
        self.factors = []
        size, counted = 0.0, []
        for index, (a, layer) in enumerate(zip(inputs, self.layers, strict=True)):
            J = torch.stack([gradients[k][index] for k in range(c)], 1)  # (n, c, e)
            G = torch.einsum("nce,ncd->ned", J, root)
            G = torch.einsum("ned,nfd->ef", G, G) / n
            av, aV = torch.linalg.eigh(a.T @ a)
            gv, gV = torch.linalg.eigh(G)
            self.factors.append((av.clamp(min=0), aV, gv.clamp(min=0), gV))
            counted.append(torch.outer(gv.clamp(min=0), av.clamp(min=0)).flatten())
            size += sum(float(w.detach().double().square().sum()) for w in layer.parameters())
        values = torch.cat(counted)
        evidences = {
            s: -float(loss) - s * size / 2 + len(values) / 2 * math.log(s) - float((values + s).log().sum()) / 2
            for s in (STRENGTHS if self.strength is None else (self.strength,))
        }
        self.strength = max(evidences, key=lambda s: evidences[s])
        self.evidence = evidences[self.strength]
        return self

    def predict(self, x: Tensor) -> Predicted:
        """Mean and covariance of the outputs. Shapes: (n, d) -> (n, c), (n, c, c)."""
        if not self.factors:
            raise WonderlandError("Call `fit` before `predict`: the curvature is not known yet.")
        assert self.strength is not None
        out, inputs, gradients = self._passes(x)
        covariance = torch.zeros(len(out), out.shape[1], out.shape[1], dtype=torch.float64)
        for index, (a, (av, aV, gv, gV)) in enumerate(zip(inputs, self.factors, strict=True)):
            J = torch.stack([row[index] for row in gradients], 1) @ gV  # (n, c, e)
            shares = 1 / (torch.outer(gv, av) + self.strength)  # (e, d)
            weights = (a @ aV).square() @ shares.T  # (n, e)
            covariance += torch.einsum("nce,ne,nke->nck", J, weights, J)
        return Predicted(out, covariance)
