"""Recipes for images, by their size and number: a network with whitened patches for many small ones and for photographs, a residual one
for others."""

from dataclasses import replace
from typing import Any

import numpy as np

from wonderland.core import Spec
from wonderland.core.recipe import Recipe
from wonderland.data.augment import Augment
from wonderland.data.crop_augment import CropAugment
from wonderland.data.photo_augment import PhotoAugment
from wonderland.kinds.image.encoder import ImageEncoder
from wonderland.kinds.image.images import Images
from wonderland.kinds.kind import task_spec
from wonderland.models import ConvNet, WhitenedConvNet
from wonderland.nn import whitening_directions
from wonderland.optim import FilterMuon, FusedAdamW
from wonderland.train.learner import GradientDescent

SMALLEST, LARGEST, FEWEST = 16, 48, 4000  # sides and number of images that the network with whitened patches is for
WIDTHS = ([8, 16, 32], [16, 64, 64], [32, 128, 128], [64, 256, 256])
USUAL, FEWEST_EPOCHS, MANY_EPOCHS = 2, 4, 30
WHITENED_FROM, WHITENED_PIXELS = 4000, 4000 * 32 * 32  # images, and pixels, that patches are taken from at most
PHOTO_SIDE, PHOTO_WIDTHS = 48, [16, 32, 64, 128]  # the shortest side of photographs, and the stages of their network
PHOTO_PIXELS = 14_000 * 96 * 96  # that are seen in a training on photographs


def is_small(encoder: ImageEncoder, rows: int) -> bool:
    """Whether images are small and many."""
    sides = (encoder.height, encoder.width)
    return min(sides) >= SMALLEST and max(sides) <= LARGEST and rows >= FEWEST


