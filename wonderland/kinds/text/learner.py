"""The learner of texts: a linear model fitted to all of them in the first step, then gradient steps for a network beside it."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part, permutation
from wonderland.core.batch import Batch
from wonderland.kinds.text.examples import AllTexts
from wonderland.models.text_linear import TextLinear
from wonderland.solvers.sparse_linear import sparse_logistic, sparse_ridge, sparse_softmax
from wonderland.tasks import Regression
from wonderland.train.learner import GradientDescent
from wonderland.train.state import State

RIDGES = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
MOST_TO_CHOOSE = 20_000  # rows on which the strength of the penalty is chosen


@part
class LinearFirst(GradientDescent):
    """Step 0 fits the linear part of the model to all training texts; the steps after it train its network, if it has one.

    The strength of the penalty is the one with the smallest loss on a fifth of the training texts, held out for that.
    """

    def start(self, model: nn.Module) -> State:
        if isinstance(model, TextLinear):
            return State(model=model)
        return super().start(model)

    def step(self, state: State, batch: Any) -> dict[str, float]:
        fields = dict(batch.fields)
        whole = fields.pop("all", None)
        batch = Batch(fields, batch.axis)
        if whole is None:
            return super().step(state, batch)
        fitted, loss = fit_linear(whole, self.task)
        for name in ("model", "average"):
            model = state.parts().get(name)
            linear = model if isinstance(model, TextLinear) else getattr(model, "linear", None)
            if isinstance(linear, TextLinear):
                linear.set_weights(fitted.to(linear.weight))
        return {"loss": loss}


def fit_linear(texts: AllTexts, task: Any) -> tuple[Tensor, float]:
    """The weights of the linear model, with the bias last, and its mean training loss: (f + 1, outputs)."""
    rows = len(texts)
    order = permutation(0, 0, rows)[:MOST_TO_CHOOSE]
    held, kept = np.sort(order[: len(order) // 5]), np.sort(order[len(order) // 5 :])
    strength, start = RIDGES[2], None
    if len(held) >= 10:
        strength, start = _chosen(texts, task, kept, held)
    whole = texts.matrix()
    fitted = _solve(whole, texts.y, task, strength, start)
    return fitted, _loss(whole, texts.y, task, fitted)


def _chosen(texts: AllTexts, task: Any, kept: np.ndarray, held: np.ndarray) -> tuple[float, Tensor]:
    """The best strength of the penalty on held-out rows, and the weights found with it."""
    inside, outside = texts.matrix(kept), texts.matrix(held)
    y_in, y_out = texts.y[torch.as_tensor(kept)], texts.y[torch.as_tensor(held)]
    best: tuple[float, float, Tensor] | None = None
    start = None
    for ridge in RIDGES:
        start = _solve(inside, y_in, task, ridge, start)
        loss = _loss(outside, y_out, task, start)
        if best is not None and loss >= best[0]:
            break
        best = loss, ridge, start
    assert best is not None
    return best[1], best[2]


def _solve(x: Any, y: Tensor, task: Any, ridge: float, start: Tensor | None) -> Tensor:
    if isinstance(task, Regression):
        fitted = sparse_ridge(x, _standard(y, task), ridge=ridge, start=None if start is None else start[:, :1])
        return fitted.expand(-1, task.outputs).contiguous()
    if y.dim() == 2:
        return sparse_logistic(x, y, ridge=ridge, start=start)
    return sparse_softmax(x, y, task.outputs, ridge=ridge, start=start)


def _loss(x: Any, y: Tensor, task: Any, weights: Tensor) -> float:
    scores = x.times(weights[:-1]) + weights[-1]
    if isinstance(task, Regression):
        return float((scores[:, :1] - _standard(y, task)).square().mean())
    if y.dim() == 2:
        return float(F.binary_cross_entropy_with_logits(scores, y.to(scores)))
    return float(F.cross_entropy(scores, y))


def _standard(y: Tensor, task: Any) -> Tensor:
    return ((y - task.mean) / task.scale).float()[:, None]
