"""Images: a residual network as large as the data can teach, with inputs that are shifted, rotated and scaled at random."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, parse_spec
from wonderland.core.recipe import Recipe
from wonderland.data.augment import Augment
from wonderland.data.dataset import stop_if_strict
from wonderland.data.folders import refuse_tables, scan
from wonderland.data.source import Glimpse
from wonderland.kinds.image import annotated_recipe
from wonderland.kinds.image.annotated import TASKS, AnnotatedImages, recognise
from wonderland.kinds.image.annotated_encoder import AnnotatedEncoder
from wonderland.kinds.image.encoder import ImageEncoder
from wonderland.kinds.image.image_list import open_list, path_column
from wonderland.kinds.image.images import Images
from wonderland.kinds.image.options import Options as ImageOptions
from wonderland.kinds.kind import Claim, Kind, model_space, task_spec
from wonderland.models import ConvNet
from wonderland.optim import FusedAdamW
from wonderland.tasks import Task
from wonderland.train.image_start import ImageStart
from wonderland.train.learner import GradientDescent
from wonderland.understand import saliency

MODELS = (
    "ConvNet", "AlexNet", "AnyNet", "ConvMixer", "ConvNeXt", "DenseNet", "GoogLeNet", "LeNet", "MetaFormer", "MLPMixer", "MobileNetV2", "NiN", "RegNet", "ResNet", "ResNeXt", "VGG", "ViT", "WhitenedConvNet",
)  # fmt: skip


class ImageKind(Kind):
    """Pictures in class folders, in a table of paths, or as arrays."""

    name = "image"
    Options = ImageOptions
    models = tuple(f"models.{name}" for name in (*MODELS, *annotated_recipe.DETECTORS, *annotated_recipe.SEGMENTERS))
    typical = {"channels": 3, "classes": 10, "height": 32, "width": 32}  # noqa: RUF012

    def claims(self, glimpse: Glimpse, asked: Mapping[str, Any]) -> Claim | None:
        asked_for = asked.get("task")
        if glimpse.path is not None and (asked_for is None or asked_for in TASKS):
            form = recognise(glimpse.path)
            if form is not None:
                return Claim(0.97, "it holds images with boxes or masks")
        if glimpse.plain_text is not None:
            return None
        if glimpse.path is not None and glimpse.path.is_dir():
            listing = scan(glimpse.path)
            return (
                Claim(0.8, "it is a folder of pictures")
                if listing.files or listing.loose
                else Claim(0.1, "it is a folder")
            )
        if glimpse.path is not None and glimpse.frame is not None:
            column = path_column(glimpse.frame, glimpse.path.parent)
            return None if column is None else Claim(0.99, f"column {column!r} names image files")
        return None if glimpse.images is None else Claim(0.8, "it holds arrays of pixels")

    def open(self, glimpse: Glimpse, options: ImageOptions, test: Glimpse | None = None) -> Images:
        self.refuse_test(test, "images are split by themselves")
        if glimpse.path is not None and options.task in (None, *TASKS) and (options.task or recognise(glimpse.path)):
            annotated = annotated_recipe.open_source(glimpse.path, options)
            stop_if_strict(annotated.findings, options.strict)
            return annotated
        contents, start = glimpse.contents, ImageStart.of(options)
        size = options.size if options.size is not None or start is None else start.side
        if glimpse.path is not None and contents.frame is not None:
            images = open_list(glimpse.path, contents.frame, options, size=size)
            stop_if_strict(images.findings, options.strict)
            images.start = start
            return images
        if options.target is not None:
            raise WonderlandError("The class of an image is the name of its folder: leave the target out.")
        if contents.folder is not None:
            refuse_tables(scan(contents.folder))
            images = Images.from_folder(
                contents.folder, size=size, task=options.task, strict=options.strict, skip_broken=options.skip_broken
            )
            images.start = start
            return images
        if contents.images is None:
            raise WonderlandError(
                f"{contents.name} holds no images: give a folder of class folders, or arrays of pixels."
            )
        if options.size is not None:
            raise WonderlandError("Images from arrays keep their size: resize the arrays instead.")
        images = Images.from_arrays(*contents.images, name=contents.name, task=options.task, strict=options.strict)
        images.origin, images.start = contents.origin, start
        return images

    def encoder(self, dataset: Images, parts: Any) -> Any:
        if isinstance(dataset, AnnotatedImages):
            return AnnotatedEncoder.fit(dataset, parts.train)
        return ImageEncoder.fit(dataset, parts.train)

    def task(self, dataset: Any, parts: Any, encoder: Any) -> Task:
        if isinstance(encoder, AnnotatedEncoder):
            return annotated_recipe.task_for(encoder)
        return super().task(dataset, parts, encoder)

    def read_encoder(self, saved: Any, tensors: dict[str, Tensor]) -> Any:
        if isinstance(saved, dict) and saved.get("task") in TASKS:
            return AnnotatedEncoder.from_json(saved)
        return ImageEncoder.from_json(saved, tensors)

    def recipe(self, dataset: Images, parts: Any, encoder: ImageEncoder, task: Any) -> Recipe:
        """Defaults for images of this size and number: each is seen at least six times, 48,000 examples in all."""
        rows = len(parts.train)
        if isinstance(dataset, AnnotatedImages):
            augment = asked_augment(dataset.options.augment)
            if augment is not None and not hasattr(augment.part, "matrices"):
                raise WonderlandError(
                    f"{augment.name} does not move boxes and masks: take PhotoAugment(...) or Augment(...)."
                )
            return annotated_recipe.recipe_for(dataset, rows, encoder, task, augment)  # pyright: ignore[reportArgumentType]
        size = (encoder.channels, encoder.height, encoder.width)
        batch = next(batch for least, batch in ((4000, 128), (600, 64), (200, 32), (0, 16)) if rows >= least)
        epoch = max(1, rows // batch)
        epochs = max(6, min(200, round(48_000 / rows)))
        smoothed = {"label_smoothing": 0.05} if task.classes is not None else {}
        made = Recipe(
            model=ConvNet.spec(**ConvNet.for_data(rows, *size, task.outputs), mean=encoder.mean, std=encoder.std),
            task=task_spec(task, **smoothed),
            learner=GradientDescent.spec(),
            optimizer=FusedAdamW.spec(weight_decay=0.05, betas=[0.9, 0.99]),
            schedule=Spec("optim.warmup_cosine", {"warmup": 0.1}),
            steps=epoch * epochs,
            batch_size=batch,
            lr=4e-3,
            evaluate_every=max(epoch, epoch * epochs // 40),
            augment=asked_augment(dataset.options.augment) or Augment.for_images(*size).as_spec(),
            workers=dataset.options.workers or 0,
        )
        start = dataset.start
        if not isinstance(start, ImageStart):
            return made
        batch = 32 if rows >= 2000 else 16 if rows >= 200 else 8
        epoch, epochs = max(1, rows // batch), max(2, min(10, round(20_000 / rows)))
        return start.recipe(
            replace(made, batch_size=min(batch, rows)), start.spec(task.outputs), epoch=epoch, epochs=epochs
        )

    def space(self, recipe: Recipe) -> dict[str, Any]:
        return super().space(recipe) | model_space(
            recipe, {"model.dim": ("choice", [16, 24, 32, 48]), "model.depth": ("integer", 1, 6)}
        )

    def initial(self, dataset: Any, task: Task) -> nn.Module | None:
        start = dataset.start
        return start.load_classifier(task.outputs) if isinstance(start, ImageStart) else None

    def facts(self, run: Any, plan: Any) -> dict[str, Any]:
        """Pixels by how much they move the answer."""
        if run.classes is None or isinstance(plan.dataset, AnnotatedImages):
            return {"noun": "images"}
        batch = plan.examples.take(plan.parts.test[:256])
        weights = saliency(run.model, batch["x"], torch.as_tensor(batch["y"]))
        values = {"height": weights.shape[0], "width": weights.shape[1], "values": weights.tolist()}
        return {"noun": "images", "importance": values}


def asked_augment(text: str | None) -> Spec | None:
    """The augmentation that a text names; None for the default."""
    if text is None:
        return None
    spec = parse_spec(text, folders=("data",))
    if not hasattr(spec.part, "draws"):
        raise WonderlandError(f"{spec.name} does not change images: take PhotoAugment(...) or Augment(...).")
    spec.build()
    return spec


KIND = ImageKind()
