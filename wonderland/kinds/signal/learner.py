"""The learner of signals: the model's own fit, in the first step."""

from typing import Any

from wonderland.core import part
from wonderland.train.closed_form import ClosedForm
from wonderland.train.state import State


@part
class FitSignals(ClosedForm):
    """Fits all members in the first step; further steps, where they are asked for, change nothing."""

    def step(self, state: State, batch: Any) -> dict[str, float]:
        if state.step:
            return {"loss": float(self.task.loss(state.model.eval(), batch)[0].detach())}
        return super().step(state, batch)
