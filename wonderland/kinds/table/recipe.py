"""The road for tables: an ensemble of small networks, from nearly straight to very wiggly, weighed by what they get right."""

import math

from wonderland.data import Dataset, Split, TableEncoder
from wonderland.models import TableNet
from wonderland.core.recipe import Recipe
from wonderland.tasks import Classification, Task

FOLDS = 5
FEW = 5000
SIGMAS = (0.1, 0.5, 3.0)
COPIES = 3


def folds(dataset: Dataset) -> int | None:
    """A small table is learned in folds, so that no row is spent on calibration alone; the future is never folded."""
    return FOLDS if len(dataset) < FEW and dataset.times is None else None


def recipe(dataset: Dataset, encoder: TableEncoder, parts: Split, task: Task) -> Recipe:
    """Defaults for a table of this size. The numbers come from races against other methods: bench/tables.py."""
    rows = len(parts.train)
    few = parts.folds is not None
    members = len(SIGMAS) * (FOLDS if few else COPIES)
    numbers = len(encoder.numbers)
    if few:
        batch = 64 if rows < 2000 else 128
        epoch = max(1, (rows - rows // FOLDS) // batch)
        steps = int(min(1500, max(800, 40 * rows / 64)))
    else:
        batch = 256
        epoch = max(1, rows // batch)
        steps = epoch * int(min(24, max(8, 400_000 / rows)))
    # Dropout biases the size of a number more than it helps to find it.
    dropout = 0.1 if isinstance(task, Classification) else 0.0
    return Recipe(
        kind="table",
        model=TableNet.spec(
            numbers=numbers,
            levels=[count for _, count in encoder.categories],
            outputs=task.outputs,
            sigmas=list(SIGMAS) * (members // len(SIGMAS)),
            dropout=[dropout] * members,
            dim=64 if rows < 1000 else 128,
            depth=3,
            number_dim=min(16, max(4, 128 // max(1, numbers))),
        ),
        task=type(task).spec(**task.arguments()),
        steps=steps,
        batch_size=batch,
        lr=1e-2 * min(1.0, math.sqrt(rows / 4000)) if few else 1e-2,
        weight_decay=0.01,
        betas=(0.9, 0.95),
        average=0.99,
        clip=None,
        evaluate_every=steps // 40 if few else epoch,
        patience=12 if few else None,
        folds=FOLDS if few else None,
        members=members,
        kinds=len(SIGMAS),
    )
