"""From a rule to a torch.optim.Optimizer: parameter groups, state dict, and one pass over memory where a kernel is."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.optim.limits import check, known
from wonderland.optim.passes import Plan, placed, real
from wonderland.optim.rules import Rule

_GATHERED = ("params", "param_names")


class Optimizer(torch.optim.Optimizer):
    """Any rule as an optimizer of PyTorch: groups, schedulers, hooks and state dicts work as they do there.

    State and options carry the names that torch.optim gives them, so that a state dict of the rule of the same name can be
    continued here, and the other way round. float32 and float64 on the CPU go through one pass of a kernel for all
    tensors; everything else, and a machine without a compiler, through the rule itself.

    Args:
        params: tensors, named tensors, or groups as dicts with options of their own.
        rule: what to do; see `wonderland.optim.rules`.
        options: the options of the rule that differ from its defaults.

    >>> from wonderland.optim import rules
    >>> x = torch.nn.Parameter(torch.tensor([10.0]))
    >>> optimizer = Optimizer([x], rules.sgd, lr=0.2)
    >>> for _ in range(10):
    ...     optimizer.zero_grad()
    ...     (x**2).sum().backward()
    ...     optimizer.step()
    >>> round(x.item(), 6)
    0.060466
    """

    rule: Rule

    def __init__(self, params: Iterable[Any], rule: Rule, **options: Any):
        self.rule = rule
        self._plans: dict[int, Plan] = {}
        known(self._owner(), options, rule.options)
        params = [params] if isinstance(params, dict) else params if isinstance(params, Tensor) else list(params)
        if isinstance(params, Tensor):
            raise WonderlandError(f"{self._owner()}: params must be a list of tensors, not one tensor: write [tensor].")
        if not params:
            raise WonderlandError(f"{self._owner()}: params is empty: give model.parameters(), and only once.")
        defaults = {**rule.options, **options}
        check(self._owner(), defaults)
        super().__init__(params, defaults)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "rule": self.rule}  # pyright: ignore

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._plans = {}

    def _owner(self) -> str:
        return type(self).__name__

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Further parameters, with options of their own where they differ."""
        check(self._owner(), {name: value for name, value in param_group.items() if name not in _GATHERED})
        super().add_param_group(param_group)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; `closure` computes the loss anew, if given."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            self._update(group)
        return loss

    def _update(self, group: dict[str, Any]) -> None:
        live = [parameter for parameter in group["params"] if parameter.grad is not None]
        if not live:
            return
        gradients = [self._checked(parameter) for parameter in live]
        states = [self.state[parameter] for parameter in live]
        plan = self._plans.get(id(group))
        if plan is None or not plan.holds(live, states):
            for parameter, state in zip(live, states, strict=True):
                if not state:
                    state.update(self.rule.init(real(parameter), group))
            plan = self._plans[id(group)] = Plan(self.rule.kernel, live, states)
        for pass_ in plan.passes:
            pass_(gradients, group)
        for i in plan.alone:
            parameter, gradient = real(live[i]), real(gradients[i])
            step, after = self.rule.update(gradient, states[i], parameter, group)
            parameter.add_(step)
            states[i].update(after)

    def _checked(self, parameter: Tensor) -> Tensor:
        gradient = parameter.grad
        assert gradient is not None
        if gradient.layout is not torch.strided:
            raise WonderlandError(
                f"{self._owner()}: a parameter of shape {tuple(parameter.shape)} has a sparse gradient: "
                "build its embedding with sparse=False."
            )
        return gradient

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a saved state: of this optimizer, or of torch's under the same name."""
        super().load_state_dict(state_dict)
        for parameter, state in self.state.items():
            for name, value in list(state.items()):
                if value is None:
                    del state[name]
                elif isinstance(value, Tensor) and value.ndim == 0 and name == "step":
                    state[name] = int(value)
                elif isinstance(value, Tensor) and value.shape == parameter.shape:
                    state[name] = placed(value, parameter)
            lacking = set(self.rule.kernel.tensors if self.rule.kernel and state else ()) - state.keys()
            if lacking:
                raise WonderlandError(
                    f"{self._owner()}: the saved state has no {', '.join(sorted(lacking))}: it was saved by another rule."
                )
        for group in self.param_groups:
            for name, value in self.rule.options.items():
                group.setdefault(name, value)
            if isinstance(group.get("betas"), list):
                group["betas"] = tuple(group["betas"])
