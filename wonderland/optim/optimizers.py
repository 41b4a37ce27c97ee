"""The optimizers by name: each an update rule with its arguments written out."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from wonderland.core import Part, WonderlandError, part
from wonderland.optim import rules
from wonderland.optim.limits import check
from wonderland.optim.optimizer import Optimizer

Betas = Sequence[float]  # two numbers; a spec that was saved has a list


@part
class SGD(Optimizer):
    r"""Gradient descent: :math:`x_t = x_{t-1} - \eta (g_t + \lambda x_{t-1})`. Book: Alice 2.3, D2L 12.4.

    With `momentum` it equals `Momentum`, with `nesterov` also set, `Nesterov`, as in torch.optim.SGD.

    >>> SGD([torch.nn.Parameter(torch.zeros(2))], lr=-0.1)
    Traceback (most recent call last):
    wonderland.core.errors.WonderlandError: SGD: lr must be a finite number of at least 0, not -0.1: a negative rate climbs.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        *,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: float = 0.0,
    ):
        if momentum == 0 and nesterov:
            raise WonderlandError("SGD: nesterov must come with a momentum above 0, such as momentum=0.9.")
        if momentum == 0:
            super().__init__(params, rules.sgd, lr=lr, weight_decay=weight_decay)
        else:
            rule = rules.nesterov if nesterov else rules.momentum
            super().__init__(params, rule, lr=lr, momentum=momentum, weight_decay=weight_decay)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters; a group may have its own momentum only if the optimizer has one."""
        super().add_param_group(param_group)
        if self.rule is rules.sgd and param_group.get("momentum"):
            raise WonderlandError(
                "SGD: a group has momentum and the optimizer has none: give momentum to SGD, and momentum=0 to the groups without."
            )


@part
class Momentum(Optimizer):
    r"""Momentum as in PyTorch: :math:`v_t = \beta v_{t-1} + g_t`, :math:`x_t = x_{t-1} - \eta_t v_t`. Book: D2L 12.6."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-3, *, momentum: float = 0.9, weight_decay: float = 0.0):
        super().__init__(params, rules.momentum, lr=lr, momentum=momentum, weight_decay=weight_decay)


@part
class HeavyBall(Optimizer):
    r"""Momentum as in Alice, with the learning rate inside the sum: :math:`v_t = \lambda v_{t-1} - \eta_t g_t`. Book: Alice 2.3.2."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-3, *, momentum: float = 0.9, weight_decay: float = 0.0):
        super().__init__(params, rules.heavy_ball, lr=lr, momentum=momentum, weight_decay=weight_decay)


@part
class Nesterov(Optimizer):
    r"""Nesterov momentum: :math:`x_t = x_{t-1} - \eta_t (g_t + \beta v_t)`."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-3, *, momentum: float = 0.9, weight_decay: float = 0.0):
        super().__init__(params, rules.nesterov, lr=lr, momentum=momentum, weight_decay=weight_decay)


@part
class AdaGrad(Optimizer):
    r"""A learning rate divided by the root of all squared gradients so far: :math:`\eta / (\sqrt{s_t + \epsilon_0} + \epsilon)`. Book: D2L 12.7."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        *,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        eps_root: float = 0.0,
    ):
        more = {"lr_decay": lr_decay, "initial_accumulator_value": initial_accumulator_value}
        super().__init__(params, rules.adagrad, lr=lr, weight_decay=weight_decay, eps=eps, eps_root=eps_root, **more)


@part
class RMSProp(Optimizer):
    r"""AdaGrad with a moving average: :math:`s_t = \gamma s_{t-1} + (1 - \gamma) g_t^2`, with `alpha` for gamma. Book: D2L 12.8."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        *,
        alpha: float = 0.99,
        eps: float = 1e-8,
        eps_root: float = 0.0,
        weight_decay: float = 0.0,
    ):
        more = {"eps": eps, "eps_root": eps_root}
        super().__init__(params, rules.rmsprop, lr=lr, alpha=alpha, weight_decay=weight_decay, **more)


@part
class Adadelta(Optimizer):
    r"""Steps rescaled to the size of past steps: :math:`g'_t = \sqrt{\Delta x_{t-1} + \epsilon} / \sqrt{s_t + \epsilon}\,g_t`. Book: D2L 12.9."""

    def __init__(
        self, params: Iterable[Any], lr: float = 1.0, *, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0
    ):
        super().__init__(params, rules.adadelta, lr=lr, rho=rho, eps=eps, weight_decay=weight_decay)


@part
class Adam(Optimizer):
    r"""Adam, with `weight_decay` as L2 penalty in the gradient: :math:`\hat v_t / (\sqrt{\hat s_t} + \epsilon)`. Book: D2L 12.10."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        *,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ):
        super().__init__(params, rules.adam, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)


@part
class AdamW(Optimizer):
    r"""Adam with decoupled weight decay, :math:`-\eta \lambda x_{t-1}`. Book: D2L 12.10.

    >>> x = torch.nn.Parameter(torch.ones(3))
    >>> optimizer = AdamW([x], lr=0.1)
    >>> x.sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([0.8990, 0.8990, 0.8990])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        *,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ):
        super().__init__(params, rules.adamw, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)


