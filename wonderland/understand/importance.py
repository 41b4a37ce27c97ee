"""Permutation importance of columns, and saliency maps of images."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, mix, permutation
from wonderland.understand.cost import preserved_state

__all__ = ["Importance", "permutation_importance", "saliency"]


class Importance(NamedTuple):
    """How much a score falls without a column: the mean over repeats, and their standard deviation."""

    value: float
    spread: float


def permutation_importance(
    score: Callable[[Tensor, Tensor], float | Tensor],
    x: Tensor,
    columns: Sequence[Sequence[int]],
    y: Tensor,
    *,
    repeats: int = 3,
    seed: int = 0,
    limit_rows: int = 2000,
    watch: Callable[[int, int], None] | None = None,
) -> list[Importance]:
    """The drop of `score(x, y)` (higher is better) when the values of a column are permuted between rows.

    `columns[i]` lists the features (along axis 1 of x) that came from source column i; they are permuted together, so that a
    number and its "was missing" flag, or all bins of one column, stay consistent. A permutation keeps the distribution of a
    column and breaks its relation with the target. Correlated columns share their importance, and each can seem unimportant
    because the other one remains.

    `score` gets all rows at once and may return one number, or one for each row (their mean is taken). At most
    `limit_rows` rows are used. `watch` is called with the number of columns done and of all. The same seed gives the same result; global random state is neither read nor changed.

    Shapes: x (n, d, ...), y (n, ...) -> one Importance for each entry of columns.

    >>> x = torch.linspace(-1, 1, 200).reshape(100, 2)
    >>> drops = permutation_importance(lambda x, y: -(x[:, 0] - y).square(), x, [[0], [1]], x[:, 0])
    >>> drops[0].value > 0, drops[1].value
    (True, 0.0)
    """
    if len(x) != len(y):
        raise WonderlandError(f"Importance needs one target for each row, but x has {len(x)} rows and y has {len(y)}.")
    if len(x) < 2:
        raise WonderlandError("Importance needs at least two rows: one row cannot be permuted.")
    if repeats < 1:
        raise WonderlandError(f"Importance needs at least one repeat, not {repeats}.")
    wrong = [i for column in columns for i in column if not 0 <= i < x.shape[1]]
    if wrong:
        raise WonderlandError(f"Importance was asked for feature {wrong[0]}, but x has {x.shape[1]} features.")
    if len(x) > limit_rows:
        rows = torch.from_numpy(permutation(mix(seed, 1), 0, len(x))[: max(2, limit_rows)].copy()).sort().values
        x, y = x[rows.to(x.device)], y[rows.to(y.device)]
    work = x.detach().clone()
    with torch.no_grad():
        baseline = _mean(score(work, y))
        importances = []
        for index, column in enumerate(columns):
            features = torch.as_tensor(list(column), dtype=torch.long, device=x.device)
            drops = []
            for repeat in range(repeats if len(column) else 0):
                order = torch.from_numpy(permutation(mix(seed, 2, index), repeat, len(x))).to(x.device)
                work[:, features] = x[order][:, features]
                drops.append(baseline - _mean(score(work, y)))
            if drops:
                work[:, features] = x[:, features]
            importances.append(_summary(drops))
            if watch is not None:
                watch(index + 1, len(columns))
    return importances


def _mean(score: float | Tensor) -> float:
    return float(score.double().mean()) if isinstance(score, Tensor) else float(score)


def _summary(drops: list[float]) -> Importance:
    if not drops:
        return Importance(0.0, 0.0)
    mean = sum(drops) / len(drops)
    squares = sum((drop - mean) ** 2 for drop in drops)
    return Importance(mean, math.sqrt(squares / (len(drops) - 1)) if len(drops) > 1 else 0.0)


def saliency(model: nn.Module, x: Tensor, y: Tensor | None = None, *, limit: int = 256, batch: int = 64) -> Tensor:
    r"""Saliency map: gradient times input, averaged over images.

    .. math::
        S_{uv} = \frac{1}{n} \sum_i \sum_c
        \left| \frac{\partial s_i}{\partial x_{icuv}} (x_{icuv} - \bar x_{cuv}) \right|,
        \qquad s_i = z_{i, y_i} - \tfrac{1}{k} \sum_j z_{ij}

    To first order, this is the change of the score of the true class when a pixel is replaced by its average over the
    images. Only differences of logits matter, so their mean is subtracted; the average image is subtracted from x, so that
    a constant border has no importance, whatever its colour. Without `y` (regression) the
    output itself is the score. The model runs in eval mode and is left as it was.

    Shapes: x (n, c, h, w), y (n,) class codes -> (h, w), float32, on the CPU.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
    >>> saliency(model, torch.rand(5, 1, 4, 4), torch.tensor([0, 1, 2, 0, 1])).shape
    torch.Size([4, 4])
    """
    if x.ndim != 4 or not len(x):
        raise WonderlandError(f"saliency takes images of shape (n, c, h, w), not {tuple(x.shape)}.")
    with preserved_state(model), torch.inference_mode(False), torch.enable_grad():
        x = x.detach()[:limit]
        x = x.clone() if x.is_floating_point() else x.float()
        y = None if y is None else y.detach()[:limit].clone()
        centre = x.mean(0, keepdim=True)
        total = torch.zeros(x.shape[-2:], dtype=torch.float64)
        for start in range(0, len(x), batch):
            piece = x[start : start + batch].clone().requires_grad_()
            output = model(piece)
            if y is None:
                scores = output.sum()
            else:
                true_logits = output.gather(1, y[start : start + batch, None].to(output.device))
                scores = (true_logits[:, 0] - output.mean(1)).sum()
            (gradient,) = torch.autograd.grad(scores, piece)
            total += (gradient * (piece.detach() - centre)).abs().sum((0, 1)).double().cpu()
    return (total / len(x)).float()
