"""The user's training step: when gradients are zeroed, computed and used, and what the learning rate does meanwhile."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.understand.doctoring.calling import argument_names
from wonderland.understand.doctoring.finding import Finding
from wonderland.understand.doctoring.trace import StepTrace, norm
from wonderland.understand.doctoring.training_copy import TrainingCopy

MAX_CALLS = 16  # a step function that accumulates gradients may update the weights every few calls
UPDATES = 3
MIN_CLIPPED = 1e-3  # norm of the gradients that are used, relative to that of the gradients
MIN_RATE = 1e-3  # of the learning rate after the calls, relative to the first


@dataclass
class StepLog:
    """What a step function did: updates, gradients that a backward pass found, and the mode of the model."""

    backward_passes: int = 0  # that reached a parameter
    backward_calls: int = 0
    updates: int = 0
    stale: list[str] = field(default_factory=list)
    without_gradient: str = ""
    used_norm: float | None = None
    training: bool | None = None
    rates: list[float] = field(default_factory=list)


def run_step(training: TrainingCopy, step: Callable[..., Any]) -> StepLog:
    """Call a step function on copies until it has updated the weights three times, and log what it did."""
    log, optimizer, model = StepLog(), training.optimizer, training.model
    if optimizer is None:
        raise WonderlandError("step= needs the optimizer that it uses: give optimizer= too.")
    used: set[int] = set()
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    hooks: list[Any] = []

    def backward(name: str, parameter: Tensor) -> Callable[[Tensor], None]:
        def record(_: Tensor) -> None:
            log.backward_passes += 1
            held = parameter.grad
            if id(parameter) in used and held is not None and bool(held.any()) and name not in log.stale:
                log.stale.append(name)
            used.discard(id(parameter))

        return record

    def before_update(*_: Any) -> None:
        gradients = [(p, p.grad) for _, p in named if p.grad is not None and bool(p.grad.any())]
        if not gradients and not log.without_gradient:
            log.without_gradient = "zeroed" if log.backward_passes else "cut" if log.backward_calls else "early"
        if log.used_norm is None and gradients:
            log.used_norm = sum(norm(gradient) ** 2 for _, gradient in gradients) ** 0.5
        used.update(id(p) for p, _ in gradients)
        log.updates += 1

    def forward(module: nn.Module, *_: Any) -> None:
        log.training = module.training if log.training is None else log.training

    hooks += [parameter.register_hook(backward(name, parameter)) for name, parameter in named]
    plain = torch.autograd.backward

    def counted(*args: Any, **kwargs: Any) -> Any:
        log.backward_calls += 1
        return plain(*args, **kwargs)

    hooks += [optimizer.register_step_pre_hook(before_update), model.register_forward_pre_hook(forward)]
    try:
        torch.autograd.backward = counted  # loss.backward() calls it
        for _ in range(MAX_CALLS):
            log.rates.append(max(float(group["lr"]) for group in optimizer.param_groups))
            torch.manual_seed(0)
            step(*_arguments(step, training))
            if log.updates >= UPDATES:
                break
        log.rates.append(max(float(group["lr"]) for group in optimizer.param_groups))
    finally:
        torch.autograd.backward = plain
        for hook in hooks:
            hook.remove()
    return log


def _arguments(step: Callable[..., Any], training: TrainingCopy) -> list[Any]:
    """The arguments of a step function, by their names."""
    known = {
        **dict.fromkeys(("model", "net", "network", "module", "m"), training.model),
        **dict.fromkeys(("optimizer", "optim", "opt"), training.optimizer),
        **dict.fromkeys(("loss", "loss_fn", "criterion", "loss_function"), training.loss),
        **dict.fromkeys(("batch", "data"), training.batch),
    }
    names = argument_names(step)
    batch = training.batch
    if isinstance(batch, tuple | list) and len(batch) == 2:
        known |= dict.fromkeys(("x", "inputs", "input", "features"), batch[0])
        known |= dict.fromkeys(("y", "targets", "target", "labels"), batch[1])
    unknown = [name for name in names if name not in known]
    if unknown:
        raise WonderlandError(
            f"The step function has an argument {unknown[0]!r}: it may take model, batch (or x and y), optimizer and loss by these names."
        )
    return [known[name] for name in names]


def step_findings(log: StepLog, trace: StepTrace, line: str) -> Iterator[Finding]:
    """Problems in the order of zeroing, computing and using gradients."""
    gradient = sum(norm(g) ** 2 for g in trace.gradients.values() if g is not None) ** 0.5
    if not log.updates:
        yield Finding(
            "no optimizer step", "", line, 0.0,
            f"The step function was called {MAX_CALLS} times, and optimizer.step() never: the weights do not change.",
            "Call optimizer.step() after loss.backward().",
        )  # fmt: skip
    elif log.without_gradient == "early":
        yield Finding(
            "optimizer step before backward", "", line, 0.0,
            "optimizer.step() runs before the first loss.backward(), so it uses no gradients, or those of the batch before.",
            "Keep the order optimizer.zero_grad(), loss.backward(), optimizer.step().",
        )  # fmt: skip
    elif log.without_gradient == "cut":
        yield Finding(
            "cut gradient", "", line, 0.0,
            "loss.backward() runs in the step function, and no gradient reaches a parameter of the model: the loss does not depend on them.",
            "Remove detach(), .data, .item() and torch.no_grad() between the model's output and the loss, and compute the loss from this model.",
        )  # fmt: skip
    elif log.without_gradient == "zeroed":
        yield Finding(
            "gradients zeroed before the step", "", line, 0.0,
            "All gradients are 0 or None when optimizer.step() runs, although loss.backward() ran before.",
            "Call optimizer.zero_grad() before loss.backward(), not between it and optimizer.step().",
        )  # fmt: skip
    elif log.stale:
        yield Finding(
            "gradients never zeroed", "", line, len(log.stale),
            f"loss.backward() adds to gradients that optimizer.step() has used already, in {len(log.stale)} parameters ({log.stale[0]}).",
            "Call optimizer.zero_grad() before each loss.backward(), or after each optimizer.step().",
        )  # fmt: skip
    if log.used_norm is not None and gradient and log.used_norm < MIN_CLIPPED * gradient:
        yield Finding(
            "gradients clipped to almost nothing", "", line, log.used_norm,
            f"The norm of the gradients is {gradient:.3g}, and {log.used_norm:.3g} of it reaches optimizer.step().",
            "Clip to a norm near that of healthy gradients: torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).",
        )  # fmt: skip
    if log.rates and log.rates[0] > 0 and log.rates[-1] < MIN_RATE * log.rates[0]:
        yield Finding(
            "learning rate falls to zero", "", line, log.rates[-1],
            f"The scheduler lowers the learning rate from {log.rates[0]:.3g} to {log.rates[-1]:.3g} within {len(log.rates) - 1} steps.",
            "Give the scheduler the number of training steps, and call scheduler.step() as often as it counts (epochs or steps).",
        )  # fmt: skip
