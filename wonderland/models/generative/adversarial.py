"""Generative adversarial networks: the losses of both players, and the step that alternates between them."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import WonderlandError

LOSSES = ("minimax", "nonsaturating", "wasserstein", "hinge")


def discriminator_loss(real: Tensor, fake: Tensor, loss: str = "nonsaturating") -> Tensor:
    r"""What the discriminator makes small, from its logits of real and of made samples.

    .. math:: -\tfrac12 E \log \sigma(D(x)) - \tfrac12 E \log (1 - \sigma(D(G(z)))), \quad
        E D(G(z)) - E D(x), \quad \tfrac12 E \max(0, 1 - D(x)) + \tfrac12 E \max(0, 1 + D(G(z)))

    for "minimax" and "nonsaturating", "wasserstein" and "hinge". Shapes: (n,), (m,) -> (). Book: D2L 20.1.

    >>> round(discriminator_loss(torch.zeros(3), torch.zeros(3)).item(), 6)
    0.693147
    """
    _check(loss)
    if loss == "wasserstein":
        return fake.mean() - real.mean()
    if loss == "hinge":
        return ((1 - real).relu().mean() + (1 + fake).relu().mean()) / 2
    return (F.softplus(-real).mean() + F.softplus(fake).mean()) / 2


def generator_loss(fake: Tensor, loss: str = "nonsaturating") -> Tensor:
    r"""What the generator makes small, from the discriminator's logits of what it made.

    .. math:: E \log (1 - \sigma(D)) \ \text{(minimax)}, \quad -E \log \sigma(D) \ \text{(nonsaturating)}, \quad -E D \ \text{(wasserstein, hinge)}

    Shapes: (n,) -> (). Book: D2L 20.1.
    """
    _check(loss)
    if loss == "minimax":
        return -F.softplus(fake).mean()
    return F.softplus(-fake).mean() if loss == "nonsaturating" else -fake.mean()


def gradient_penalty(discriminator: Callable[[Tensor], Tensor], real: Tensor, fake: Tensor) -> Tensor:
    r"""How far the gradient between real and made samples is from length one.

    .. math:: E (\lVert \nabla_x D(\epsilon x + (1 - \epsilon) G(z)) \rVert - 1)^2

    Paper: Gulrajani et al., 2017.
    """
    share = torch.rand(len(real), *[1] * (real.dim() - 1), dtype=real.dtype)
    between = (share * real + (1 - share) * fake).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(discriminator(between).sum(), between, create_graph=True)
    return (gradient.flatten(1).norm(dim=1) - 1).square().mean()


def optimal_discriminator(real: Tensor, fake: Tensor) -> Tensor:
    r"""The best discriminator, from the densities of real and of made samples.

    .. math:: D^*(x) = \frac{p(x)}{p(x) + q(x)}

    Shapes: densities (n,), (n,) -> (n,). It is 1/2 everywhere when both are equal.

    >>> optimal_discriminator(torch.tensor([0.2, 0.3]), torch.tensor([0.2, 0.1])).tolist()
    [0.5, 0.75]
    """
    return real / (real + fake)


def adversarial_step(
    generator: Callable[[Tensor], Tensor], discriminator: Callable[[Tensor], Tensor], optimizers: tuple[Any, Any], real: Tensor, noise: Tensor, *,
    loss: str = "nonsaturating", penalty: float = 0.0,
) -> dict[str, float]:  # fmt: skip
    """The discriminator learns once, from samples that are detached, then the generator does. `optimizers` are theirs, in this order:
    generator, discriminator. Gives both losses."""
    fake = generator(noise)
    judged = discriminator_loss(discriminator(real).flatten(), discriminator(fake.detach()).flatten(), loss)
    total = judged + (penalty * gradient_penalty(discriminator, real, fake.detach()) if penalty else 0.0)
    optimizers[1].zero_grad()
    total.backward()
    optimizers[1].step()
    generator_value = generator_loss(discriminator(fake).flatten(), loss)
    optimizers[0].zero_grad()
    generator_value.backward()
    optimizers[0].step()
    return {"discriminator": float(judged.detach()), "generator": float(generator_value.detach())}


def _check(loss: str) -> None:
    if loss not in LOSSES:
        raise WonderlandError(f"There is no adversarial loss {loss!r}. Known are {', '.join(LOSSES)}.")
