"""Additions to any torch optimizer, by hooks around its step: gradient clipping, weight decay, a schedule, lookahead.

Each function registers its hooks and returns the optimizer:

    optimizer = lookahead(scheduled(clipped(AdamW(model.parameters()), norm=1.0), cosine, steps=1000))

Their state is saved and loaded with the optimizer's state dict.
"""

import ctypes
import functools
from typing import Any, TypeVar

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops import native
from wonderland.optim.limits import check
from wonderland.optim.schedules import Schedule

AnyOptimizer = TypeVar("AnyOptimizer", bound=torch.optim.Optimizer)


def clipped(optimizer: AnyOptimizer, *, norm: float | None = None, value: float | None = None) -> AnyOptimizer:
    r"""Clip gradients before each step: each entry to `value`, or all together to a total `norm`.

    .. math:: g \leftarrow g \cdot \min(1, \theta / \lVert g \rVert), \qquad g_i \leftarrow \max(-v, \min(v, g_i))

    Book: D2L 9.5 and 12.2.

    >>> x = torch.nn.Parameter(torch.zeros(2))
    >>> optimizer = clipped(torch.optim.SGD([x], lr=1.0), norm=1.0)
    >>> x.grad = torch.tensor([3.0, 4.0])
    >>> optimizer.step()
    >>> x.detach()
    tensor([-0.6000, -0.8000])
    """
    _check_optimizer("clipped", optimizer)
    if (norm is None) == (value is None):
        raise WonderlandError("clipped: give either norm or value.")
    check("clipped", {"norm": norm} if value is None else {"value": value})

    def before(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if norm is not None:
            clip_norm(_parameters(optimizer), norm)
        else:
            torch.nn.utils.clip_grad_value_(_parameters(optimizer), value or 0.0)

    optimizer.register_step_pre_hook(before)
    return optimizer


def clip_norm(parameters: list[Tensor], norm: float) -> None:
    """torch.nn.utils.clip_grad_norm_ by a kernel with two passes over memory, where it can be used."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    dense = all(grad.layout is torch.strided and grad.is_contiguous() for grad in gradients)
    supported = dense and gradients and gradients[0].dtype in (torch.float32, torch.float64)
    if not supported or not native.usable("optimizers", *gradients):
        torch.nn.utils.clip_grad_norm_(parameters, norm)
        return
    count = len(gradients)
    _clip_kernel(gradients[0].dtype)(
        (ctypes.c_int64 * count)(*[grad.data_ptr() for grad in gradients]),
        (ctypes.c_int64 * count)(*[grad.numel() for grad in gradients]),
        norm,
        count,
        torch.get_num_threads(),
    )


@functools.cache
def _clip_kernel(dtype: torch.dtype) -> Any:
    function = getattr(native.library("optimizers"), "clip_f32" if dtype == torch.float32 else "clip_f64")
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_double, ctypes.c_long, ctypes.c_long]
    return function


def decayed(optimizer: AnyOptimizer, weight_decay: float) -> AnyOptimizer:
    r"""Decoupled weight decay for any optimizer, as in AdamW: :math:`x \leftarrow (1 - \eta \lambda) x` before the step."""
    _check_optimizer("decayed", optimizer)
    check("decayed", {"weight_decay": weight_decay})

    @torch.no_grad()
    def before(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        for group in optimizer.param_groups:
            if group["lr"] * weight_decay > 1:
                raise WonderlandError(
                    f"decayed: weight_decay {weight_decay:g} times the learning rate {group['lr']:g} is above 1, "
                    "so weights would change sign: lower one of them."
                )
            if updated := [parameter for parameter in group["params"] if parameter.grad is not None]:
                torch._foreach_mul_(updated, 1 - group["lr"] * weight_decay)

    optimizer.register_step_pre_hook(before)
    return optimizer


def scheduled(optimizer: AnyOptimizer, schedule: Schedule, *, steps: int) -> AnyOptimizer:
    """Before each step, the learning rate of each group is its initial rate times the schedule's factor.

    A schedule with a state, such as `Plateau`, is saved and loaded with the optimizer.
    """
    _check_optimizer("scheduled", optimizer)
    check("scheduled", {"steps": steps})
    if not callable(schedule):
        raise WonderlandError(f"scheduled: schedule must be a function of (step, steps), not {schedule!r}.")
    state = {"step": 0, "peaks": [group["lr"] for group in optimizer.param_groups]}

    def before(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        state["peaks"] += [group["lr"] for group in optimizer.param_groups[len(state["peaks"]) :]]
        for group, peak in zip(optimizer.param_groups, state["peaks"], strict=True):
            group["lr"] = peak * schedule(state["step"], steps)
        state["step"] += 1

    optimizer.register_step_pre_hook(before)
    _save_values(optimizer, "scheduled", state)
    if hasattr(schedule, "state_dict") and hasattr(schedule, "load_state_dict"):
        _save_state_dict(optimizer, "schedule", schedule)
    return optimizer


def lookahead(optimizer: AnyOptimizer, *, every: int = 5, pull: float = 0.5) -> AnyOptimizer:
    r"""Lookahead: every k steps, slow weights move towards the fast ones, which continue from there.

    .. math:: \phi \leftarrow \phi + \alpha (\theta - \phi), \qquad \theta \leftarrow \phi

    k is `every`, alpha `pull`. Paper: Zhang et al., 2019.

    >>> x = torch.nn.Parameter(torch.zeros(1))
    >>> optimizer = lookahead(torch.optim.SGD([x], lr=1.0), every=2)
    >>> x.grad = torch.ones(1)
    >>> for _ in range(2):
    ...     optimizer.step()
    >>> x.item()
    -1.0
    """
    _check_optimizer("lookahead", optimizer)
    check("lookahead", {"every": every, "pull": pull})
    slow = [parameter.detach().clone() for parameter in _parameters(optimizer)]
    state: dict[str, Any] = {"step": 0, "slow": slow}

    @torch.no_grad()
    def after(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        state["step"] += 1
        fast = _parameters(optimizer)
        state["slow"] += [parameter.detach().clone() for parameter in fast[len(state["slow"]) :]]
        if state["step"] % every == 0:
            torch._foreach_lerp_(state["slow"], fast, pull)
            torch._foreach_copy_(fast, state["slow"])

    optimizer.register_step_post_hook(after)
    _save_values(optimizer, "lookahead", state)
    return optimizer


def _check_optimizer(name: str, value: Any) -> None:
    if not isinstance(value, torch.optim.Optimizer):
        raise WonderlandError(f"{name} takes an optimizer first, not a {type(value).__name__}.")


def _parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _save_state_dict(optimizer: torch.optim.Optimizer, name: str, owner: Any) -> None:
    """Save and load an object's state dict with that of the optimizer."""

    def saved(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> dict[str, Any]:
        return {**state, name: dict(owner.state_dict())}

    def loaded(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
        if name not in state:
            raise WonderlandError(f"The saved state has no {name!r}: it was saved from an optimizer without it.")
        owner.load_state_dict(state[name])

    optimizer.register_state_dict_post_hook(saved)
    optimizer.register_load_state_dict_pre_hook(loaded)


def _save_values(optimizer: torch.optim.Optimizer, name: str, values: dict[str, Any]) -> None:
    """Save and load a dict of values with the optimizer's state dict."""

    def saved(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> dict[str, Any]:
        return {
            **state,
            name: {key: list(value) if isinstance(value, list) else value for key, value in values.items()},
        }

    def loaded(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
        if name not in state:
            raise WonderlandError(f"The saved state has no {name!r}: it was saved from an optimizer without it.")
        for key, value in state[name].items():
            copied = (
                [item.clone() if isinstance(item, Tensor) else item for item in value]
                if isinstance(value, list)
                else value
            )
            values[key] = copied

    optimizer.register_state_dict_post_hook(saved)
    optimizer.register_load_state_dict_pre_hook(loaded)
