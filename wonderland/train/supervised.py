"""The supervised step: loss, accumulated gradients, clipping, scheduled learning rate, update."""

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.core.batch import Batch
from wonderland.optim import follow, groups, warmup_cosine
from wonderland.optim.schedules import Schedule
from wonderland.train.guard import NonFinite
from wonderland.train.parallel.batch_norm import synchronised_batch_norm
from wonderland.train.parallel.gradient_sum import GradientSum
from wonderland.train.parallel.group import current
from wonderland.train.parallel.shard import is_sharded, whole
from wonderland.train.state import State
from wonderland.train.stopping import position

# A loss returns a mean, or a mean and its weight (number of examples or tokens).
Loss = Callable[[nn.Module, Any], Tensor | tuple[Tensor, float]]


@dataclass(frozen=True)
class Supervised:
    """One step of supervised training: `step(state, batch)` for a state with `model` and `optimizer`.

    A batch is a `wonderland.core.Batch` or a pair (x, y); it is moved to the device of the model.

    Args:
        loss: `loss(model, batch)`, a scalar mean, or a pair of the mean and its weight among the pieces of a step.
        steps: length of the schedule, which begins again in each further round of training (`Rounds`).
        lr: peak learning rate.
        schedule: factor of the peak for (step, steps).
        clip: largest norm of the gradient; None for no clipping.
        accumulate: number of pieces a batch is split into, for less memory and the same gradient.
        precision: "float32", or "bfloat16" for autocast.
        average: decay of the moving average of the weights, kept in `state.average`; None for none.
    """

    loss: Loss
    steps: int
    lr: float
    schedule: Schedule = warmup_cosine
    clip: float | None = 1.0
    accumulate: int = 1
    precision: str = "float32"
    average: float | None = None

    def __post_init__(self):
        if self.precision not in ("float32", "bfloat16"):
            raise WonderlandError(f"Precision is 'float32' or 'bfloat16', not {self.precision!r}.")

    def __call__(self, state: State, batch: Any) -> dict[str, float]:
        """Update the model once."""
        model = state.model
        device = device_of(model)
        group = current()
        pieces = group.share(Batch.of(batch)).to(device).split(self.accumulate)
        divided, sharded = len(pieces) > 1 or group.count > 1, group.count > 1 and is_sharded(model)
        norms = nullcontext() if group.count == 1 else synchronised_batch_norm(model)
        model.train()
        state.optimizer.zero_grad(set_to_none=True)
        total, weight = 0.0, 0.0
        for number, piece in enumerate(pieces, 1):
            with norms, torch.autocast(device.type, torch.bfloat16, enabled=self.precision == "bfloat16"):
                result = self.loss(model, piece)
                mean, count = result if isinstance(result, tuple) else (result, len(piece))
                loss = mean * count if divided else mean
            sends = group.count > 1 and not sharded and number == len(pieces)
            with GradientSum(model.parameters()) if sends else nullcontext():
                loss.backward()
            total, weight = total + loss.item(), weight + float(count)
        if divided:
            total, weight = group.total([total, weight])
            total /= weight
            share = weight / group.count if sharded else weight  # FSDP has divided by the number of processes
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter.grad /= share
        if not math.isfinite(total):
            return {"loss": total}
        lr = self.lr * self.schedule(*position(state.step, self.steps))
        for group in state.optimizer.param_groups:
            group["lr"] = lr * group.get("lr_factor", 1.0)
        scalars = {"loss": total, "lr": lr}
        if self.clip is not None:
            norm = float(whole(nn.utils.clip_grad_norm_(model.parameters(), self.clip)))
            if not math.isfinite(norm):
                raise NonFinite(_bad_gradient(model, norm, state.step))
            scalars["gradient_norm"] = norm
        state.optimizer.step()
        if self.average is not None:
            follow(state.average, model, self.average, state.step)
        return scalars


def device_of(model: nn.Module) -> torch.device:
    """The device of the weights of a model."""
    return next((tensor.device for tensor in model.parameters()), torch.get_default_device())


def adamw(
    model: nn.Module, *, lr: float, weight_decay: float = 0.01, betas: tuple[float, float] = (0.9, 0.999)
) -> torch.optim.AdamW:
    """AdamW with the fused kernel; biases, norms and embeddings get no weight decay."""
    return torch.optim.AdamW(groups(model, weight_decay=weight_decay), lr=lr, betas=(betas[0], betas[1]), fused=True)


def _bad_gradient(model: nn.Module, norm: float, step: int) -> str:
    names = [
        name
        for name, parameter in model.named_parameters()
        if parameter.grad is not None and not torch.isfinite(parameter.grad).all()
    ]
    where = f"the gradient of {names[-1]} is not finite" if names else "its norm overflows"
    return f"The gradient became {norm} at step {step}: {where}. Lower the learning rate, or look at the data of this batch."
