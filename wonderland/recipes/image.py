"""The road for images: a residual network as large as the data can teach, moved and turned a little at each look."""

from wonderland.data import Augment, Dataset, ImageEncoder, Split
from wonderland.models import ConvNet
from wonderland.recipes.recipe import Recipe
from wonderland.tasks import Task


def folds(dataset: Dataset) -> int | None:
    """Images are split in four parts, whatever their number: k networks would take k times as long."""
    return None


def recipe(dataset: Dataset, encoder: ImageEncoder, parts: Split, task: Task) -> Recipe:
    """Defaults for images of this size and number: about 30,000 looks at a small set, ten passes over a large one."""
    rows = len(parts.train)
    size = (encoder.channels, encoder.height, encoder.width)
    arguments = ConvNet.for_data(rows, *size, task.outputs)
    batch = 32 if rows < 4000 else 64 if rows < 20_000 else 128
    epoch = max(1, rows // batch)
    epochs = max(8, min(40, round(30_000 / rows)))
    return Recipe(
        kind="image",
        model=ConvNet.spec(**arguments, mean=encoder.mean, std=encoder.std),
        task=type(task).spec(**task.arguments()),
        steps=epoch * epochs,
        batch_size=batch,
        lr=4e-3,
        weight_decay=0.02,
        warmup=0.1,
        evaluate_every=epoch,
        augment=Augment.for_images(*size).to_json(),
    )
