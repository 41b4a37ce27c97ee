"""The supervised step: loss, gradients in pieces, clipping, the scheduled rate, the update."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.optim import follow, groups, warmup_cosine
from wonderland.optim.schedules import Schedule
from wonderland.train.guard import NonFinite
from wonderland.train.state import State

Loss = Callable[[nn.Module, tuple[Tensor, Tensor]], Tensor]


@dataclass(frozen=True)
class Supervised:
    """One step of learning from examples: `step(state, (x, y))` for a state with `model` and `optimizer`.

    Args:
        loss: `loss(model, (x, y))`, a scalar mean over the examples.
        steps: length of the schedule.
        lr: peak learning rate.
        schedule: factor of the peak for (step, steps).
        clip: largest norm of the gradient; None leaves it alone.
        accumulate: number of pieces a batch is cut into, for less memory and the same gradient.
        precision: "float32", or "bfloat16" for autocast.
        axis: which axis of x and y counts the examples.
        average: decay of the moving average of the weights, kept in `state.average`; None for none.
    """

    loss: Loss
    steps: int
    lr: float
    schedule: Schedule = warmup_cosine
    clip: float | None = 1.0
    accumulate: int = 1
    precision: str = "float32"
    axis: int = 0
    average: float | None = None

    def __post_init__(self):
        if self.precision not in ("float32", "bfloat16"):
            raise WonderlandError(f"Precision is 'float32' or 'bfloat16', not {self.precision!r}.")

    def __call__(self, state: State, batch: tuple[Tensor, Tensor]) -> dict[str, float]:
        """Update the model once."""
        x, y = batch
        state.model.train()
        state.optimizer.zero_grad(set_to_none=True)
        total, size = 0.0, x.shape[self.axis]
        for piece_x, piece_y in zip(
            x.tensor_split(self.accumulate, self.axis), y.tensor_split(self.accumulate, self.axis), strict=True
        ):
            if piece_x.shape[self.axis]:
                share = piece_x.shape[self.axis] / size
                with torch.autocast("cpu", torch.bfloat16, enabled=self.precision == "bfloat16"):
                    loss = self.loss(state.model, (piece_x, piece_y)) * share
                loss.backward()
                total += loss.item()
        if not math.isfinite(total):
            return {"loss": total}
        lr = self.lr * self.schedule(state.step, self.steps)
        for group in state.optimizer.param_groups:
            group["lr"] = lr * group.get("lr_factor", 1.0)
        scalars = {"loss": total, "lr": lr}
        if self.clip is not None:
            norm = float(nn.utils.clip_grad_norm_(state.model.parameters(), self.clip))
            if not math.isfinite(norm):
                raise NonFinite(_bad_gradient(state.model, norm, state.step))
            scalars["gradient_norm"] = norm
        state.optimizer.step()
        if self.average is not None:
            follow(state.average, state.model, self.average, state.step)
        return scalars


def adamw(
    model: nn.Module, *, lr: float, weight_decay: float = 0.01, betas: tuple[float, float] = (0.9, 0.999)
) -> torch.optim.AdamW:
    """AdamW with the fused kernel; biases, norms and embeddings are spared from decay."""
    return torch.optim.AdamW(groups(model, weight_decay=weight_decay), lr=lr, betas=(betas[0], betas[1]), fused=True)


def _bad_gradient(model: nn.Module, norm: float, step: int) -> str:
    names = [
        name
        for name, parameter in model.named_parameters()
        if parameter.grad is not None and not torch.isfinite(parameter.grad).all()
    ]
    where = f"the gradient of {names[-1]} is not finite" if names else "its norm overflows"
    return f"The gradient became {norm} at step {step}: {where}. Lower the learning rate, or look at the data of this batch."
