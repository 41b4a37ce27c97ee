"""Images whose distribution is learned: reading them, with classes or without, turning samples into pixels, recipes, report."""

import base64
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import Spec, WonderlandError
from wonderland.core.recipe import Recipe
from wonderland.data.dataset import GENERATE, MULTILABEL, Finding, counted
from wonderland.data.examples import Examples, RowExamples
from wonderland.data.folders import scan
from wonderland.data.idx import image_files
from wonderland.data.pixels import DEFAULT_SIDE
from wonderland.data.source import Glimpse
from wonderland.kinds.image.encoder import ImageEncoder
from wonderland.kinds.image.images import Images
from wonderland.kinds.kind import task_spec
from wonderland.models.generative import Diffusion, FlowMatching, VelocityNet, VelocityUNet, memorised
from wonderland.models.generative.flow_matching import SMALLEST_IMAGE
from wonderland.optim import FusedAdamW
from wonderland.tasks import Generation
from wonderland.tasks.abilities.drawing import png, sheet
from wonderland.tasks.generation import drawn
from wonderland.train.adversarial import Adversarial
from wonderland.train.learner import GradientDescent

GENERATORS = ("FlowMatching", "Diffusion", "DCGAN", "VAE", "VQVAE", "PixelCNN", "RealNVP")
NOT_GENERATED = ("start", "method", "depth_decay", "unfreeze", "augment")
MOST_LEVELS = 64  # values of pixels that samples are rounded to, where the training images have no others
SHOWN, PAIRS, COMPARED = 64, 12, 2000
NEIGHBOURS = 5


def open_images(glimpse: Glimpse, options: Any, read: Any) -> Images:
    """The images of a source; class folders and classes of a table are kept, so that samples can be asked of one."""
    for name in NOT_GENERATED:
        if vars(options).get(name) is not None:
            raise WonderlandError(f"{name} is for images with something to predict: leave it out to generate images.")
    flat = None
    if glimpse.path is not None and glimpse.path.is_dir() and not image_files(glimpse.path):
        listing = scan(glimpse.path)
        flat = listing if listing.loose else None
    if flat is not None:
        labelled = len(flat.files)
        flat.files = [(path, "") for path in sorted([*flat.loose, *(path for path, _ in flat.files)])]
        flat.loose = []
        size = None if options.size is None else (options.size, options.size)
        images = Images.from_listing(flat, None, None, None, size=size)
        if size is None and max(images.height, images.width) > DEFAULT_SIDE:
            images = Images.from_listing(flat, None, None, None, size=(DEFAULT_SIDE, DEFAULT_SIDE))
        if labelled:
            text = (
                f"{counted(labelled, 'image lies', 'images lie')} in folders and others do not: classes are not used."
            )
            images.findings.append(Finding("task", str(flat.root), labelled, text))
    else:
        images = read(glimpse, replace(options, task=None))
        if options.size is None and max(images.height, images.width) > DEFAULT_SIDE and images.paths is not None:
            images = read(glimpse, replace(options, task=None, size=DEFAULT_SIDE))
    if images.y is None or images.classes is None or images.task == MULTILABEL:
        images.y, images.classes = np.zeros(len(images), np.int64), None
    images.task = GENERATE
    return images


