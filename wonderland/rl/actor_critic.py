"""A policy and a value of states, by two small networks."""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from wonderland.core import Part, WonderlandError, part


def network(features: int, width: int, depth: int, outputs: int, gain: float) -> nn.Sequential:
    """Hidden layers of tanh with orthogonal weights; the last layer has its own gain."""
    layers: list[nn.Module] = []
    for index in range(depth + 1):
        linear = nn.Linear(features if index == 0 else width, outputs if index == depth else width)
        nn.init.orthogonal_(linear.weight, gain if index == depth else math.sqrt(2))
        nn.init.zeros_(linear.bias)
        layers += [linear] if index == depth else [linear, nn.Tanh()]
    return nn.Sequential(*layers)


@part
class ActorCritic(Part, nn.Module):
    r"""Logits of actions, or the mean of a Gaussian, and the value of a state.

    .. math:: z = \frac{x - \mu}{\sigma}, \qquad \pi(a \mid x) = \text{softmax}(f(z))_a
        \ \text{or}\ \mathcal{N}(f(z), \text{diag}(e^{2 s})), \qquad v(x) = g(z)

    :math:`\mu, \sigma` are of the observations met in training. Actions of a box lie in [-1, 1].

    Shapes: x (b, features) -> (b, actions + 1), the value last.

    >>> ActorCritic(features=4, actions=2)(torch.randn(3, 4)).shape
    torch.Size([3, 3])
    """

    mean: Tensor
    variance: Tensor
    seen: Tensor

    def __init__(
        self,
        features: int,
        actions: int,
        *,
        continuous: bool = False,
        width: int = 64,
        depth: int = 2,
        normalise: bool = True,
    ):
        super().__init__()
        if min(features, actions, width) < 1 or depth < 0:
            raise WonderlandError("A policy needs at least one feature, one action and one unit.")
        self.continuous, self.normalise, self.actions, self.features = continuous, normalise, actions, features
        self.actor = network(features, width, depth, actions, 0.01)
        self.critic = network(features, width, depth, 1, 1.0)
        if continuous:
            self.log_std = nn.Parameter(torch.full((actions,), -0.5))
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("variance", torch.ones(features))
        self.register_buffer("seen", torch.zeros((), dtype=torch.float64))

    def normal(self, x: Tensor) -> Tensor:
        """Observations with mean 0 and variance 1."""
        if not self.normalise:
            return x
        return ((x - self.mean) * (self.variance + 1e-8).rsqrt()).clamp(-10, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.normal(x)
        return torch.cat([self.actor(x), self.critic(x)], -1)

    @torch.no_grad()
    def observe(self, x: Tensor) -> None:
        """Count observations (n, features) into mean and variance."""
        if not self.normalise:
            return
        count, total = len(x), self.seen + len(x)
        delta = x.mean(0) - self.mean
        share = float(count / total)
        spread = self.variance * (1 - share) + x.var(0, correction=0) * share + delta.square() * share * (1 - share)
        self.mean += delta * share
        self.variance.copy_(spread)
        self.seen.copy_(total)

    def act(self) -> Callable[[np.ndarray], np.ndarray]:
        """The policy as a function of arrays: (n, features) -> (n, actions), logits or means.

        It reads the weights where torch keeps them; for a few rows, numpy takes a tenth of the time of torch.
        """
        layers = [
            (layer.weight.detach().numpy().T, layer.bias.detach().numpy())
            for layer in self.actor
            if isinstance(layer, nn.Linear)
        ]
        mean, scale = self.mean.numpy(), (self.variance + 1e-8).rsqrt().numpy()

        def forward(x: np.ndarray) -> np.ndarray:
            if self.normalise:
                x = ((x - mean) * scale).clip(-10, 10)
            for index, (weight, bias) in enumerate(layers):
                x = x @ weight
                x += bias
                if index < len(layers) - 1:
                    np.tanh(x, x)
            return x

        return forward
