"""What goes around a step: clipping, decay, a schedule, lookahead. Each takes any optimizer of PyTorch and gives it back.

    optimizer = lookahead(scheduled(clipped(AdamW(model.parameters()), norm=1.0), cosine, steps=1000))

What they remember is saved and loaded with the optimizer's own state dict.
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

Any_ = TypeVar("Any_", bound=torch.optim.Optimizer)


def clipped(optimizer: Any_, *, norm: float | None = None, value: float | None = None) -> Any_:
    r"""Clip gradients before each step: each entry to `value`, or all of them together to a `norm`.

    .. math:: g \leftarrow g \cdot \min(1, \theta / \lVert g \rVert), \qquad g_i \leftarrow \max(-v, \min(v, g_i))

    Book: D2L 9.5 and 12.2.

    >>> x = torch.nn.Parameter(torch.zeros(2))
    >>> optimizer = clipped(torch.optim.SGD([x], lr=1.0), norm=1.0)
    >>> x.grad = torch.tensor([3.0, 4.0])
    >>> optimizer.step()
    >>> x.detach()
    tensor([-0.6000, -0.8000])
    """
    _optimizer("clipped", optimizer)
    if (norm is None) == (value is None):
        raise WonderlandError("clipped: give either norm or value.")
    check("clipped", {"norm": norm} if value is None else {"value": value})

    def before(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if norm is not None:
            clip_norm(_all(optimizer), norm)
        else:
            torch.nn.utils.clip_grad_value_(_all(optimizer), value or 0.0)

    optimizer.register_step_pre_hook(before)
    return optimizer


def clip_norm(parameters: list[Tensor], norm: float) -> None:
    """Scale all gradients down together to a norm, as torch.nn.utils.clip_grad_norm_ does, in two passes over memory."""
    found = [parameter.grad for parameter in parameters if parameter.grad is not None]
    plain = all(grad.layout is torch.strided and grad.is_contiguous() for grad in found)
    if not found or not plain or found[0].dtype not in (torch.float32, torch.float64) or not native.usable(*found):
        torch.nn.utils.clip_grad_norm_(parameters, norm)
        return
    count = len(found)
    _clip(found[0].dtype)(
        (ctypes.c_int64 * count)(*[grad.data_ptr() for grad in found]),
        (ctypes.c_int64 * count)(*[grad.numel() for grad in found]),
        norm,
        count,
        torch.get_num_threads(),
    )


@functools.cache
def _clip(dtype: torch.dtype) -> Any:
    found = getattr(native.library("optimizers"), "clip_f32" if dtype == torch.float32 else "clip_f64")
    found.restype = ctypes.c_double
    found.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_double, ctypes.c_long, ctypes.c_long]
    return found


def decayed(optimizer: Any_, weight_decay: float) -> Any_:
    r"""Decay beside any rule, as AdamW has it: :math:`x \leftarrow (1 - \eta \lambda) x` before the step."""
    _optimizer("decayed", optimizer)
    check("decayed", {"weight_decay": weight_decay})

    @torch.no_grad()
    def before(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        for group in optimizer.param_groups:
            if group["lr"] * weight_decay > 1:
                raise WonderlandError(
                    f"decayed: weight_decay {weight_decay:g} times the rate {group['lr']:g} is above 1, "
                    "and weights would change their sign: lower one of them."
                )
            if held := [parameter for parameter in group["params"] if parameter.grad is not None]:
                torch._foreach_mul_(held, 1 - group["lr"] * weight_decay)

    optimizer.register_step_pre_hook(before)
    return optimizer


def scheduled(optimizer: Any_, schedule: Schedule, *, steps: int) -> Any_:
    """Before each step, the rate of each group is its first rate times the schedule's factor.

    A schedule that remembers, such as `Plateau`, is saved and loaded with the optimizer.
    """
    _optimizer("scheduled", optimizer)
    check("scheduled", {"steps": steps})
    if not callable(schedule):
        raise WonderlandError(f"scheduled: schedule must be a function of (step, steps), not {schedule!r}.")
    memory = {"step": 0, "peaks": [group["lr"] for group in optimizer.param_groups]}

    def before(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        memory["peaks"] += [group["lr"] for group in optimizer.param_groups[len(memory["peaks"]) :]]
        for group, peak in zip(optimizer.param_groups, memory["peaks"], strict=True):
            group["lr"] = peak * schedule(memory["step"], steps)
        memory["step"] += 1

    optimizer.register_step_pre_hook(before)
    _remember(optimizer, "scheduled", memory)
    if hasattr(schedule, "state_dict") and hasattr(schedule, "load_state_dict"):
        _keep(optimizer, "schedule", schedule)
    return optimizer


def lookahead(optimizer: Any_, *, every: int = 5, pull: float = 0.5) -> Any_:
    r"""Slow weights that follow the fast ones every k steps, and from which these start again.

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
    _optimizer("lookahead", optimizer)
    check("lookahead", {"every": every, "pull": pull})
    slow = [parameter.detach().clone() for parameter in _all(optimizer)]
    memory: dict[str, Any] = {"step": 0, "slow": slow}

    @torch.no_grad()
    def after(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        memory["step"] += 1
        fast = _all(optimizer)
        memory["slow"] += [parameter.detach().clone() for parameter in fast[len(memory["slow"]) :]]
        if memory["step"] % every == 0:
            torch._foreach_lerp_(memory["slow"], fast, pull)
            torch._foreach_copy_(fast, memory["slow"])

    optimizer.register_step_post_hook(after)
    _remember(optimizer, "lookahead", memory)
    return optimizer


def _optimizer(name: str, value: Any) -> None:
    if not isinstance(value, torch.optim.Optimizer):
        raise WonderlandError(f"{name} takes an optimizer first, not a {type(value).__name__}.")


def _all(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _keep(optimizer: torch.optim.Optimizer, name: str, owner: Any) -> None:
    """Save what has a state dict of its own with the optimizer's, and load it from there."""

    def saved(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> dict[str, Any]:
        return {**state, name: dict(owner.state_dict())}

    def loaded(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
        if name not in state:
            raise WonderlandError(f"The saved state has nothing for {name}: it was saved by an optimizer without it.")
        owner.load_state_dict(state[name])

    optimizer.register_state_dict_post_hook(saved)
    optimizer.register_load_state_dict_pre_hook(loaded)


def _remember(optimizer: torch.optim.Optimizer, name: str, memory: dict[str, Any]) -> None:
    """Save a memory with the optimizer's state dict, and load it from there."""

    def saved(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> dict[str, Any]:
        return {
            **state,
            name: {key: list(value) if isinstance(value, list) else value for key, value in memory.items()},
        }

    def loaded(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
        if name not in state:
            raise WonderlandError(f"The saved state has nothing for {name}: it was saved by an optimizer without it.")
        for key, value in state[name].items():
            copied = (
                [item.clone() if isinstance(item, Tensor) else item for item in value]
                if isinstance(value, list)
                else value
            )
            memory[key] = copied

    optimizer.register_state_dict_post_hook(saved)
    optimizer.register_load_state_dict_pre_hook(loaded)
