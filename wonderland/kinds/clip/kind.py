"""The kind clip: convolutions over time and space for short videos with a class each."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.core.recipe import Recipe
from wonderland.data.arrays import class_task
from wonderland.data.dataset import stop_if_strict
from wonderland.data.folders import natural
from wonderland.data.source import Glimpse
from wonderland.kinds.clip.clips import Clips, clips_of, is_whole, read_clips
from wonderland.kinds.clip.encoder import NOTHING, ClipEncoder
from wonderland.kinds.clip.options import Options as ClipOptions
from wonderland.kinds.kind import Claim, Kind, simple_recipe
from wonderland.models import ClipConvNet
from wonderland.tasks import Task


class ClipKind(Kind):
    """Folders of frames, GIF files or videos, in class folders."""

    name = "clip"
    Options = ClipOptions
    models = ("models.ClipConvNet", "models.ClipSequenceNet")
    typical = {"outputs": 10, "channels": 1}  # noqa: RUF012

    def claims(self, glimpse: Glimpse, asked: Mapping[str, Any]) -> Claim | None:
        path = glimpse.path
        if path is None or not path.is_dir() or asked.get("task") in ("detection", "segmentation"):
            return None
        bundle = read_clips(path)
        if not bundle.members:
            return None
        if sum(is_whole(member.name) for member in bundle.members) > 0.5 * len(bundle.members):
            return Claim(0.98, "it holds GIF files or videos")
        clips = clips_of(bundle)
        framed = all(name.count("/") == 1 for name in clips) and not bundle.foreign
        many = len(bundle.members) >= 3 * len(clips) and len(clips) >= 2 * len(bundle.labels) > 2
        return Claim(0.9, "it has a folder of frames for each clip") if framed and many else None

    def open(self, glimpse: Glimpse, options: ClipOptions, test: Glimpse | None = None) -> Clips:
        self.refuse_test(test, "clips are split by themselves")
        path = glimpse.path
        if path is None or not path.is_dir():
            raise WonderlandError(f"{glimpse.name} is not a folder: clips come as a folder of class folders.")
        bundle = read_clips(path)
        if not bundle.members:
            raise WonderlandError(NOTHING.format(path))
        clips = {name: members for name, members in clips_of(bundle).items() if "/" in name}
        if not clips:
            raise WonderlandError(
                f"{path} has no class folders with clips: make one folder for each class, and one in it for each clip."
            )
        empty = empty_folders(path)
        if empty and not options.skip_broken:
            raise WonderlandError(
                f"{empty[0]} is a clip without frames. Remove it, or leave out what cannot be read with skip_broken (--skip-broken)."
            )
        dataset, names = Clips.read(
            bundle, clips, frames=options.frames, side=options.size, channels=None, skip_broken=options.skip_broken
        )
        labels = [name.split("/")[0] for name in names]
        dataset.classes = sorted(set(labels), key=natural)
        dataset.task = class_task(dataset.classes, None, f"{path} holds clips of")
        dataset.y = np.array([dataset.classes.index(label) for label in labels], np.int64)
        stop_if_strict(dataset.findings, options.strict)
        return dataset

    def encoder(self, dataset: Clips, parts: Any) -> ClipEncoder:
        return ClipEncoder.fit(dataset, parts.train)

    def read_encoder(self, saved: Any, tensors: dict[str, Tensor]) -> ClipEncoder:
        return ClipEncoder.from_json(saved)

    def recipe(self, dataset: Clips, parts: Any, encoder: ClipEncoder, task: Task) -> Recipe:
        rows = len(parts.train)
        model = ClipConvNet.spec(outputs=task.outputs, **encoder.arguments())
        epochs = int(np.clip(15_000 // rows, 10, 60))
        recipe = simple_recipe(model, task, rows, epochs=epochs, lr=3e-3)
        batch = min(32, recipe.batch_size)
        epoch = max(1, rows // batch)
        return replace(
            recipe, batch_size=batch, steps=epoch * epochs, evaluate_every=max(1, epoch * epochs // 10), patience=6
        )

    def facts(self, run: Any, plan: Any) -> dict[str, Any]:
        return {"noun": "clips"}


def empty_folders(root: Path) -> list[Path]:
    """Clip folders, two levels down, with nothing in them."""
    return [clip for label in sorted(root.iterdir()) if label.is_dir() and not label.is_symlink() for clip in sorted(label.iterdir())
            if clip.is_dir() and not clip.name.startswith(".") and not any(clip.iterdir())]  # fmt: skip


KIND = ClipKind()
