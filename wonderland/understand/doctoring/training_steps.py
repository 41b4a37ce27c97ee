"""Checks that run training steps: whether the loss is averaged over the batch, and whether the learning rate is too large."""

from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from wonderland.understand.doctoring.finding import Finding
from wonderland.understand.doctoring.trace import StepTrace, norm
from wonderland.understand.doctoring.training_copy import TrainingCopy

SMALLER = 100  # the factor between the learning rates that are compared
# Relative to the first loss:
RISE = 0.1  # of the median of the later half
PEAK = 0.3  # of the highest loss
WORSE = 0.02  # of the later half, against that with the smaller learning rate
MAX_UPDATE = 0.3  # of the first step, relative to the norm of a weight matrix

LONGER, RECOVERED = 4, 0.5  # times the steps after which the loss is at most this part of the first one

MIN_UPDATE = 1e-5  # of the first step, relative to the norm of a weight matrix
MIN_SGD_UPDATE = 1e-6  # the same for SGD, whose steps are also small where the gradient is
MIN_FALL = 1e-4  # of the loss over the steps
MIN_GAIN = 1e-3  # of the loss over the steps, at the larger learning rate
MIN_TAKEN = 10  # steps after which a small rate is no warmup
MAX_SHRINK = 3e-3  # of the weights in one step
USUAL_DECAY = {"SGD": 5e-3}  # up to which a large shrinkage is the fault of the rate
USUAL_ADAM_DECAY = 0.1
MIN_DECAY = 0.1
MAX_DECAY_RATIO = 10.0


def autograd_gradients(training: TrainingCopy) -> tuple[float, list[Tensor]]:
    """The loss and the gradients of all trainable parameters, computed by torch.autograd."""
    trainable = [parameter for parameter in training.model.parameters() if parameter.requires_grad]
    loss = training.run()
    if not loss.requires_grad:
        return float(loss.detach()), []
    computed = torch.autograd.grad(loss, trainable, allow_unused=True)
    return float(loss.detach()), [gradient for gradient in computed if gradient is not None]


def loss_reduction(trace: StepTrace, new_copy: Callable[[], TrainingCopy], notes: list[str]) -> Iterator[Finding]:
    """A batch that contains every example twice doubles a summed loss, and does not change a mean."""
    once, twice = new_copy(), new_copy()
    size = _batch_size(twice.batch, trace.targets)
    if size is None:
        notes.append("the reduction of the loss, since the batch has no batch axis.")
        return
    twice.batch = tree_map(
        lambda x: torch.cat([x, x]) if isinstance(x, Tensor) and x.dim() and x.shape[0] == size else x, twice.batch
    )
    try:
        loss, gradients = autograd_gradients(once)
        double_loss, double_gradients = autograd_gradients(twice)
    except Exception:  # a model may raise anything on a batch of another size
        notes.append("the reduction of the loss, since the model does not run on a batch of twice the size.")
        return
    size_once = sum(norm(x) ** 2 for x in gradients) ** 0.5
    size_twice = sum(norm(x) ** 2 for x in double_gradients) ** 0.5
    if not (loss and size_once and isfinite(double_loss / loss) and isfinite(size_twice / size_once)):
        return
    if 1.7 < double_loss / loss < 2.3 and size_twice / size_once > 1.3:
        step = _reducer(trace)
        yield trace.finding(
            "loss summed over the batch", step, size_twice / size_once,
            f"Twice the batch gives {double_loss / loss:.2f} times the loss and {size_twice / size_once:.2f} times the gradient.",
            "Take the mean over examples (reduction='mean'), so that the learning rate does not depend on the batch size.",
        )  # fmt: skip


def _batch_size(batch: Any, targets: Any) -> int | None:
    tensors = [targets, *tree_leaves(batch)]
    return next((x.shape[0] for x in tensors if isinstance(x, Tensor) and x.dim()), None)


def _reducer(trace: StepTrace) -> Any:
    """The step that reduces the loss to one number."""
    step = trace.loss.origin
    while step is not None:
        smooth = [value for value in step.inputs if value.smooth and id(value) in trace.differentiable]
        if not smooth or max(value.numel for value in smooth) > 1:
            return step
        step = max(smooth, key=lambda value: value.numel).origin
    return trace.loss.origin


