"""Tasks, models and recipes of images with boxes or masks."""

from pathlib import Path
from typing import Any

from wonderland.core import Spec, WonderlandError
from wonderland.core.recipe import Recipe
from wonderland.data.photo_augment import PhotoAugment
from wonderland.kinds.image.annotated import TASKS, AnnotatedImages, open_annotated
from wonderland.kinds.image.annotated_encoder import AnnotatedEncoder
from wonderland.kinds.kind import task_spec
from wonderland.models import RetinaNet, UNet
from wonderland.optim import FusedAdamW
from wonderland.tasks import Detection, Segmentation, Task
from wonderland.train.learner import GradientDescent

DETECTORS = ("RetinaNet", "TinySSD", "FasterRCNN")
SEGMENTERS = ("UNet", "FCN")
SEEN = {"detection": 16_000, "segmentation": 16_000}  # images in a default training


def open_source(path: Path, options: Any) -> AnnotatedImages:
    """The images of a source with boxes or masks, by the options of images."""
    for name in ("target", "start", "method"):
        if getattr(options, name, None) is not None:
            raise WonderlandError(
                f"{name} is for images with classes, and {path} is read for boxes or masks: leave it out."
            )
    asked = options.task if options.task in TASKS else None
    return open_annotated(path, asked, skip=options.skip_broken, size=options.size)


def task_for(encoder: AnnotatedEncoder) -> Task:
    """Detection or Segmentation for the classes of the training images."""
    if encoder.task == "detection":
        return Detection(encoder.classes)
    return Segmentation(encoder.classes, background=encoder.background, weights=encoder.weights)


def recipe_for(
    dataset: AnnotatedImages, rows: int, encoder: AnnotatedEncoder, task: Task, augment: Spec | None
) -> Recipe:
    """A default by the size and number of images: up to 16,000 images are seen, each at least 4 times."""
    pixels = encoder.height * encoder.width
    batch = 16 if pixels <= 192 * 192 and encoder.task == "detection" else 8
    batch = max(1, min(batch, rows // 4))
    epoch = max(1, rows // batch)
    epochs = max(4, min(200, round(SEEN[encoder.task] * min(1.0, 160 * 160 / pixels) / rows)))
    normalised = {"channels": encoder.channels, "mean": encoder.mean, "std": encoder.std}
    if encoder.task == "detection":
        dim = 32 if rows < 5000 else 48
        model = RetinaNet.spec(classes=task.outputs, **normalised, **encoder.anchors, dim=dim)
    else:
        dim = 16 if rows < 5000 else 32
        model = UNet.spec(
            classes=task.outputs, **normalised, dim=dim, depth=3 if min(encoder.height, encoder.width) < 48 else 4
        )
    return Recipe(
        model=model,
        task=task_spec(task),
        learner=GradientDescent.spec(),
        optimizer=FusedAdamW.spec(weight_decay=0.05, betas=[0.9, 0.99]),
        schedule=Spec("optim.warmup_cosine", {"warmup": 0.1}),
        steps=epoch * epochs,
        batch_size=batch,
        lr=2e-3 if encoder.task == "detection" else 4e-3,
        evaluate_every=max(epoch, epoch * epochs // 15),
        augment=augment or default_augment(encoder).as_spec(),
        workers=dataset.options.workers or 0 if dataset.options else 0,
    )


def default_augment(encoder: AnnotatedEncoder) -> PhotoAugment:
    """Crops, shifts and light; mirror images of photographs only, and rotations only where there are masks, which stay exact."""
    photo = encoder.channels == 3
    turn = 10.0 if encoder.task == "segmentation" else 0.0
    return PhotoAugment(
        crop=0.3, stretch=0.3, shift=0.05, rotate=turn, flip=0.5 if photo else 0.0, brightness=0.2, contrast=0.2,
        saturation=0.2 if photo else 0.0,
    )  # fmt: skip
