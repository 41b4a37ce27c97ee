"""A checkpoint of images on disk as the start of a fit: its weights, how it reads pixels, and which of its weights learn."""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from wonderland import checkpoints
from wonderland.checkpoints.config_file import check_folder
from wonderland.checkpoints.outlines import Outline
from wonderland.core import Spec, WonderlandError, inside, read_json
from wonderland.train.finetune import make_trainable
from wonderland.train.start import ADAPTERS, Start

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]  # of ImageNet, where a folder says nothing
WHERE = ("*blocks.*", "*stages.*")


@dataclass(frozen=True)
class ImageStart(Start):
    """A folder of transformers with a network of images, and the way it is tuned: "full", "head" or "lora"."""

    tokenizer: Any = None

    @staticmethod
    def of(options: Any) -> "ImageStart | None":
        """The start that the options of images name; None for random weights."""
        if options.start is None:
            if options.method is not None:
                raise WonderlandError("method says how a checkpoint is tuned: name the checkpoint with start (--from).")
            return None
        folder = Path(options.start).expanduser().absolute()
        check_folder(folder)
        start = ImageStart(folder, options.method or "full")
        if start.outline.vocab:
            raise WonderlandError(f"The checkpoint in {folder} reads text, not images.")
        return start

    @functools.cached_property
    def outline(self) -> Outline:
        """What the folder says of its model, without its weights."""
        return checkpoints.outline(self.folder)

    @functools.cached_property
    def pixels(self) -> dict[str, Any]:
        """What preprocessor_config.json says of pixels; empty where it is missing."""
        if not (self.folder / "preprocessor_config.json").is_file():
            return {}
        read = read_json(inside(self.folder, "preprocessor_config.json"), strict=False)
        return read if isinstance(read, dict) else {}

    @property
    def side(self) -> int:
        """The side of the images that the network was trained on."""
        size = self.pixels.get("size", self.outline.config.get("image_size", 224))
        if isinstance(size, dict):
            size = size.get("height", size.get("shortest_edge"))
        return size if isinstance(size, int) and not isinstance(size, bool) and 8 <= size <= 2048 else 224

    def spec(self, classes: int) -> Spec:
        """The network under a head for classes, with the normalisation it was trained with."""
        channels = self.outline.spec.arguments.get("channels", 3)
        usual = (MEAN, STD) if channels == 3 else ([0.5] * channels, [0.5] * channels)
        values = [
            self._numbers(self.pixels.get(name), channels, least) or default
            for name, least, default in zip(("image_mean", "image_std"), (-1e6, 1e-6), usual, strict=True)
        ]
        return self.outline.classifier(classes).spec.changed(mean=values[0], std=values[1])

    def _numbers(self, value: Any, channels: int, least: float) -> list[float] | None:
        if not isinstance(value, list) or len(value) != channels:
            return None
        fine = all(
            isinstance(item, int | float) and not isinstance(item, bool) and least <= item < 1e6 for item in value
        )
        return [float(item) for item in value] if fine else None

    def load_classifier(self, classes: int) -> Any:
        """The network under a head for classes, with what the method trains requiring gradients."""
        loaded = checkpoints.load_classifier(self.folder, classes)
        model = self.spec(classes).build()
        model.load_state_dict(loaded.state_dict(), strict=False)
        if self.method in ADAPTERS:
            if not any(isinstance(module, nn.Linear) and name != "head" for name, module in model.named_modules()):
                raise WonderlandError(
                    f"{self.method} adapts linear layers, and the checkpoint in {self.folder} has convolutions: take method full or head."
                )
            return make_trainable(model, ADAPTERS[self.method], WHERE, also=("head*",))
        return make_trainable(model, self.method)
