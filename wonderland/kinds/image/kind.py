"""Images: a residual network as large as the data can teach, with inputs that are shifted, rotated and scaled at random."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, parse_spec
from wonderland.core.recipe import Recipe
from wonderland.data.dataset import GENERATE, stop_if_strict
from wonderland.data.folders import by_parts, refuse_tables, scan
from wonderland.data.idx import image_files
from wonderland.data.source import Glimpse
from wonderland.data.split import Split, split
from wonderland.kinds.image import annotated_recipe, generated
from wonderland.kinds.image.annotated import TASKS, AnnotatedImages, recognise
from wonderland.kinds.image.annotated_encoder import AnnotatedEncoder
from wonderland.kinds.image.encoder import ImageEncoder
from wonderland.kinds.image.image_list import open_list, path_column
from wonderland.kinds.image.images import Images
from wonderland.kinds.image.options import Options as ImageOptions
from wonderland.kinds.image.pictures import activation_maps, attention_maps, augmented, layer_sheets
from wonderland.kinds.image.recipes import (
    evaluated_often_enough,
    for_epochs,
    is_photo,
    is_small,
    photo_recipe,
    residual_recipe,
    whitened_recipe,
)
from wonderland.kinds.image.sets import join, open_idx
from wonderland.kinds.kind import Claim, Kind, model_space
from wonderland.kinds.kind import evaluated_often_enough as often_enough
from wonderland.tasks import Task
from wonderland.train.image_start import ImageStart
from wonderland.understand import saliency

MODELS = (
    "ConvNet", "AlexNet", "AnyNet", "ConvMixer", "ConvNeXt", "DenseNet", "EfficientNetLite", "GoogLeNet", "LeNet", "MetaFormer", "MLPMixer", "MobileNetV2", "NiN", "NormFreeResNet", "RegNet", "ResNet", "ResNeXt", "VGG", "ViT", "WhitenedConvNet",
)  # fmt: skip


MOST_HELD_OUT = 2500
BY_DEPTH = ("depth_decay", "unfreeze")


class ImageKind(Kind):
    """Pictures in class folders, in a table of paths, or as arrays."""

    name = "image"
    Options = ImageOptions
    models = tuple(
        f"models.{name}"
        for name in (*MODELS, *annotated_recipe.DETECTORS, *annotated_recipe.SEGMENTERS, *generated.GENERATORS)
    )
    typical = {"channels": 3, "classes": 10, "height": 32, "width": 32, "shape": [3, 32, 32], "features": 3072}  # noqa: RUF012

    def claims(self, glimpse: Glimpse, asked: Mapping[str, Any]) -> Claim | None:
        if glimpse.path is not None and image_files(glimpse.path):
            return Claim(0.99, "it holds IDX files of images")
        asked_for = asked.get("task")
        if glimpse.path is not None and (asked_for is None or asked_for in TASKS):
            form = recognise(glimpse.path)
            if form is not None:
                return Claim(0.97, "it holds images with boxes or masks")
        if glimpse.plain_text is not None:
            return None
        if glimpse.path is not None and glimpse.path.is_dir():
            listing = scan(glimpse.path)
            if by_parts(listing).parted:
                return Claim(0.95, "it holds the parts of a split, with a folder of pictures for each class")
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
        if glimpse.path is not None and options.task in (None, *TASKS) and self._is_annotated(glimpse.path, options):
            self.refuse_test(test, "images with boxes or masks are split by themselves")
            annotated = annotated_recipe.open_source(glimpse.path, options)
            stop_if_strict(annotated.findings, options.strict)
            return annotated
        if options.task == GENERATE:
            self.refuse_test(test, "images to generate are split by themselves")
            images = generated.open_images(glimpse, options, self._open)
            stop_if_strict(images.findings, options.strict)
            return images
        images = self._open(glimpse, options)
        if test is None:
            return images
        if images.test_rows is not None or images.assigned is not None:
            raise WonderlandError(f"{images.name} has test images of its own: leave test (--test) out.")
        images = join(images, test.source)
        images.origin["test"] = {"memory": test.name} if test.path is None else {"path": str(test.path.absolute())}
        return images

    @staticmethod
    def _is_annotated(path: Path, options: ImageOptions) -> bool:
        """Whether the images come with boxes or masks."""
        return options.task is not None or (not image_files(path) and recognise(path) is not None)

    def _open(self, glimpse: Glimpse, options: ImageOptions) -> Images:
        start = ImageStart.of(options)
        for name in BY_DEPTH:
            if vars(options)[name] is not None and (start is None or start.method != "full"):
                raise WonderlandError(
                    f"{name} is for a checkpoint that learns in full: name it with start (--from), without another method."
                )
        if glimpse.path is not None and image_files(glimpse.path):
            if options.size is not None:
                raise WonderlandError("Images in IDX files keep their size: leave size (--size) out.")
            images = open_idx(glimpse.path, options)
            images.start = start
            return images
        contents = glimpse.contents
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

    def split(self, dataset: Images, *, test: float, seed: int, plain: bool = False) -> Split:
        """A tenth of the images for validation and for calibration, at most 2,500 each."""
        rows = len(dataset) if dataset.test_rows is None else int((~dataset.test_rows).sum())
        share = min(0.1, MOST_HELD_OUT / rows)
        return split(dataset, seed=seed, test=test, validation=share, calibration=share)

    def encoder(self, dataset: Images, parts: Any) -> Any:
        if isinstance(dataset, AnnotatedImages):
            return AnnotatedEncoder.fit(dataset, parts.train)
        if dataset.task == GENERATE:
            return generated.SampledImages.fit(dataset, parts.train)
        return ImageEncoder.fit(dataset, parts.train)

    def task(self, dataset: Any, parts: Any, encoder: Any) -> Task:
        if isinstance(encoder, AnnotatedEncoder):
            return annotated_recipe.task_for(encoder)
        if dataset.task == GENERATE:
            return generated.task_of(dataset)
        return super().task(dataset, parts, encoder)

    def read_encoder(self, saved: Any, tensors: dict[str, Tensor]) -> Any:
        if isinstance(saved, dict) and saved.get("task") in TASKS:
            return AnnotatedEncoder.from_json(saved)
        if isinstance(saved, dict) and saved.get("task") == GENERATE:
            return generated.SampledImages.from_json(saved, tensors)
        return ImageEncoder.from_json(saved, tensors)

    def recipe(self, dataset: Images, parts: Any, encoder: ImageEncoder, task: Any) -> Recipe:
        """Defaults for images of this size and number (`recipes`), or those that go on from a checkpoint."""
        rows, start = len(parts.train), dataset.start
        asked = asked_augment(dataset.options.augment)
        if isinstance(dataset, AnnotatedImages):
            if asked is not None and not hasattr(asked.part, "matrices"):
                raise WonderlandError(
                    f"{asked.name} does not move boxes and masks: take PhotoAugment(...) or Augment(...)."
                )
            return annotated_recipe.recipe_for(dataset, rows, encoder, task, asked)  # pyright: ignore[reportArgumentType]
        if isinstance(encoder, generated.SampledImages):
            return replace(generated.recipe_of(encoder, task, rows), workers=dataset.options.workers or 0)
        if isinstance(start, ImageStart):
            recipe = residual_recipe(encoder, task, rows)
            batch = 32 if rows >= 2000 else 16 if rows >= 200 else 8
            epoch, epochs = max(1, rows // batch), max(2, min(10, round(20_000 / rows)))
            recipe = replace(recipe, batch_size=min(batch, rows))
            recipe = start.recipe(recipe, start.spec(task.outputs), epoch=epoch, epochs=epochs)
            given = {name: vars(dataset.options)[name] for name in BY_DEPTH}
            recipe = replace(
                recipe, learner=recipe.learner.changed(**{name: v for name, v in given.items() if v is not None})
            )
        elif is_small(encoder, rows):
            recipe = whitened_recipe(dataset, parts.train, encoder, task)
        elif is_photo(encoder, task):
            recipe = photo_recipe(dataset, parts.train, encoder, task)
        else:
            recipe = residual_recipe(encoder, task, rows)
        return replace(recipe, augment=asked or recipe.augment, workers=dataset.options.workers or 0)

    def named_recipe(self, recipe: Recipe, name: str, dataset: Any, parts: Any) -> Recipe:
        if dataset.task == GENERATE:
            return generated.named_recipe(recipe, name)
        return annotated_recipe.named_recipe(recipe, name)

    def for_epochs(self, recipe: Recipe, epochs: float) -> Recipe | None:
        return for_epochs(recipe, epochs)

    def adjust_to_steps(self, recipe: Recipe) -> Recipe:
        if recipe.task.name == "tasks.Generation":
            return often_enough(recipe)
        return evaluated_often_enough(recipe)

    def space(self, recipe: Recipe) -> dict[str, Any]:
        stages = recipe.model.arguments.get("stages", 1) if isinstance(recipe.model, Spec) else 1
        return super().space(recipe) | model_space(
            recipe, {"model.dim": ("choice", [16, 24, 32, 48]), "model.depth": ("integer", stages, stages + 4)}
        )

    def initial(self, dataset: Any, task: Task) -> nn.Module | None:
        start = dataset.start
        return start.load_classifier(task.outputs) if isinstance(start, ImageStart) else None

    def facts(self, run: Any, plan: Any) -> dict[str, Any]:
        """Augmented images, class activation maps, and pixels by how much they move the answer."""
        if isinstance(plan.dataset, AnnotatedImages):
            return {"noun": "images"}
        if isinstance(plan.encoder, generated.SampledImages):
            return generated.report_facts(run, plan)
        shown = {"noun": "images", "augmented": augmented(plan)}
        if run.classes is None:
            return shown
        batch = plan.examples.take(plan.parts.test[:256])
        weights = saliency(run.model, batch["x"], torch.as_tensor(batch["y"]))
        values = {"height": weights.shape[0], "width": weights.shape[1], "values": weights.tolist()}
        looked = {"activation": activation_maps(run, plan), "attention": attention_maps(run, plan)}
        return shown | {"importance": values, "layers": layer_sheets(run, plan), **looked}


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
