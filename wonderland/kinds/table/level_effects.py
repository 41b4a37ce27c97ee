r"""Effects of the levels of large categories, by shrinkage: what a network for a table starts from.

Levels with a few rows each (shops, postcodes) are not learned well by steps on random batches: each row moves a level by
about the learning rate, and far from its mean. A linear model with random effects has the answer in closed form:

.. math:: y = z \beta + \sum_j u_j[c_j] + \varepsilon, \qquad u_j \sim N(0, \tau_j^2), \quad \varepsilon \sim N(0, \sigma^2)

A level with n rows gets their mean residual times n / (n + sigma^2 / tau^2). Each group of members starts from the effects in its
own training rows, so that held-out rows take no part. Members without hidden layers start from the whole of this model: the
effects of every category, and a ridge regression on the numbers.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import permutation
from wonderland.models import TableNet

MANY = 20  # codes; smaller categories are learned from random vectors
MOST_ROWS, MOST_CLASSES, MOST_COLUMNS = 100_000, 50, 2000
SWEEPS = 10
LARGEST_EFFECT = 4.0
SPREAD = 0.5  # of a coordinate of a new embedding
PENALTIES = np.logspace(-1, 5, 13)
OTHER_COORDINATES = 0.1  # times their random values, so that the effects stand out


@dataclass(frozen=True)
class Effects:
    """Effects (levels, outputs) of each category, in the order of the columns; None for a small category.

    `line` has the coefficients of the numbers (numbers, outputs), `constant` the rest (outputs,), for members that have nothing else.
    """

    levels: list[np.ndarray | None]
    line: np.ndarray | None = None
    constant: np.ndarray | None = None

    @staticmethod
    def of(
        x: np.ndarray, codes: np.ndarray, counts: list[int], y: np.ndarray, weights: np.ndarray, whole: bool = False
    ) -> "Effects":
        """Fit by sweeps over the terms. Shapes: x (n, p) numbers, codes (n, q), y (n, c) with a weighted mean of 0, weights (n,).

        `whole` asks for every category and for the line.
        """
        design = np.concatenate([np.ones((len(x), 1)), x], 1)
        gram = design.T @ (design * weights[:, None]) + np.diag([1e-9, *[1.0] * x.shape[1]])
        solve = np.linalg.solve(gram, design.T * weights)
        many = [j for j, count in enumerate(counts) if whole or count > MANY]
        effects = {j: np.zeros((counts[j], y.shape[1])) for j in many}
        rows = {j: np.bincount(codes[:, j], weights, counts[j]) for j in many}
        line = np.zeros_like(y)
        for _ in range(SWEEPS):
            line = design @ (solve @ (y - sum((effects[j][codes[:, j]] for j in many), np.zeros_like(y))))
            for j in many:
                others = sum((effects[k][codes[:, k]] for k in many if k != j), line)
                effects[j] = shrunken(y - others, codes[:, j], rows[j], weights)
        levels = [effects.get(j) for j in range(len(counts))]
        if not whole:
            return Effects(levels)
        return Effects(levels, *ridge(x, y - sum((effects[j][codes[:, j]] for j in many), np.zeros_like(y)), weights))


def ridge(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (p, c) and constants (c,) of the ridge regression whose penalty has the smallest leave-one-out error."""
    w = weights / weights.mean()
    mean_x, mean_y = np.average(x, axis=0, weights=w), np.average(y, axis=0, weights=w)
    root = np.sqrt(w)[:, None]
    if min(x.shape) > MOST_COLUMNS:
        return np.zeros((x.shape[1], y.shape[1])), mean_y
    left, scales, right = np.linalg.svd((x - mean_x) * root, full_matrices=False)
    target = (y - mean_y) * root
    inside, least, line = left.T @ target, np.inf, np.zeros((x.shape[1], y.shape[1]))
    for penalty in PENALTIES:
        kept = scales**2 / (scales**2 + penalty)
        leverage = (left**2) @ kept + w / w.sum()
        error = (target - left @ (kept[:, None] * inside)) / (1 - np.minimum(leverage, 0.9999))[:, None]
        if (total := float(np.square(error).sum())) < least:
            least, line = total, right.T @ ((scales / (scales**2 + penalty))[:, None] * inside)
    return line, mean_y - mean_x @ line