@dataclass
class SampledImages(ImageEncoder):
    """The size of the training images, and the values that their pixels take (`levels`), where these are few."""

    levels: list[int] | None = None

    @classmethod
    def fit(cls, dataset: Images, rows: np.ndarray) -> "SampledImages":
        plain = ImageEncoder.fit(dataset, rows[:1])
        seen: set[int] = set()
        for piece in np.array_split(rows, max(1, -(-len(rows) // 2048))):
            seen |= set(np.unique(dataset.pixels(piece)).tolist())
        fields = {name: getattr(plain, name) for name in ("channels", "height", "width", "mean", "std", "value_range")}
        levels = sorted(seen) if 2 <= len(seen) <= MOST_LEVELS else None
        return cls(**fields, classes=None, task=GENERATE, levels=levels)

    def examples(self, dataset: Any) -> Examples:
        """Rows with the codes of their classes, or with zeros; classes of new images are not used."""
        x = self.encode(dataset) if self.in_memory(dataset) else lambda rows: self.encode(dataset, rows)
        return RowExamples(x, dataset.y if dataset.task == GENERATE else None, len(dataset), dataset.weights)

    def arguments(self) -> dict[str, Any]:
        shape = [self.channels, self.height, self.width]
        step = 2 / 255 if self.levels is None else 2 * min(np.diff(self.levels).tolist()) / 255
        return {"shape": shape, "features": int(np.prod(shape)), "dequantise": step}

    def open(self, source: Any, *, need_target: bool = False) -> Images:
        return super().open(source, need_target=False)

    def decode(self, samples: Tensor) -> np.ndarray:
        """Samples in -1..1 as bytes (n, h, w) or (n, h, w, 3), rounded to the levels of the training images."""
        pixels = (samples.reshape(-1, self.channels, self.height, self.width).clamp(-1, 1) + 1) * 127.5
        if self.levels is not None:
            levels = torch.tensor(self.levels, dtype=pixels.dtype)
            pixels = levels[torch.bucketize(pixels, (levels[1:] + levels[:-1]) / 2)]
        images = pixels.round().to(torch.uint8).movedim(1, -1).numpy()
        return images[..., 0] if self.channels == 1 else images

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"levels": self.levels}

    @classmethod
    def from_json(cls, value: Any, tensors: dict[str, Tensor] | None = None) -> "SampledImages":
        plain = ImageEncoder.from_json({**value, "task": None}, tensors)
        levels = value.get("levels")
        fine = levels is None or (
            isinstance(levels, list)
            and 2 <= len(levels) <= MOST_LEVELS
            and all(isinstance(v, int) and not isinstance(v, bool) and 0 <= v <= 255 for v in levels)
            and levels == sorted(set(levels))
        )
        if not fine:
            raise WonderlandError(
                f"The preprocessing of this model has levels = {repr(levels)[:60]}, which cannot be: the file is damaged or not ours."
            )
        fields = {name: getattr(plain, name) for name in ("channels", "height", "width", "mean", "std", "value_range")}
        return cls(**fields, classes=None, task=GENERATE, levels=levels)


def task_of(dataset: Images) -> Generation:
    """Generation, with the classes that samples can be asked of."""
    return Generation(None if dataset.classes is None else list(dataset.classes))


def recipe_of(encoder: SampledImages, task: Generation, rows: int) -> Recipe:
    """Flow matching: small images by a network of rows, which sees 1.3 million, others by a U-Net, which sees fewer the larger they are."""
    pixels, classes = encoder.height * encoder.width, len(task.labels or ())
    small = min(encoder.height, encoder.width) < SMALLEST_IMAGE
    if small:
        net = VelocityNet.spec(features=pixels * encoder.channels, classes=classes, hidden=512, depth=3)
        batch, views = 256, 1_280_000
    else:
        net = VelocityUNet.spec(channels=encoder.channels, classes=classes, dim=32, depth=2)
        batch, views = 64, int(np.clip(100_000 * 784 / pixels, 10_000, 200_000))
    batch = max(1, min(batch, rows))
    steps = max(1, views // batch)
    return Recipe(
        model=FlowMatching.spec(
            shape=[encoder.channels, encoder.height, encoder.width],
            classes=classes,
            net=net,
            guidance=1.5 if classes else 1.0,
        ),
        task=task_spec(task),
        learner=GradientDescent.spec(),
        optimizer=FusedAdamW.spec(weight_decay=0.01, betas=[0.9, 0.99]),
        schedule=Spec("optim.warmup_cosine", {"warmup": 0.05}),
        steps=steps,
        batch_size=batch,
        lr=2e-3 if small else 1e-3,
        average=0.998,
        evaluate_every=max(1, steps // 20),
    )


def named_recipe(recipe: Recipe, name: str) -> Recipe:
    """Adversarial networks learn in turns with little momentum; others keep a moving average of their weights.

    Diffusion has the network of flow matching.
    """
    if name == "models.Diffusion" and isinstance(recipe.model, Spec):
        shared = {key: recipe.model.arguments[key] for key in ("shape", "classes", "net", "guidance")}
        return replace(recipe, model=Diffusion.spec(**shared), lr=2e-3, average=0.998)
    if name != "models.DCGAN":
        return replace(recipe, lr=1e-3 if name == "models.RealNVP" else 2e-3, average=0.998)
    return replace(
        recipe,
        learner=Adversarial.spec(),
        optimizer=FusedAdamW.spec(weight_decay=0.0, betas=[0.5, 0.999]),
        schedule=Spec("optim.constant", {}),
        lr=5e-4,
    )


def report_facts(run: Any, plan: Any) -> dict[str, Any]:
    """A sheet of samples, the nearest training images beside some of them, and whether a classifier names their classes."""
    task, count = plan.task, SHOWN
    x, labels = task.rows(plan.view(run.model, "train"), COMPARED)
    unseen, truth = task.rows(plan.view(run.model, "test"), COMPARED)
    codes = None if task.labels is None else torch.arange(count) % len(task.labels) + 1
    fake = drawn(run.model, count, codes)
    share, nearest = memorised(fake.flatten(1), x.flatten(1), unseen.flatten(1))
    images, sources = run.encoder.decode(fake), run.encoder.decode(x[nearest[:PAIRS]])
    facts: dict[str, Any] = {
        "sheet": data_uri(sheet(enlarged(images))),
        "pairs": data_uri(sheet([*enlarged(images[:PAIRS]), *enlarged(sources)], columns=min(PAIRS, count))),
        "memorised": share,
        "labels": task.labels,
    }
    if labels is not None and truth is not None and codes is not None:
        facts["recognised"] = float((neighbours(x, labels, fake) == codes).float().mean())
        facts["recognised_real"] = float((neighbours(x, labels, unseen) == truth).float().mean())
    return {"noun": "images", "generated": facts}


def neighbours(x: Tensor, labels: Tensor, new: Tensor) -> Tensor:
    """The most frequent label among the nearest training images."""
    near = torch.cdist(new.flatten(1), x.flatten(1)).topk(min(NEIGHBOURS, len(x)), largest=False).indices
    return labels[near].mode(1).values


def enlarged(images: np.ndarray) -> np.ndarray:
    """Images with every pixel repeated until sides have about 48 pixels."""
    times = max(1, round(48 / max(images.shape[1:3])))
    return images.repeat(times, 1).repeat(times, 2)


def data_uri(image: np.ndarray) -> str:
    """A PNG as a data URI."""
    return "data:image/png;base64," + base64.b64encode(png(image)).decode()
