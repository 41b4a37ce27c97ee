"""The learner of texts: a linear model fitted to all of them in the first step, then gradient steps for a network beside it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part, permutation
from wonderland.core.batch import Batch
from wonderland.kinds.text.examples import AllTexts
from wonderland.models import SequenceClassifier, TextLinear
from wonderland.solvers.sparse_linear import DenseMatrix, sparse_logistic, sparse_ridge, sparse_softmax
from wonderland.tasks import Regression
from wonderland.train.learner import GradientDescent
from wonderland.train.state import State

RIDGES = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
SIZE = 3.0  # the mean length of centred vectors under a linear layer, so that penalties mean the same for every trunk
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
        network: Any = getattr(state.model, "network", None)
        if is_closed_form(network) and whole.tokens is not None:
            fit_head(network, whole.tokens, whole.y, self.task)
        return {"loss": loss}


def fit_linear(texts: AllTexts, task: Any) -> tuple[Tensor, float]:
    """The weights of the linear model, with the bias last, and its mean training loss: (f + 1, outputs)."""
    return fit_rows(texts.matrix, texts.y, task)


def is_closed_form(network: Any) -> bool:
    """Whether a network is a frozen trunk under one linear layer, which is fitted to the trunk's vectors at once."""
    if not isinstance(network, SequenceClassifier) or network.hidden is not None or network.head.bias is None:
        return False
    return {name for name, weight in network.named_parameters() if weight.requires_grad} == {"head.weight", "head.bias"}


@torch.no_grad()
def fit_head(network: SequenceClassifier, tokens: Tensor, y: Tensor, task: Any) -> None:
    """Fit the linear layer on a frozen trunk: the vectors of all texts are computed once."""
    network.eval()
    vectors = torch.cat([network.vectors(piece) for piece in tokens.split(2048)])
    centre, size = vectors.mean(0), (vectors - vectors.mean(0)).norm(dim=1).mean().clamp_min(1e-12)
    scaled = (vectors - centre) * (SIZE / size)

    def matrix(rows: np.ndarray | None = None) -> DenseMatrix:
        return DenseMatrix(scaled if rows is None else scaled[torch.as_tensor(rows)])

    fitted, _ = fit_rows(matrix, y, task)
    weight = fitted[:-1] * (SIZE / size)
    network.head.weight.copy_(weight.T)
    network.head.bias.copy_(fitted[-1] - centre @ weight)


def fit_rows(matrix: Callable[..., Any], y: Tensor, task: Any) -> tuple[Tensor, float]:
    """A linear model of rows, with the penalty that is best on a fifth of them: (f + 1, outputs), and its training loss."""
    order = permutation(0, 0, len(y))[:MOST_TO_CHOOSE]
    held, kept = np.sort(order[: len(order) // 5]), np.sort(order[len(order) // 5 :])
    strength, start = RIDGES[2], None
    if len(held) >= 10:
        strength, start = _chosen(matrix, y, task, kept, held)
    whole = matrix()
    fitted = _solve(whole, y, task, strength, start)
    return fitted, _loss(whole, y, task, fitted)


def _chosen(
    matrix: Callable[..., Any], y: Tensor, task: Any, kept: np.ndarray, held: np.ndarray
) -> tuple[float, Tensor]:
    """The best strength of the penalty on held-out rows, and the weights found with it."""
    inside, outside = matrix(kept), matrix(held)
    y_in, y_out = y[torch.as_tensor(kept)], y[torch.as_tensor(held)]
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
