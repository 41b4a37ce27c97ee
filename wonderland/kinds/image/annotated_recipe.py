"""Tasks, models and recipes of images with boxes or masks."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from wonderland.core import Spec, WonderlandError
from wonderland.core.recipe import Recipe
from wonderland.data.photo_augment import PhotoAugment
from wonderland.kinds.image.annotated import TASKS, AnnotatedImages, open_annotated
from wonderland.kinds.image.annotated_encoder import AnnotatedEncoder
from wonderland.kinds.kind import task_spec
from wonderland.models import RetinaNet, UNet
from wonderland.optim import FilterMuon, FusedAdamW
from wonderland.tasks import Detection, Segmentation, Task
from wonderland.train.learner import GradientDescent

DETECTORS = ("RetinaNet", "TinySSD", "FasterRCNN")
SEGMENTERS = ("UNet", "FCN")
SEEN = {"detection": 16_000, "segmentation": 5_000}  # images in a default training
WIDTHS = {"detection": (32, 48), "segmentation": (16, 32)}  # up to and from MANY images
MANY = 5000


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
    """A default by the size and number of images: up to 16,000 are seen for boxes and 5,000 for masks, each at least 4 times.

    UNet's 3 x 3 convolutions have norms behind them, which FilterMuon is made for. AdamW tells objects from background as soon, but
    takes many times as many steps to tell their classes apart.
    """
    pixels = encoder.height * encoder.width
    batch = 16 if pixels <= 192 * 192 and encoder.task == "detection" else 8
    batch = max(1, min(batch, rows // 4))
    epoch = max(1, rows // batch)
    epochs = max(4, min(200, round(SEEN[encoder.task] * min(1.0, 160 * 160 / pixels) / rows)))
    normalised = {"channels": encoder.channels, "mean": encoder.mean, "std": encoder.std}
    dim = WIDTHS[encoder.task][rows >= MANY]
    if encoder.task == "detection":
        optimizer, lr = FusedAdamW.spec(weight_decay=0.05, betas=[0.9, 0.99]), 2e-3
        model = RetinaNet.spec(classes=task.outputs, **normalised, **encoder.anchors, dim=dim)
    else:
        optimizer, lr = FilterMuon.spec(weight_decay=0.01), 0.1
        model = UNet.spec(
            classes=task.outputs, **normalised, dim=dim, depth=3 if min(encoder.height, encoder.width) < 48 else 4
        )
    return Recipe(
        model=model,
        task=task_spec(task),
        learner=GradientDescent.spec(),
        optimizer=optimizer,
        schedule=Spec("optim.warmup_cosine", {"warmup": 0.1}),
        steps=epoch * epochs,
        batch_size=batch,
        lr=lr,
        evaluate_every=max(epoch, epoch * epochs // 15),
        augment=augment or default_augment(encoder).as_spec(),
        workers=dataset.options.workers or 0 if dataset.options else 0,
    )


def named_recipe(recipe: Recipe, name: str) -> Recipe:
    """FasterRCNN learns with FilterMuon: with AdamW it finds boxes soon, but their classes, which its second stage gives, late.

    The first of its dense layers reads thousands of features, so these layers take a small rate.
    """
    if name != "models.FasterRCNN":
        return recipe
    return replace(recipe, optimizer=FilterMuon.spec(weight_decay=0.01, others=0.02), lr=0.1)


def default_augment(encoder: AnnotatedEncoder) -> PhotoAugment:
    """Crops, shifts and light; mirror images of photographs only, and small rotations only where there are masks.

    Mirror images and large rotations make other classes of digits, letters and signs. Masks are often drawn where an image passes a
    threshold, so their images keep their light.
    """
    colour = encoder.channels == 3
    cut, turn, shift, light = (0.2, 5.0, 0.1, 0.0) if encoder.task == "segmentation" else (0.3, 0.0, 0.05, 0.2)
    return PhotoAugment(
        crop=cut, stretch=cut, shift=shift, rotate=turn, flip=0.5 if colour else 0.0, brightness=light, contrast=light,
        saturation=light if colour else 0.0,
    )  # fmt: skip