def learning_rate(
    trace: StepTrace, new_copy: Callable[[], TrainingCopy], steps: int, notes: list[str]
) -> Iterator[Finding]:
    """The loss of the same batch over a few steps, at the learning rate given and at one a hundred times smaller."""
    training = new_copy()
    if training.optimizer is None:
        notes.append("the learning rate: give optimizer= or lr=.")
        return
    if isinstance(training.optimizer, torch.optim.LBFGS):
        notes.append("the learning rate, since LBFGS has a line search.")
        return
    start = _warmed_up(training.optimizer)
    try:
        losses, update = _losses(training, steps, start)
        if (small_rate := list(_too_small(trace, new_copy, losses, update, steps, start))) or update < MIN_SGD_UPDATE:
            yield from small_rate
            return
        # A linear model may move far from its small initial weights: only its loss counts.
        most = MAX_UPDATE if _matrices(training) > 1 else float("inf")
        rises = _rises(losses)
        if rises and update <= most and _recovers(new_copy(), steps, start):
            return
        for smaller in (SMALLER, SMALLER**2, SMALLER**3):
            small, _ = _losses(new_copy(), steps, start / smaller)
            # A learning rate that is not too large lowers the loss more than one a hundred times smaller.
            worse = _late(losses) > _late(small) + WORSE * max(abs(losses[0]), 0.05)
            if not rises and update <= most and not worse:
                return
            if not _rises(small) and small[-1] <= small[0]:
                break
        else:
            return
    except (RuntimeError, ValueError, IndexError):
        notes.append("the learning rate, since a second training step fails.")
        return
    lr = max(float(group["lr"]) for group in training.optimizer.param_groups)
    yield Finding(
        "learning rate too large", "", trace.default_line, lr,
        f"At {lr:.3g} {_course(losses) if rises or update <= most else f'the first step changes weights by {update:.0%} of their norm'}; "
        f"at {lr / smaller:.3g} the loss of the batch falls from {small[0]:.4g} to {small[-1]:.4g} in {steps} steps.",
        f"Try {lr / smaller:.2g}, or a warmup.",
    )  # fmt: skip


def _warmed_up(optimizer: torch.optim.Optimizer) -> float:
    """The factor to the rate after warmup, for a scheduler that has lowered the rate before the first step; else 1."""
    group = optimizer.param_groups[0]
    rate, full = float(group["lr"]), float(group.get("initial_lr", group["lr"]))
    taken = max((float(state["step"]) for state in optimizer.state.values() if "step" in state), default=0.0)
    return full / rate if 0 < rate < full and taken < MIN_TAKEN else 1.0


def _too_small(
    trace: StepTrace, new_copy: Callable[[], TrainingCopy], losses: list[float], update: float, steps: int, start: float
) -> Iterator[Finding]:
    """A learning rate at which neither weights nor loss change, while one a thousand to 1e9 times larger lowers the loss."""
    fall = (losses[0] - losses[-1]) / max(abs(losses[0]), 1e-8)
    optimizer = new_copy().optimizer
    assert optimizer is not None
    least = MIN_SGD_UPDATE if isinstance(optimizer, torch.optim.SGD) else MIN_UPDATE
    if update >= least or fall > MIN_FALL or not all(map(isfinite, losses)):
        return
    group = optimizer.param_groups[0]
    rate = max(float(group["lr"]) for group in optimizer.param_groups)
    full = float(group.get("initial_lr", rate))
    if rate == 0 and full > 0 and not optimizer.state:
        return  # a warmup that starts from 0
    for larger in [10.0**power for power in range(3, 10)] if rate else [0.0]:
        fast, _ = _losses(new_copy(), steps, start * larger) if rate else ([losses[0], -1.0], 0.0)
        gain = (fast[0] - fast[-1]) / max(abs(fast[0]), 1e-8)
        if not rate or (gain > MIN_GAIN and gain > 100 * fall and not _rises(fast)):
            text = f"at {rate * larger:.3g} it falls to {fast[-1]:.4g}" if rate else "a rate of 0 changes nothing"
            yield Finding(
                "learning rate too small", "", trace.default_line, rate,
                f"At {rate:.3g} a step changes the weights by {update:.1g} of their norm, and the loss of the batch stays at {losses[-1]:.4g} "
                f"over {steps} steps; {text}.",
                f"Try {rate * larger:.2g}, or the optimizer's default." if rate else "Give the optimizer a positive learning rate, and check the scheduler.",
            )  # fmt: skip
            return