def whitened_recipe(dataset: Images, train: np.ndarray, encoder: ImageEncoder, task: Any) -> Recipe:
    """WhitenedConvNet with Muon: about 340,000 grey or 540,000 colour images are seen, in batches of 500."""
    rows = len(train)
    batch = 500 if rows >= 20_000 else 250
    epoch = max(1, rows // batch)
    epochs = max(6, min(40, round((540_000 if encoder.channels == 3 else 340_000) / rows)))
    return _whitened(
        whitened_network(dataset, train, encoder, task, WIDTHS[USUAL]),
        task,
        steps=epoch * epochs,
        batch_size=batch,
        evaluate_every=max(1, epoch * epochs // 4),
        augment=CropAugment(pixels=2, flip="alternating" if encoder.mirrors else "none").as_spec(),
    )


def is_photo(encoder: ImageEncoder, task: Any) -> bool:
    """Whether images are large enough to be photographs, and have classes."""
    return min(encoder.height, encoder.width) >= PHOTO_SIDE and task.classes is not None


def photo_recipe(dataset: Images, train: np.ndarray, encoder: ImageEncoder, task: Any) -> Recipe:
    """WhitenedConvNet with Muon for photographs: 14,000 of 96 x 96 pixels are seen, each at least 8 and at most 120 times.

    From few images it tells shapes apart in far fewer steps than a residual network with AdamW.
    """
    rows = len(train)
    batch = next(batch for least, batch in ((4000, 128), (600, 64), (200, 32), (0, 16)) if rows >= least)
    epoch = max(1, rows // batch)
    epochs = max(8, min(120, round(PHOTO_PIXELS / (encoder.height * encoder.width) / rows)))
    light = 0.3 if encoder.channels == 3 else 0.0
    changes = PhotoAugment(
        crop=0.4, stretch=0.2, flip=0.5 if encoder.mirrors else 0.0, rotate=15, brightness=0.2, contrast=0.2, saturation=light,
    )  # fmt: skip
    return _whitened(
        whitened_network(dataset, train, encoder, task, PHOTO_WIDTHS),
        task,
        steps=epoch * epochs,
        batch_size=batch,
        evaluate_every=max(1, epoch * epochs // 12),
        augment=changes.as_spec(),
    )


def whitened_network(dataset: Images, train: np.ndarray, encoder: ImageEncoder, task: Any, widths: list[int]) -> Spec:
    """WhitenedConvNet, its first convolution computed from patches of the training images."""
    patch = 3 if encoder.channels == 1 else 2
    most = min(len(train), WHITENED_FROM, max(1, WHITENED_PIXELS // (encoder.height * encoder.width)))
    chosen = train[np.linspace(0, len(train) - 1, most).astype(np.int64)]
    scale = [np.reshape(np.asarray(values), (-1, 1, 1)) for values in (encoder.mean, encoder.std)]
    pixels = (dataset.pixels(chosen) / 255 - scale[0]) / scale[1]
    directions = whitening_directions(pixels, patch, eps=1e-2 if encoder.channels == 1 else 5e-4)
    return WhitenedConvNet.spec(
        classes=task.outputs, channels=encoder.channels, widths=widths, patch=patch, crops=1, mirror=encoder.mirrors,
        directions=[[round(float(value), 6) for value in row] for row in directions], mean=encoder.mean, std=encoder.std,
    )  # fmt: skip


def _whitened(model: Spec, task: Any, **numbers: Any) -> Recipe:
    """Muon at a rate that rises and falls in one cycle, with smoothed classes."""
    smoothed = {"label_smoothing": 0.1} if task.classes is not None else {}
    return Recipe(
        model=model,
        task=task_spec(task, **smoothed),
        learner=GradientDescent.spec(),
        optimizer=FilterMuon.spec(weight_decay=0.01),
        schedule=Spec("optim.one_cycle", {"rise": 0.1, "start": 0.1, "end": 0.0}),
        lr=0.1,
        clip=None,
        **numbers,
    )


def residual_recipe(encoder: ImageEncoder, task: Any, rows: int) -> Recipe:
    """ConvNet with AdamW: each image is seen at least six times, 48,000 examples in all."""
    size = (encoder.channels, encoder.height, encoder.width)
    batch = next(batch for least, batch in ((4000, 128), (600, 64), (200, 32), (0, 16)) if rows >= least)
    epoch = max(1, rows // batch)
    epochs = max(6, min(200, round(48_000 / rows)))
    smoothed = {"label_smoothing": 0.05} if task.classes is not None else {}
    return Recipe(
        model=ConvNet.spec(**ConvNet.for_data(rows, *size, task.outputs), mean=encoder.mean, std=encoder.std),
        task=task_spec(task, **smoothed),
        learner=GradientDescent.spec(),
        optimizer=FusedAdamW.spec(weight_decay=0.05, betas=[0.9, 0.99]),
        schedule=Spec("optim.warmup_cosine", {"warmup": 0.1}),
        steps=epoch * epochs,
        batch_size=batch,
        lr=4e-3,
        evaluate_every=max(epoch, epoch * epochs // 40),
        augment=replace(Augment.for_images(*size), flip=0.5 if encoder.mirrors else 0.0).as_spec(),
    )


def for_epochs(recipe: Recipe, epochs: float) -> Recipe | None:
    """The recipe with a narrower network where time allows few passes, or a wider one where it allows many; None to keep it."""
    if not isinstance(recipe.model, Spec) or recipe.model.name != "models.WhitenedConvNet":
        return None
    widths = recipe.model.arguments.get("widths")
    place = WIDTHS.index(widths) if widths in WIDTHS else None
    if place is None:
        return None
    if epochs < FEWEST_EPOCHS and 0 < place <= USUAL:
        place -= 1
    elif epochs > MANY_EPOCHS and place == USUAL:
        place += 1
    else:
        return None
    return replace(recipe, model=recipe.model.changed(widths=WIDTHS[place]))


def evaluated_often_enough(recipe: Recipe) -> Recipe:
    """The recipe with at least four evaluations in its steps, where steps are those of whole passes."""
    if not isinstance(recipe.model, Spec) or recipe.model.name != "models.WhitenedConvNet":
        return recipe
    return replace(recipe, evaluate_every=max(1, min(recipe.evaluate_every, recipe.steps // 4)))