@part
class FusedAdamW(Part, torch.optim.AdamW):
    r"""AdamW by the fused kernel of PyTorch: `torch.optim.AdamW(params, fused=True)` under a name that a spec can have.

    >>> from wonderland.optim import groups
    >>> model = torch.nn.Linear(2, 2)
    >>> optimizer = FusedAdamW.spec(lr=1e-3, weight_decay=0.1).build(params=groups(model))
    >>> [group["weight_decay"] for group in optimizer.param_groups]
    [0.1, 0.0]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        *,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ):
        check("FusedAdamW", {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        super().__init__(params, lr, (betas[0], betas[1]), eps, weight_decay, fused=True)


@part
class Yogi(Optimizer):
    r"""Adam with a second moment that decreases slowly: :math:`s_t = s_{t-1} + (1 - \beta_2) g_t^2 \operatorname{sign}(g_t^2 - s_{t-1})`. Book: D2L 12.10."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        *,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-3,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 1e-6,
    ):
        more = {"initial_accumulator_value": initial_accumulator_value}
        super().__init__(params, rules.yogi, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, **more)


@part
class Lion(Optimizer):
    r"""The sign of a momentum: :math:`-\eta (\operatorname{sign}(\beta_1 m_{t-1} + (1 - \beta_1) g_t) + \lambda x_{t-1})`."""

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-4, *, betas: Betas = (0.9, 0.99), weight_decay: float = 0.0
    ):
        super().__init__(params, rules.lion, lr=lr, betas=betas, weight_decay=weight_decay)


@part
class Muon(Optimizer):
    r"""Orthogonalised momentum for the matrices inside a network; use AdamW for the other parameters.

    >>> Muon([torch.nn.Parameter(torch.zeros(3))])
    Traceback (most recent call last):
    wonderland.core.errors.WonderlandError: Muon: params holds a tensor of shape (3,), and the rule is for real matrices: give the others to AdamW.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        *,
        momentum: float = 0.95,
        weight_decay: float = 0.1,
        ns_steps: int = 5,
        eps: float = 1e-7,
        precision: str = "bfloat16",
    ):
        more = {"ns_steps": ns_steps, "eps": eps, "precision": precision}
        super().__init__(params, rules.muon, lr=lr, momentum=momentum, weight_decay=weight_decay, **more)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add matrices."""
        super().add_param_group(param_group)
        for parameter in self.param_groups[-1]["params"]:
            if parameter.ndim != 2 or parameter.is_complex():
                raise WonderlandError(
                    f"Muon: params holds a tensor of shape {tuple(parameter.shape)}, and the rule is for real matrices: "
                    "give the others to AdamW."
                )


@part
class FilterMuon(Optimizer):
    r"""Muon for filters of convolutions, AdamW with `others` times the rate for the rest; see `rules.filter_muon`.

    >>> convolution = torch.nn.Conv2d(1, 2, 3)
    >>> optimizer = FilterMuon(convolution.parameters(), lr=0.1)
    >>> convolution(torch.ones(1, 1, 3, 3)).sum().backward()
    >>> optimizer.step()
    >>> sorted(name for state in optimizer.state.values() for name in state)
    ['exp_avg', 'exp_avg_sq', 'momentum_buffer', 'step']
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 0.1,
        *,
        momentum: float = 0.6,
        others: float = 0.1,
        betas: Betas = (0.9, 0.95),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        ns_steps: int = 3,
        precision: str = "float32",
    ):
        check("FilterMuon", {"value": others})
        more = {"others": others, "betas": betas, "eps": eps, "ns_steps": ns_steps, "precision": precision}
        super().__init__(params, rules.filter_muon, lr=lr, momentum=momentum, weight_decay=weight_decay, **more)


@part
class ScheduleFree(Optimizer):
    r"""AdamW with an average of iterates instead of a schedule; evaluate and save the model inside `averaged()`.

    >>> x = torch.nn.Parameter(torch.ones(1))
    >>> optimizer = ScheduleFree([x], lr=0.1)
    >>> for _ in range(2):
    ...     optimizer.zero_grad()
    ...     (x**2).sum().backward()
    ...     optimizer.step()
    >>> with optimizer.averaged():
    ...     round(x.item(), 4)
    0.8527
    >>> round(x.item(), 4)
    0.848
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2.5e-3,
        *,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        warmup_steps: int = 0,
    ):
        more = {"eps": eps, "weight_decay": weight_decay, "warmup_steps": warmup_steps}
        super().__init__(params, rules.schedule_free, lr=lr, betas=betas, **more)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters; betas[0] must not be 0, since computing the average divides by it."""
        super().add_param_group(param_group)
        if self.param_groups[-1]["betas"][0] == 0:
            raise WonderlandError("ScheduleFree: betas[0] must be above 0, since computing the average divides by it.")

    @contextmanager
    @torch.no_grad()
    def averaged(self) -> Iterator[None]:
        """A context in which parameters hold the average x; afterwards they hold the training point y again, bit for bit."""
        originals = []
        for group in self.param_groups:
            first = group["betas"][0]
            for parameter in group["params"]:
                if "z" in self.state.get(parameter, {}):
                    originals.append((parameter, parameter.detach().clone()))
                    values = torch.view_as_real(parameter) if parameter.is_complex() else parameter
                    values.lerp_(self.state[parameter]["z"], 1 - 1 / first)
        try:
            yield
        finally:
            for parameter, before in originals:
                parameter.copy_(before)
