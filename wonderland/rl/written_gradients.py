"""Gradients of a policy and its value, written out: a few matrix products in place of a recorded graph."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.rl.actor_critic import ActorCritic

# From log-probabilities (n,), those of the policy that acted, and advantages: the loss of each row, and its derivative by the former.
Objective = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


class WrittenGradients:
    r"""The loss of an `ActorCritic` and its gradients, into the `grad` of its parameters.

    .. math:: L = \frac1n \sum_i f(\log \pi(a_i)) + c_v (v_i - R_i)^2 - c_e H_i, \qquad
        \frac{\partial L}{\partial z} = \frac1n f' (1_a - \pi) + \frac{c_e}{n} \pi (\log \pi + H)

    for logits z; a Gaussian's mean gets :math:`f' (a - \mu) / \sigma^2`, its log deviation :math:`f' ((a - \mu)^2 / \sigma^2 - 1) - c_e`.
    All gradients lie in one buffer (`flat`), so that their norm is that of one tensor.
    """

    def __init__(self, model: ActorCritic):
        self.model = model
        parameters = list(model.parameters())
        self.flat = torch.zeros(sum(parameter.numel() for parameter in parameters))
        first = 0
        for parameter in parameters:
            parameter.grad = self.flat[first : first + parameter.numel()].view_as(parameter)
            first += parameter.numel()
        self.actor, self.critic = ([m for m in net if isinstance(m, nn.Linear)] for net in (model.actor, model.critic))

    @staticmethod
    def fits(model: nn.Module) -> bool:
        """Whether a model computes what is written here: an ActorCritic of dense layers and tanh, on the CPU, without hooks."""
        if type(model) is not ActorCritic:
            return False
        modules = list(model.modules())
        plain = all(type(module) in (ActorCritic, nn.Sequential, nn.Linear, nn.Tanh) for module in modules)
        hooked = any(module._forward_hooks or module._forward_pre_hooks or module._backward_hooks for module in modules)
        fine = all(p.requires_grad and p.dtype == torch.float32 and p.device.type == "cpu" for p in model.parameters())
        return plain and not hooked and fine

    @torch.no_grad()
    def __call__(
        self, x: Tensor, actions: Tensor, old: Tensor, gain: Tensor, returns: Tensor, objective: Objective, *,
        value: float, entropy: float,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """The loss and the mean entropy; rows are normalised observations (n, features)."""
        outputs, kept = forward(self.actor, x)
        log, mean_entropy, back = self._policy(outputs, actions)
        losses, slope = objective(log, old, gain)
        values, kept_by_critic = forward(self.critic, x)
        error = values[:, 0] - returns
        n = len(x)
        backward(self.actor, kept, back(slope / n, entropy / n))
        backward(self.critic, kept_by_critic, (2 * value / n) * error[:, None])
        return losses.mean() + value * error.square().mean() - entropy * mean_entropy, mean_entropy

    def _policy(self, outputs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Any]:
        """Log-probabilities, the mean entropy, and the gradient of the outputs from that of the log-probabilities."""
        if self.model.continuous:
            return self._gaussian(outputs, actions)
        logs = outputs.log_softmax(-1)
        shares = logs.exp()
        entropies = -(shares * logs).sum(-1, keepdim=True)

        def back(slope: Tensor, entropy: float) -> Tensor:
            gradient = shares * -slope[:, None]
            gradient.scatter_add_(1, actions[:, None], slope[:, None])
            return gradient + entropy * shares * (logs + entropies) if entropy else gradient

        return logs.gather(-1, actions[:, None])[:, 0], entropies.mean(), back

    def _gaussian(self, mean: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Any]:
        log_std = self.model.log_std
        z = (actions - mean) * (-log_std).exp()
        constant = 0.5 * math.log(2 * math.pi)

        def back(slope: Tensor, entropy: float) -> Tensor:
            assert log_std.grad is not None
            torch.sum(slope[:, None] * (z.square() - 1), 0, out=log_std.grad)
            log_std.grad -= entropy * len(mean)
            return slope[:, None] * z * (-log_std).exp()

        return (-0.5 * z.square() - log_std - constant).sum(-1), (log_std + constant + 0.5).sum(), back


def forward(layers: list[nn.Linear], x: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Dense layers with tanh between them: the outputs, and the input of each layer."""
    kept = [x]
    for layer in layers[:-1]:
        kept.append(torch.addmm(layer.bias, kept[-1], layer.weight.t()).tanh_())
    return torch.addmm(layers[-1].bias, kept[-1], layers[-1].weight.t()), kept


def backward(layers: list[nn.Linear], kept: list[Tensor], gradient: Tensor) -> None:
    """Write the gradients of the layers, from that of their outputs."""
    for index in range(len(layers) - 1, -1, -1):
        layer, x = layers[index], kept[index]
        assert layer.weight.grad is not None
        assert layer.bias.grad is not None
        torch.mm(gradient.t(), x, out=layer.weight.grad)
        torch.sum(gradient, 0, out=layer.bias.grad)
        if index:
            gradient = gradient.mm(layer.weight) * (1 - x.square())
