"""The posterior of a small network's weights, drawn by Hamiltonian Monte Carlo."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from wonderland.core import WonderlandError
from wonderland.probability.hamiltonian import Draws, hamiltonian

LARGEST = 5000


class NetworkPosterior:
    r"""Draws of all weights of a network given rows, and what they predict together.

    .. math:: \log p(w | D) = \log p(D | w) - \frac{\|w\|^2}{2 s^2} + \text{const}

    For networks of up to 5,000 weights, as the reference that cheaper approximations are compared with. The likelihood is
    of classes, or of numbers with noise of a known deviation. Dropout and batch norm have no posterior: the network runs in
    evaluation mode. Book: Alice 3.3. Paper: Neal, 1996.

    >>> model = nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1))
    >>> x = torch.linspace(-1, 1, 20).unsqueeze(1)
    >>> posterior = NetworkPosterior(model, likelihood="gaussian", noise=0.1).fit(x, x, draws=20, warmup=30)
    >>> posterior.outputs(x).shape
    torch.Size([20, 20, 1])
    """

    def __init__(self, model: nn.Module, *, likelihood: str = "categorical", prior: float = 1.0, noise: float = 0.1):
        if likelihood not in ("categorical", "gaussian"):
            raise WonderlandError(f"`likelihood` is 'categorical' or 'gaussian', not {likelihood!r}.")
        self.model, self.likelihood, self.prior, self.noise = model, likelihood, prior, noise
        self.shapes = {name: p.shape for name, p in model.named_parameters()}
        size = sum(math.prod(shape) for shape in self.shapes.values())
        if size > LARGEST:
            raise WonderlandError(
                f"The network has {size:,} weights: Hamiltonian Monte Carlo is for {LARGEST:,} at most. Use Laplace's "
                "approximation or an ensemble."
            )
        self.draws: Draws | None = None

    def _weights(self, flat: Tensor) -> dict[str, Tensor]:
        weights, start = {}, 0
        for name, shape in self.shapes.items():
            size = math.prod(shape)
            weights[name] = flat[start : start + size].reshape(shape)
            start += size
        return weights

    def _call(self, flat: Tensor, x: Tensor) -> Tensor:
        buffers = {name: b.double() if b.is_floating_point() else b for name, b in self.model.named_buffers()}
        return functional_call(self.model, {**self._weights(flat), **buffers}, (x,))

    def fit(self, x: Tensor, y: Tensor, **settings: Any) -> "NetworkPosterior":
        """Draw weights given rows; settings are those of `hamiltonian`. Shapes: x (n, ...), y (n,) or (n, c)."""
        modes = [(module, module.training) for module in self.model.modules()]
        inputs = x.double()
        target = y.long() if self.likelihood == "categorical" else y.double()

        def log_density(flat: Tensor) -> Tensor:
            out = self._call(flat, inputs)
            if self.likelihood == "categorical":
                fit = -nn.functional.cross_entropy(out, target, reduction="sum")
            else:
                fit = -(out - target.reshape(out.shape)).square().sum() / (2 * self.noise**2)
            return fit - flat.square().sum() / (2 * self.prior**2)

        start = torch.cat([p.detach().double().flatten() for p in self.model.parameters()])
        try:
            self.model.eval()
            self.draws = hamiltonian(log_density, start, **settings)
        finally:
            for module, mode in modes:
                module.training = mode
        return self

    def outputs(self, x: Tensor) -> Tensor:
        """What each drawn network answers: logits or numbers. Shapes: (n, ...) -> (draws, n, c)."""
        if self.draws is None:
            raise WonderlandError("Call `fit` first: there are no draws yet.")
        with torch.no_grad():
            return vmap(lambda flat: self._call(flat, x.double()))(self.draws.values)
