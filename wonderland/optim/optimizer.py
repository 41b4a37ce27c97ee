"""Optimizer: an update rule as a torch.optim.Optimizer, with a fused kernel where there is one."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import Part, WonderlandError
from wonderland.optim.kernel_calls import GroupUpdate, real, with_layout_of
from wonderland.optim.limits import check, known
from wonderland.optim.rules import UpdateRule

_NOT_OPTIONS = ("params", "param_names")


class Optimizer(Part, torch.optim.Optimizer):
    """Any update rule as a torch optimizer: groups, schedulers, hooks and state dicts work as usual.

    State and options have the names of torch.optim, so state dicts can be exchanged with the torch optimizer of the same
    name. Named optimizers have specs, built with `spec.build(params=...)`. float32 and float64 tensors on the CPU are updated
    by one kernel call; other tensors, or all on a machine without a compiler, by the rule itself.

    Args:
        params: tensors, named tensors, or groups as dicts with their own options.
        rule: the update rule; see `wonderland.optim.rules`.
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

    rule: UpdateRule

    def __init__(self, params: Iterable[Any], rule: UpdateRule, **options: Any):
        self.rule = rule
        self._prepared: dict[int, GroupUpdate] = {}
        known(self._owner(), options, rule.options)
        params = self._listed(params)
        defaults = {**rule.options, **options}
        check(self._owner(), defaults)
        super().__init__(params, defaults)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "rule": self.rule}  # pyright: ignore

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._prepared = {}

    def _owner(self) -> str:
        return type(self).__name__

    def _listed(self, params: Any) -> list[Any]:
        """Parameters or groups as a list; an error if they are neither."""
        owner = self._owner()
        if isinstance(params, Tensor):
            raise WonderlandError(f"{owner}: params must be a list of tensors, not one tensor: write [tensor].")
        if isinstance(params, nn.Module):
            raise WonderlandError(f"{owner}: params must be tensors, not a model: write model.parameters().")
        if isinstance(params, str) or not isinstance(params, Iterable):
            raise WonderlandError(f"{owner}: params must be tensors or groups of them, not {params!r}.")
        entries = [params] if isinstance(params, dict) else list(params)
        if not entries:
            raise WonderlandError(f"{owner}: params is empty: give model.parameters(), and only once.")
        return entries

    def _check_parameters(self, params: Any) -> None:
        """Raise an error for parameters that cannot be optimized."""
        entries = params if isinstance(params, Iterable) and not isinstance(params, Tensor) else [params]
        for i, entry in enumerate(entries):
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
        """Add parameters with their own options."""
        if not isinstance(param_group, dict) or "params" not in param_group:
            raise WonderlandError(f"{self._owner()}: a group must be a dict with params in it, not {param_group!r}.")
        if not isinstance(param_group["params"], Tensor):
            param_group = {**param_group, "params": self._listed(param_group["params"])}
        self._check_parameters(param_group["params"])
        check(self._owner(), {name: value for name, value in param_group.items() if name not in _NOT_OPTIONS})
        super().add_param_group(param_group)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; `closure` recomputes the loss, if given."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            self._update(group)
        return loss

    def _update(self, group: dict[str, Any]) -> None:
        updated = [parameter for parameter in group["params"] if parameter.grad is not None]
        if not updated:
            return
        gradients = [self._dense_gradient(parameter) for parameter in updated]
        states = [self.state[parameter] for parameter in updated]
        prepared = self._prepared.get(id(group))
        if prepared is None or not prepared.is_valid(updated, states):
            for parameter, state in zip(updated, states, strict=True):
                if not state:
                    state.update(self.rule.init(real(parameter), group))
            prepared = self._prepared[id(group)] = GroupUpdate(self.rule.kernel, updated, states)
        for kernel_call in prepared.calls:
            kernel_call(gradients, group)
        for i in prepared.one_by_one:
            parameter, gradient = real(updated[i]), real(gradients[i])
            step, after = self.rule.update(gradient, states[i], parameter, group)
            parameter.add_(step)
            states[i].update(after)

    def _dense_gradient(self, parameter: Tensor) -> Tensor:
        gradient = parameter.grad
        assert gradient is not None
        if gradient.layout is not torch.strided:
            raise WonderlandError(
                f"{self._owner()}: a parameter of shape {tuple(parameter.shape)} has a sparse gradient: "
                "build its embedding with sparse=False."
            )
        return gradient

    def _check_groups(self, saved: Any) -> None:
        """Raise an error if a saved state does not have the groups of this optimizer."""
        groups = saved.get("param_groups") if isinstance(saved, dict) else None
        if not isinstance(groups, list) or not isinstance(saved.get("state"), dict):
            raise WonderlandError(f"{self._owner()}: a saved state must be a dict with 'state' and 'param_groups'.")
        saved_sizes = [len(group["params"]) for group in groups]
        own_sizes = [len(group["params"]) for group in self.param_groups]
        if saved_sizes != own_sizes:
            raise WonderlandError(
                f"{self._owner()}: the saved state has groups of {saved_sizes} tensors, and this optimizer of {own_sizes}: "
                "build it for the same model with the same groups."
            )

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a saved state: of this optimizer, or of torch's under the same name."""
        self._check_groups(state_dict)
        super().load_state_dict(state_dict)
        for parameter, state in self.state.items():
            for name, value in list(state.items()):
                if value is None:
                    del state[name]
                elif isinstance(value, Tensor) and value.ndim == 0 and name == "step":
                    state[name] = int(value)
                elif isinstance(value, Tensor) and value.shape == parameter.shape:
                    state[name] = with_layout_of(value, parameter)
            missing = set(self.rule.kernel.tensors if self.rule.kernel and state else ()) - state.keys()
            if missing:
                raise WonderlandError(
                    f"{self._owner()}: the saved state has no {', '.join(sorted(missing))}: it was saved by another rule."
                )
        for group in self.param_groups:
            for name, value in self.rule.options.items():
                group.setdefault(name, value)
            if isinstance(group.get("betas"), list):
                group["betas"] = tuple(group["betas"])
