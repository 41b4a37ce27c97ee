"""From a rule to a torch.optim.Optimizer: parameter groups, state dict, and one pass over memory where a kernel is."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import Part, WonderlandError
from wonderland.optim.limits import check, known
from wonderland.optim.passes import Plan, placed, real
from wonderland.optim.rules import Rule

_GATHERED = ("params", "param_names")


class Optimizer(Part, torch.optim.Optimizer):
    """Any rule as an optimizer of PyTorch: groups, schedulers, hooks and state dicts work as they do there.

    State and options carry the names that torch.optim gives them, so that a state dict of the rule of the same name can be
    continued here, and the other way round. The optimizers by name have specs, built with `spec.build(params=...)`. float32 and float64 on the CPU go through one pass of a kernel for all
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
        params = self._listed(params)
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

    def _listed(self, params: Any) -> list[Any]:
        """Parameters or groups as a list, or the sentence that says why they are neither."""
        owner = self._owner()
        if isinstance(params, Tensor):
            raise WonderlandError(f"{owner}: params must be a list of tensors, not one tensor: write [tensor].")
        if isinstance(params, nn.Module):
            raise WonderlandError(f"{owner}: params must be tensors, not a model: write model.parameters().")
        if isinstance(params, str) or not isinstance(params, Iterable):
            raise WonderlandError(f"{owner}: params must be tensors or groups of them, not {params!r}.")
        found = [params] if isinstance(params, dict) else list(params)
        if not found:
            raise WonderlandError(f"{owner}: params is empty: give model.parameters(), and only once.")
        return found

    def _fit(self, params: Any) -> None:
        """Say which of the parameters of a group cannot be stepped."""
        several = params if isinstance(params, Iterable) and not isinstance(params, Tensor) else [params]
        for i, entry in enumerate(several):
            tensor = entry[1] if isinstance(entry, tuple) and len(entry) == 2 else entry
            if not isinstance(tensor, Tensor):
                raise WonderlandError(f"{self._owner()}: params[{i}] must be a tensor, not {tensor!r}.")
            if not tensor.is_floating_point() and not tensor.is_complex():
                raise WonderlandError(f"{self._owner()}: params[{i}] holds {tensor.dtype}, which has no gradient.")
            if not tensor.is_leaf:
                raise WonderlandError(
                    f"{self._owner()}: params[{i}] was computed from other tensors: give these, or detach it first."
                )

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Further parameters, with options of their own where they differ."""
        if not isinstance(param_group, dict) or "params" not in param_group:
            raise WonderlandError(f"{self._owner()}: a group must be a dict with params in it, not {param_group!r}.")
        if not isinstance(param_group["params"], Tensor):
            param_group = {**param_group, "params": self._listed(param_group["params"])}
        self._fit(param_group["params"])
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

    def _matching(self, saved: Any) -> None:
        """Say why a saved state is none of an optimizer with these groups."""
        groups = saved.get("param_groups") if isinstance(saved, dict) else None
        if not isinstance(groups, list) or not isinstance(saved.get("state"), dict):
            raise WonderlandError(f"{self._owner()}: a saved state has 'state' and 'param_groups'; this has not.")
        theirs, ours = ([len(group["params"]) for group in each] for each in (groups, self.param_groups))
        if theirs != ours:
            raise WonderlandError(
                f"{self._owner()}: the saved state has groups of {theirs} tensors, and this optimizer of {ours}: "
                "build it for the same model with the same groups."
            )

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a saved state: of this optimizer, or of torch's under the same name."""
        self._matching(state_dict)
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
