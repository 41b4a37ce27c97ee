"""A linear layer with a Gaussian over its weights, learned by variational inference."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from wonderland.core import WonderlandError

METHODS = ("reparametrised", "local", "flipout")


class VariationalLinear(nn.Module):
    r"""Bayes by backprop: weights drawn from a Gaussian that is learned, with a Gaussian prior.

    .. math:: q(W) = N(M, \Sigma^2), \qquad \mathcal L = \mathrm{E}_q[-\log p(D | W)] + \mathrm{KL}(q \| p), \qquad
              \mathrm{KL} = \sum \log \tfrac{s}{\sigma} + \tfrac{\sigma^2 + \mu^2}{2 s^2} - \tfrac12

    "reparametrised" draws one matrix for the whole batch, :math:`W = M + \Sigma \odot E`; "flipout" the same with signs
    of its own for each row, :math:`x M^\top + ((x \odot r)(\Sigma \odot E)^\top) \odot s`, so that rows of a batch are all
    but independent; "local" draws the results instead, :math:`y \sim N(x M^\top, x^2 (\Sigma^2)^\top)`, with the least
    noise of all. Draws are made in evaluation too, since a Bayesian layer answers with a distribution; `sampling` off
    gives the mean. Add `divergence(model) / rows` to the mean loss.

    Shapes: x (..., inputs) -> (..., outputs). Book: Alice 3.3. Papers: Blundell et al., 2015; Kingma et al., 2015; Wen
    et al., 2018.

    >>> layer = VariationalLinear(3, 2)
    >>> layer(torch.zeros(5, 3)).shape
    torch.Size([5, 2])
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        bias: bool = True,
        prior: float = 1.0,
        spread: float = 0.05,
        method: str = "flipout",
    ):
        super().__init__()
        if method not in METHODS:
            raise WonderlandError(f"`method` is one of {', '.join(METHODS)}, not {method!r}.")
        for name, value in (("prior", prior), ("spread", spread)):
            if not (math.isfinite(value) and value > 0):
                raise WonderlandError(f"`{name}` has to be a positive number, not {value}.")
        self.inputs, self.outputs, self.prior, self.method, self.sampling = inputs, outputs, prior, method, True
        # softplus of this is the deviation
        raw = math.log(math.expm1(spread))
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.weight_spread = nn.Parameter(torch.full((outputs, inputs), raw))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if bias:
            self.bias = nn.Parameter(torch.zeros(outputs))
            self.bias_spread = nn.Parameter(torch.full((outputs,), raw))
        else:
            self.register_parameter("bias", None)
            self.register_parameter("bias_spread", None)

    def forward(self, x: Tensor) -> Tensor:
        mean = F.linear(x, self.weight, self.bias)
        if not self.sampling:
            return mean
        sigma = F.softplus(self.weight_spread)
        bias_sigma = None if self.bias is None else F.softplus(self.bias_spread)
        if self.method == "local":
            variance = F.linear(x.square(), sigma.square(), None if bias_sigma is None else bias_sigma.square())
            return mean + variance.clamp(min=1e-16).sqrt() * torch.randn_like(mean)
        noise = sigma * torch.randn_like(sigma)
        if self.method == "reparametrised":
            return mean + F.linear(x, noise, None if bias_sigma is None else bias_sigma * torch.randn_like(bias_sigma))
        signs_in = torch.randint_like(x, 2) * 2 - 1
        signs_out = torch.randint_like(mean, 2) * 2 - 1
        out = mean + F.linear(x * signs_in, noise) * signs_out
        return out if bias_sigma is None else out + bias_sigma * torch.randn_like(mean)

    def divergence(self) -> Tensor:
        """KL of the weights' distribution from the prior, in nats."""
        total = self.weight.new_zeros(())
        for mean, raw in ((self.weight, self.weight_spread), (self.bias, self.bias_spread)):
            if mean is not None and raw is not None:
                sigma = F.softplus(raw)
                ratio = (sigma.square() + mean.square()) / (2 * self.prior**2)
                total = total + (math.log(self.prior) - sigma.log() + ratio - 0.5).sum()
        return total

    def extra_repr(self) -> str:
        return f"inputs={self.inputs}, outputs={self.outputs}, prior={self.prior}, method={self.method}"


def divergence(model: nn.Module) -> Tensor:
    """The divergence of all variational layers of a model from their priors.

    >>> bool(divergence(nn.Sequential(VariationalLinear(2, 3), nn.ReLU(), VariationalLinear(3, 1))) > 0)
    True
    """
    divergences = [module.divergence() for module in model.modules() if isinstance(module, VariationalLinear)]
    if not divergences:
        raise WonderlandError("The model has no variational layer, so there is no divergence from a prior.")
    return torch.stack(divergences).sum()