def shrunken(residual: np.ndarray, codes: np.ndarray, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The mean residual of each level, shrunk by the share of its variance that is noise: (levels, c).

    Both variances are estimated by moments, for each output.
    """
    sums = np.stack([np.bincount(codes, weights * column, len(rows)) for column in residual.T], 1)
    means = sums / np.maximum(rows, 1e-12)[:, None]
    present = rows > 0
    spare = max(rows.sum() - present.sum(), 1.0)
    noise = (weights[:, None] * (residual - means[codes]) ** 2).sum(0) / spare
    between = (rows[:, None] * means**2).sum(0) - present.sum() * noise
    variance = np.maximum(between / max(rows.sum(), 1e-12), 0)
    return sums * variance / np.maximum(rows[:, None] * variance + noise, 1e-300)


def output_scores(y: np.ndarray, weights: np.ndarray, classes: int | None) -> np.ndarray:
    """Targets as numbers on the scale of the outputs, with a mean of 0: one Newton step from the shares of the classes. (n, c)"""
    if classes is None:
        return (y - np.average(y, weights=weights))[:, None]
    onehot = np.eye(classes)[y.astype(np.int64)]
    shares = np.average(onehot, axis=0, weights=weights)
    return (onehot - shares) / np.maximum(shares, 1 / len(y))


def write_effects(model: TableNet, member: int, counts: list[int], effects: Effects) -> None:
    """Write the effects into the embeddings of a member and into its linear skip connection."""
    if effects.line is not None and effects.constant is not None:
        with torch.no_grad():
            model.line[member, : model.numbers] = torch.as_tensor(effects.line)
            model.head.bias[member] = torch.as_tensor(effects.constant)
    if model.embed is None:
        return
    outputs, dim = model.line.shape[2], model.embed.weight.shape[1]
    start = int(model.embed.start[member, 0, 0])
    for j, effect in enumerate(effects.levels):
        if effect is not None and np.abs(effect).max() > 1e-6:
            effect = effect.clip(-LARGEST_EFFECT, LARGEST_EFFECT)
            left, size, right = np.linalg.svd(effect, full_matrices=False)
            rank = min(dim, outputs, len(size))
            scale = SPREAD * np.sqrt(len(effect))
            with torch.no_grad():
                vectors = model.embed.weight[start : start + counts[j]]
                vectors *= OTHER_COORDINATES
                vectors[:, :rank] = torch.as_tensor(left[:, :rank] * scale)
                first = model.numbers + j * dim
                model.line[member, first : first + rank] = torch.as_tensor(size[:rank, None] * right[:rank] / scale)
        start += counts[j]


def start_from_levels(model: TableNet, plan: Any) -> None:
    """Give every member the effects of the levels in its own training rows to start from.

    A level that is not among them starts at 0, like the code of unknown levels: rows that are held out meet new levels as often as
    new rows do, and are predicted alike.
    """
    counts = [count for _, count in plan.encoder.categories]
    linear = model.linear or [False] * model.members
    large = max(counts, default=0) > MANY and len(plan.task.classes or ()) <= MOST_CLASSES
    known: dict[tuple[bool, bytes], tuple[Effects | None, Tensor]] = {}
    for member, whole in enumerate(linear):
        if not (whole or counts):
            continue
        rows = plan.rows_of(member)
        if (key := (whole, rows.tobytes())) not in known:
            effects = effects_in(rows, model.numbers, counts, plan, whole) if large or whole else None
            known[key] = effects, absent_codes(rows, model.numbers, counts, plan)
        effects, absent = known[key]
        if effects is not None:
            write_effects(model, member, counts, effects)
        if model.embed is not None:
            with torch.no_grad():
                model.embed.weight[int(model.embed.start[member, 0, 0]) + absent] = 0


def absent_codes(rows: np.ndarray, numbers: int, counts: list[int], plan: Any) -> Tensor:
    """The codes that these rows do not have, numbered through all categories."""
    codes = plan.examples.inputs(rows)[:, numbers:].long()
    first = torch.tensor([0, *counts[:-1]][: len(counts)], dtype=torch.long).cumsum(0)
    seen = torch.zeros(sum(counts), dtype=torch.bool)
    seen[(codes + first).flatten()] = True
    return (~seen).nonzero()[:, 0]


def effects_in(rows: np.ndarray, numbers: int, counts: list[int], plan: Any, whole: bool = False) -> Effects:
    """The effects of levels among these rows of a plan, or among a sample where they are very many."""
    rows = rows[np.sort(permutation(0, 0, len(rows))[:MOST_ROWS])]
    examples, classes = plan.examples, plan.task.classes
    encoded = examples.inputs(rows).double().numpy()
    weights = np.ones(len(rows)) if examples.weights is None else examples.weights[rows]
    y = examples.y[rows] if classes is not None else plan.task.standard(examples.y[rows])
    targets = output_scores(y, weights, None if classes is None else len(classes))
    return Effects.of(encoded[:, :numbers], encoded[:, numbers:].astype(np.int64), counts, targets, weights, whole)