def weight_decay(trace: StepTrace, training: TrainingCopy) -> Iterator[Finding]:
    """Weight decay that shrinks the weights faster than gradients can shape them."""
    optimizer = training.optimizer
    for group in optimizer.param_groups if optimizer is not None else ():
        decay, rate = float(group.get("weight_decay") or 0.0), float(group["lr"])
        members = {id(parameter) for parameter in group["params"]}
        ratios = sorted(
            decay * norm(parameter) / norm(gradient)
            for name, parameter in training.model.named_parameters()
            if id(parameter) in members and parameter.dim() > 1
            and (gradient := trace.gradients.get(name)) is not None and norm(gradient) > 0
        )  # fmt: skip
        if not decay or not ratios:
            continue
        # Adam divides decay and gradient by their common size, so there the ratio of the two counts, not the rate.
        coupled = type(optimizer).__name__ in ("Adam", "RMSprop", "Adagrad", "NAdam", "RAdam", "Adamax") and not group.get("decoupled_weight_decay")  # fmt: skip
        ratio, usual = ratios[len(ratios) // 2], USUAL_DECAY.get(type(optimizer).__name__, USUAL_ADAM_DECAY)
        if (coupled and decay >= MIN_DECAY and ratio > MAX_DECAY_RATIO) or (
            not coupled and decay > usual and rate * decay > MAX_SHRINK
        ):
            yield Finding(
                "weight decay too large", "", trace.default_line, decay,
                f"Weight decay {decay:.3g} at learning rate {rate:.3g} "
                + (f"pulls the weights to 0 {ratio:.3g} times as strongly as the gradient acts."
                   if coupled else f"multiplies the weights by {max(0.0, 1 - rate * decay):.4g} in each step, {max(0.0, 1 - rate * decay) ** 100:.2g} in 100 steps."),
                "Use a weight decay of 0.01 to 0.1 with AdamW, 1e-4 to 5e-4 with SGD.",
            )  # fmt: skip
            return


def _course(losses: list[float]) -> str:
    peak = max(losses, key=lambda loss: loss if isfinite(loss) else float("inf"))
    if not isfinite(peak):
        return "the loss becomes non-finite"
    way = f"rises from {losses[0]:.3g} to" if peak > losses[0] else f"is {losses[0]:.3g} at first and later"
    return f"the loss of the batch {way} {peak if peak > losses[0] else losses[-1]:.3g}"


def _losses(training: TrainingCopy, steps: int, scale: float) -> tuple[list[float], float]:
    """The loss before and after each step, and the change of the median weight matrix in the first step relative to its norm."""
    optimizer = training.optimizer
    assert optimizer is not None
    for group in optimizer.param_groups:
        group["lr"] = group["lr"] * scale
    losses: list[float] = []
    updates: list[float] = []
    for number in range(steps + 1):
        loss = training.run()
        losses.append(float(loss.detach()))
        if number == steps or not isfinite(losses[-1]):
            break
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        before = (
            [weight.detach().clone() for weight in training.model.parameters() if weight.dim() > 1]
            if not number
            else []
        )
        optimizer.step()
        after = (weight for weight in training.model.parameters() if weight.dim() > 1)
        updates += sorted(norm(new - old) / norm(old) for old, new in zip(before, after, strict=False) if norm(old))
    return losses, updates[len(updates) // 2] if updates else 0.0


def _matrices(training: TrainingCopy) -> int:
    """The number of weight matrices that are trained."""
    return sum(weight.dim() > 1 and weight.requires_grad for weight in training.model.parameters())


def _recovers(training: TrainingCopy, steps: int, start: float) -> bool:
    """Whether a loss that rose at first, as momentum makes it, falls far below its first value a little later."""
    losses, _ = _losses(training, LONGER * steps, start)
    return _late(losses) < RECOVERED * losses[0]


def _late(losses: list[float]) -> float:
    """The median of the later half."""
    half = sorted(losses[1 + (len(losses) - 1) // 2 :])
    return half[len(half) // 2] if half and all(map(isfinite, losses)) else float("inf")


def _rises(losses: list[float]) -> bool:
    """Whether training raised the loss: the later half stays above the first loss, or a peak is far above it."""
    if not all(map(isfinite, losses)):
        return True
    start, rest = losses[0], losses[1:]
    scale = max(abs(start), 0.05)
    return _late(losses) > start + RISE * scale or max(rest) > start + PEAK * scale
