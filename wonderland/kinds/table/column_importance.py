"""Permutation importance of the columns of a table, in a bounded number of evaluations."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core.batch import Batch
from wonderland.tasks.view import outputs
from wonderland.understand import permutation_importance

MOST_COLUMNS = 100  # that are permuted; with more, those of the largest first-order effect on the loss
MOST_CELLS = 20_000_000  # evaluated in all: columns x repeats x rows x cells of a row
MOST_ROWS = 1000


def column_importance(run: Any, plan: Any) -> dict[str, Any]:
    """The facts of importance: columns by how much the score of the test rows falls when they are permuted."""
    task, trust = run.task, run.trust
    column_of = plan.encoder.column_of
    names = list(dict.fromkeys(column_of))
    places = {name: [i for i, column in enumerate(column_of) if column == name] for name in names}
    batch = plan.examples.take(plan.parts.test)
    x, y = batch["x"], torch.as_tensor(batch["y"])
    chosen = names
    if len(names) > MOST_COLUMNS:
        effects = first_order_effects(run.model, task, x, y, len(plan.encoder.numbers))
        by_effect = sorted(names, key=lambda name: -max(effects[i] for i in places[name]))
        chosen = [name for name in names if name in set(by_effect[:MOST_COLUMNS])]

    def score(inputs: Tensor, targets: Tensor) -> Tensor:
        return task.row_scores(outputs(run.model, inputs), targets, trust)

    rows = min(MOST_ROWS, max(50, MOST_CELLS // (2 * len(chosen) * x.shape[1])))
    repeats = max(1, min(3, MOST_CELLS // (len(chosen) * min(rows, len(x)) * x.shape[1])))
    columns = [places[name] for name in chosen]
    watch = None if plan.watching is None else plan.watching("importance of columns")
    drops = permutation_importance(score, x, columns, y, repeats=repeats, limit_rows=rows, watch=watch)
    measured = [{"name": name, "value": drop.value, "spread": drop.spread}
                for name, drop in zip(chosen, drops, strict=True)]  # fmt: skip
    return {
        "importance": sorted(measured, key=lambda row: -row["value"]),
        "importance_score": task.score_name,
        "importance_left": len(names) - len(chosen),
    }


def first_order_effects(model: Any, task: Any, x: Tensor, y: Tensor, numbers: int) -> np.ndarray:
    r"""How much each feature moves the loss, to first order; infinite for codes of categories, which have no gradient: (d,).

    .. math::
        e_j = \frac1n \sum_i \left| \frac{\partial \ell_i}{\partial x_{ij}} (x_{ij} - \bar x_j) \right|
    """
    rows = x[:MOST_ROWS].clone().requires_grad_()
    model.eval()
    with torch.enable_grad():
        loss, _ = task.loss(model, Batch({"x": rows, "y": y[:MOST_ROWS]}))
        (gradient,) = torch.autograd.grad(loss, rows)
    effects = (gradient * (rows - rows.mean(0))).abs().mean(0).detach().numpy().astype(np.float64)
    effects[numbers:] = np.inf
    return effects
