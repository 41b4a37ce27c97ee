"""The supervised step: loss, accumulated gradients, clipping, scheduled learning rate, update."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.core.batch import Batch
from wonderland.optim import follow, groups, warmup_cosine
from wonderland.optim.schedules import Schedule
from wonderland.train.guard import NonFinite
from wonderland.train.state import State

# A loss returns a mean, or a mean and its weight (number of examples or tokens).
Loss = Callable[[nn.Module, Any], Tensor | tuple[Tensor, float]]


@dataclass(frozen=True)
class Supervised:
    """One step of supervised training: `step(state, batch)` for a state with `model` and `optimizer`.

    A batch is a `wonderland.core.Batch` or a pair (x, y); it is moved to the device of the model.

    Args:
        loss: `loss(model, batch)`, a scalar mean, or a pair of the mean and its weight among the pieces of a step.
        steps: length of the schedule.
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
        pieces = Batch.of(batch).to(device).split(self.accumulate)
        model.train()
        state.optimizer.zero_grad(set_to_none=True)
        total = weight = 0.0
        for piece in pieces:
            with torch.autocast(device.type, torch.bfloat16, enabled=self.precision == "bfloat16"):
                result = self.loss(model, piece)
                mean, count = result if isinstance(result, tuple) else (result, len(piece))
                loss = mean if len(pieces) == 1 else mean * count
            loss.backward()
            total, weight = total + loss.item(), weight + count
        if len(pieces) > 1:
            total /= weight
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter.grad /= weight
        if not math.isfinite(total):
            return {"loss": total}
        lr = self.lr * self.schedule(state.step, self.steps)
        for group in state.optimizer.param_groups:
            group["lr"] = lr * group.get("lr_factor", 1.0)
        scalars = {"loss": total, "lr": lr}
        if self.clip is not None:
            norm = float(nn.utils.clip_grad_norm_(model.parameters(), self.clip))
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
