"""The road for texts with classes: filters over neighbouring words, as the data can teach them."""

from dataclasses import replace

from wonderland.data import Dataset, Split, TextEncoder
from wonderland.models import TextCNN
from wonderland.core.recipe import Recipe
from wonderland.train.start import Start
from wonderland.tasks import Classification, Task


def folds(dataset: Dataset) -> int | None:
    """Texts are split in four parts, whatever their number."""
    return None


def going_on(made: Recipe, start: Start, parts: Split, task: Task) -> Recipe:
    """The recipe for texts with a checkpoint to go on from: fewer looks, in batches that a large model can take."""
    batch = 16 if len(parts.train) >= 200 else 8
    epoch = max(1, len(parts.train) // batch)
    epochs = max(2, min(10, round(30_000 / len(parts.train))))
    made = replace(made, batch_size=batch, task=type(task).spec(**task.arguments()))
    return start.recipe(made, start.classifier(task.outputs).origin.spec, epoch=epoch, epochs=epochs)


def recipe(dataset: Dataset, encoder: TextEncoder, parts: Split, task: Task) -> Recipe:
    """Defaults for texts of this number: TextCNN with much dropout, about 100,000 looks."""
    assert isinstance(task, Classification)
    rows = len(parts.train)
    batch = next(batch for least, batch in ((8000, 64), (1000, 48), (200, 16), (0, 8)) if rows >= least)
    epoch = max(1, rows // batch)
    epochs = max(3, min(60, round(100_000 / rows)))
    return Recipe(
        kind="text",
        model=TextCNN.spec(
            vocab=encoder.tokenizer.vocab, classes=task.outputs, dim=128, channels=100, pad=0, max_norm=3.0
        ),
        task=type(task).spec(**(task.arguments() | {"label_smoothing": 0.05})),
        steps=epoch * epochs,
        batch_size=batch,
        lr=1e-3,
        weight_decay=0.01,
        betas=(0.9, 0.99),
        warmup=0.05,
        average=0.99,
        evaluate_every=epoch,
        patience=8,
    )
