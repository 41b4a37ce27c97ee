"""The road for images: a residual network as large as the data can teach, moved and turned a little at each look."""

from wonderland.data import Augment, Dataset, ImageEncoder, Split
from wonderland.models import ConvNet
from wonderland.core.recipe import Recipe
from wonderland.tasks import Classification, Task


def folds(dataset: Dataset) -> int | None:
    """Images are split in four parts, whatever their number: k networks would take k times as long."""
    return None


def recipe(dataset: Dataset, encoder: ImageEncoder, parts: Split, task: Task) -> Recipe:
    """Defaults for images of this size and number: about 48,000 looks, and at least six at each image."""
    rows = len(parts.train)
    size = (encoder.channels, encoder.height, encoder.width)
    batch = next(batch for least, batch in ((4000, 128), (600, 64), (200, 32), (0, 16)) if rows >= least)
    epoch = max(1, rows // batch)
    epochs = max(6, min(200, round(48_000 / rows)))
    softened = {"label_smoothing": 0.05} if isinstance(task, Classification) else {}
    return Recipe(
        kind="image",
        model=ConvNet.spec(**ConvNet.for_data(rows, *size, task.outputs), mean=encoder.mean, std=encoder.std),
        task=type(task).spec(**(task.arguments() | softened)),
        steps=epoch * epochs,
        batch_size=batch,
        lr=4e-3,
        weight_decay=0.05,
        betas=(0.9, 0.99),
        warmup=0.1,
        evaluate_every=max(epoch, epoch * epochs // 40),
        augment=Augment.for_images(*size).to_json(),
    )
