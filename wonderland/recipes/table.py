"""The road for tables: an ensemble of small networks with periodic encodings, beside a straight line."""

import math

from wonderland.data import Dataset, Split, TableEncoder
from wonderland.models import TableNet
from wonderland.recipes.recipe import Recipe
from wonderland.tasks import Classification, Task

FOLDS = 5
FEW = 5000


def folds(dataset: Dataset) -> int | None:
    """A small table is learned in folds, so that no row is spent on calibration alone; the future is never folded."""
    return FOLDS if len(dataset) < FEW and dataset.times is None else None


def recipe(dataset: Dataset, encoder: TableEncoder, parts: Split, task: Task) -> Recipe:
    """Defaults for a table of this size. The formulas come from races against other methods, see bench/tables.py."""
    rows = len(parts.train)
    few = parts.folds is not None
    classes = isinstance(task, Classification)
    sigmas = [0.1, 0.1, 0.7, 0.7] * FOLDS if few else [0.1, 0.1, 0.1, 0.7, 0.7, 0.7]
    drops = [0.1, 0.3, 0.1, 0.3] * FOLDS if few else [0.1] * 6
    numbers = len(encoder.numbers)
    batch = (64 if rows < 2000 else 128) if few else 256
    epoch = max(1, (rows - rows // FOLDS if few else rows) // batch)
    steps = int(min(1500, max(400, 40 * rows / 64))) if few else 24 * epoch
    return Recipe(
        kind="table",
        model=TableNet.spec(
            numbers=numbers,
            levels=[count for _, count in encoder.categories],
            outputs=task.outputs,
            sigmas=sigmas,
            dropout=drops if classes else [0.0] * len(drops),
            dim=128 if few else 256,
            number_dim=min(16, max(4, 128 // max(1, numbers))),
        ),
        task=type(task).spec(**task.arguments()),
        steps=steps,
        batch_size=batch,
        lr=1e-2 * min(1.0, math.sqrt(rows / 4000)) if few else 5e-3,
        weight_decay=0.01,
        betas=(0.9, 0.95),
        average=0.99,
        clip=None,
        evaluate_every=max(1, steps // 20) if few else epoch,
        folds=FOLDS if few else None,
        members=len(sigmas),
    )
