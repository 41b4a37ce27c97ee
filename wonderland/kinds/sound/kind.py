"""The kind sound: a convolutional network on log-mel spectra, with recordings that are moved, stretched and masked at random."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import Spec, WonderlandError, parse_spec
from wonderland.core.recipe import Recipe
from wonderland.data.batches import random_numbers
from wonderland.data.bundle import is_zip, read_bundle
from wonderland.data.recording import SUFFIXES
from wonderland.data.sound_augment import MelAugment, WaveAugment
from wonderland.data.source import Glimpse
from wonderland.kinds.kind import Claim, Kind, simple_recipe
from wonderland.kinds.sound.encoder import SoundEncoder
from wonderland.kinds.sound.opening import open_bundle, open_table, path_column
from wonderland.kinds.sound.options import Options as SoundOptions
from wonderland.kinds.sound.sounds import Sounds
from wonderland.models import MelConvNet, Ngram, Recogniser
from wonderland.tasks import Task, Transcription

SHOWN = 8  # recordings of the report
ORDER = 4  # of the n-grams of characters beside a recogniser


class SoundKind(Kind):
    """Recordings in class folders, in a zip file, or in a table of paths."""

    name = "sound"
    Options = SoundOptions
    models = ("models.MelConvNet", "models.WaveConvNet", "models.SpectrogramTransformer", "models.Recogniser")
    typical = {"outputs": 10, "channels": 40, "length": 100}  # noqa: RUF012

    def claims(self, glimpse: Glimpse, asked: Mapping[str, Any]) -> Claim | None:
        path = glimpse.path
        if path is None:
            return None
        if path.is_dir() or is_zip(path):
            bundle = read_bundle(path, SUFFIXES)
            rest = sum(count for suffix, count in bundle.foreign.items() if suffix not in (".txt", ".csv", ".md", ""))
            return Claim(0.98, "it holds recordings") if len(bundle.members) > rest else None
        if glimpse.suffix in SUFFIXES:
            return Claim(0.96, "it is a recording")
        if glimpse.plain_text is None and glimpse.frame is not None:
            column = path_column(glimpse.frame, path.parent)
            return None if column is None else Claim(0.99, f"column {column!r} names recordings")
        return None

    def open(self, glimpse: Glimpse, options: SoundOptions, test: Glimpse | None = None) -> Sounds:
        self.refuse_test(test, "recordings are split by themselves, by group (--group) or by a column (--split)")
        path = glimpse.path
        if path is None:
            raise WonderlandError(f"{glimpse.name} is not a folder, a zip file or a table of recordings.")
        if path.is_dir() or is_zip(path):
            return open_bundle(path, options)
        if glimpse.suffix in SUFFIXES:
            raise WonderlandError(
                f"{path} is one recording, and there is nothing to compare it with: give a folder with one folder for each class."
            )
        contents = glimpse.contents
        if contents.frame is None:
            raise WonderlandError(f"{path} is not a table of recordings.")
        return open_table(path, contents.frame, options, contents.findings)

    def encoder(self, dataset: Sounds, parts: Any) -> SoundEncoder:
        return SoundEncoder.fit(dataset, parts.train)

    def read_encoder(self, saved: Any, tensors: dict[str, Tensor]) -> SoundEncoder:
        return SoundEncoder.from_json(saved)

    def task(self, dataset: Sounds, parts: Any, encoder: SoundEncoder) -> Task:
        if encoder.characters is not None:
            return Transcription(encoder.characters)
        return super().task(dataset, parts, encoder)

    def recipe(self, dataset: Sounds, parts: Any, encoder: SoundEncoder, task: Task) -> Recipe:
        rows = len(parts.train)
        if encoder.characters is not None:
            return self._transcription(dataset, parts, encoder, task)
        model = MelConvNet.spec(outputs=task.outputs, channels=encoder.mels)
        epochs = int(np.clip(45_000 // rows, 12, 60))
        recipe = simple_recipe(model, task, rows, epochs=epochs, lr=3e-3)
        batch = min(recipe.batch_size, 64)
        epoch = max(1, rows // batch)
        return replace(
            recipe, batch_size=batch, steps=epoch * epochs, evaluate_every=max(1, epoch * epochs // 10), patience=6,
            augment=asked_augment(dataset.options.augment) or MelAugment().as_spec(),
        )  # fmt: skip

    def _transcription(self, dataset: Sounds, parts: Any, encoder: SoundEncoder, task: Task) -> Recipe:
        """A recogniser with a language model of the training texts."""
        rows = len(parts.train)
        counted = language_of(dataset, parts, encoder)
        language = Ngram.spec(vocab=task.outputs, order=ORDER, smoothing="discount", entries=counted.entries)
        model = Recogniser.spec(outputs=task.outputs, channels=encoder.mels, language=language)
        epochs = int(np.clip(50_000 // rows, 15, 100))
        recipe = simple_recipe(model, task, rows, epochs=epochs, lr=2e-3)
        epoch = max(1, rows // min(recipe.batch_size, 32))
        return replace(
            recipe, batch_size=min(recipe.batch_size, 32), steps=epoch * epochs, evaluate_every=max(1, epoch * epochs // 12), patience=8,
            augment=asked_augment(dataset.options.augment) or MelAugment(times=0.05, bands=0.1).as_spec(),
        )  # fmt: skip

    def prepare(self, model: Any, plan: Any) -> Any:
        """The counts of the language model of the training texts."""
        if getattr(model, "language", None) is not None and plan.encoder.characters is not None:
            counted = language_of(plan.dataset, plan.parts, plan.encoder)
            model.language.load_state_dict(counted.state_dict())
        return model

    def named_recipe(self, recipe: Recipe, name: str, dataset: Any, parts: Any) -> Recipe:
        """Smaller steps for networks without batch norm, and waves that are changed as waves."""
        short = name.rpartition(".")[2]
        if short == "WaveConvNet" and dataset.options.augment is None:
            return replace(recipe, augment=WaveAugment().as_spec(), lr=2e-3)
        if dataset.texts is not None and name and short != "Recogniser":
            raise WonderlandError(f"{short} does not write texts: take Recogniser, or learn classes or numbers.")
        return replace(recipe, lr=1e-3) if short == "SpectrogramTransformer" else recipe

    def check_recipe(self, dataset: Any, parts: Any, encoder: Any, recipe: Recipe, asked: Mapping[str, Any]) -> None:
        """An augmentation of spectra is not for waves, nor the other way round."""
        if recipe.augment is None:
            return
        wanted = "WaveAugment" if encoder.form == "wave" else "MelAugment"
        if recipe.augment.name.rpartition(".")[2] != wanted:
            raise WonderlandError(
                f"This model reads {encoder.form}s: change them by {wanted}(...), not by {recipe.augment.name}."
            )

    def facts(self, run: Any, plan: Any) -> dict[str, Any]:
        """Recordings to look at and to listen to, and what augmentation makes of some."""
        if plan.recipe.augment is None or plan.encoder.form != "mel":
            return {"noun": "recordings", "sounds": shown_sounds(plan)}
        return {"noun": "recordings", "sounds": shown_sounds(plan), "augmented": augmented(plan)}


def asked_augment(text: str | None) -> Spec | None:
    """The augmentation that a text names; None for the default."""
    if text is None:
        return None
    spec = parse_spec(text, folders=("data",))
    if spec.part not in (MelAugment, WaveAugment):
        raise WonderlandError(f"{spec.name} does not change sound: take MelAugment(...) or WaveAugment(...).")
    spec.build()
    return spec


def language_of(dataset: Sounds, parts: Any, encoder: SoundEncoder) -> Ngram:
    """n-grams of the characters of the training texts, which begin after the blank."""
    assert dataset.texts is not None
    tokens = encoder.tokens([dataset.texts[row] for row in parts.train])
    assert tokens is not None
    rows = [torch.from_numpy(row[row > 0]) for row in tokens]
    return Ngram.count(rows, len(encoder.characters or "") + 1, ORDER, smoothing="discount")


def shown_sounds(plan: Any) -> list[dict[str, Any]]:
    """Some training recordings, one of each class in turn."""
    dataset, rows = plan.dataset, np.asarray(plan.parts.train)
    if dataset.classes is not None and dataset.y.ndim == 1:
        first = [rows[dataset.y[rows] == code][:1] for code in range(min(SHOWN, len(dataset.classes)))]
        rows = np.concatenate(first)
    return [dataset.shown(int(row)) | {"true": str(dataset.answer(int(row)))} for row in rows[:SHOWN]]


def augmented(plan: Any, rows: int = 4, versions: int = 5) -> list[list[str]]:
    """Some training spectra, each followed by what it becomes in the first epochs."""
    chosen, augment = np.asarray(plan.parts.train[:rows]), plan.recipe.augment.build()
    plain = plan.examples.inputs(chosen)
    changed = [augment(plain, random_numbers(augment, plan.seed, epoch, chosen)) for epoch in range(versions)]
    return [[_picture(version[place]) for version in (plain, *changed)] for place in range(len(chosen))]


def _picture(levels: Tensor) -> str:
    from wonderland.kinds.image.images import thumbnail

    shade = ((levels + 2.5) / 5).nan_to_num(0.0).clamp(0, 1) * 255
    return thumbnail(np.ascontiguousarray(shade.to(torch.uint8).numpy().T[::-1]))


KIND = SoundKind()
