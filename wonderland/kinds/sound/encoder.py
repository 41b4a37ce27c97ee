"""From recordings to one tensor: resampled, cut or padded with NaN, as log-mel spectra or as waves."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import Spec, WonderlandError, nearest
from wonderland.data.bundle import Bundle, Member, is_zip, read_bundle, read_names
from wonderland.data.columns import read_column
from wonderland.data.dataset import MULTILABEL, TASKS, Dataset, Finding, counted
from wonderland.data.encoder import Field, RowEncoder
from wonderland.data.examples import Examples, RowExamples
from wonderland.data.folders import is_table
from wonderland.data.labels import coded, pieces
from wonderland.data.ports import Preprocessing, Trial
from wonderland.data.recording import SUFFIXES, Recording, read_recording
from wonderland.data.source import Glimpse
from wonderland.kinds.sound.opening import members_of, path_column
from wonderland.kinds.sound.options import Options
from wonderland.kinds.sound.program import SoundProgram, sound_trials
from wonderland.kinds.sound.sounds import TRANSCRIPTION, Sounds
from wonderland.kinds.sound.spectrogram import HOP, frame_sizes, mel_levels
from wonderland.ops.sound import resample

FORMS = ("mel", "wave")
MOST_IN_MEMORY = 1 << 30
USUAL_RATE, USUAL_SECONDS = 16_000, 10.0
FITTED_ON = 2000  # recordings that mean and deviation are taken from


@dataclass
class SoundEncoder(RowEncoder):
    """What was learned from the training recordings: their rate, the longest piece that is read, and mean and deviation of each mel band.

    `encode` gives (n, frames, mels) of standardised decibels below the loudest of each recording, or with the form "wave"
    (n, samples, 1) of waves with a deviation of 1; NaN after the end of a recording.
    """

    rate: int
    longest: int  # samples of the longest piece
    mels: int
    mean: list[float]
    deviation: list[float]
    classes: list[str] | None = None
    task: str | None = None
    target: str | None = None
    names: str | None = None
    form: str = "mel"
    characters: str | None = None  # of the training texts, where texts are learned
    noticed: list[Finding] = field(default_factory=list, compare=False)

    kind = "sound"

    @classmethod
    def fit(cls, dataset: Sounds, rows: np.ndarray) -> "SoundEncoder":
        options = dataset.options or Options()
        rates = np.array(dataset.rates)[rows]
        values, counts = np.unique(rates, return_counts=True)
        rate = options.rate or min(int(values[counts.argmax()]), USUAL_RATE)
        seconds = dataset.seconds[rows]
        longest = options.seconds or min(float(np.quantile(seconds, 0.99)) * 1.1, float(seconds.max()), USUAL_SECONDS)
        mels = 40 if rate <= 8000 else 64
        target = _target_of(dataset)
        encoder = cls(
            rate, max(round(longest * rate), round(HOP * rate)), mels, [0.0] * mels, [1.0] * mels, dataset.classes, dataset.task, target,
            options.file_names,
        )  # fmt: skip
        chosen = rows[np.linspace(0, len(rows) - 1, min(len(rows), FITTED_ON)).astype(np.int64)]
        total, squares, frames = np.zeros(mels), np.zeros(mels), 0
        for row in chosen:
            levels = encoder.levels(dataset.recording(int(row))).double().numpy()
            total, squares, frames = total + levels.sum(0), squares + np.square(levels).sum(0), frames + len(levels)
        mean = total / frames
        deviation = np.sqrt(np.maximum(squares / frames - mean**2, 1.0))  # at least a decibel
        if dataset.texts is not None:
            encoder.characters = "".join(sorted(set("".join(dataset.texts[row] for row in rows))))
        return replace(
            encoder, mean=[round(float(v), 4) for v in mean], deviation=[round(float(v), 4) for v in deviation]
        )

    def for_model(self, model: Any) -> "SoundEncoder":
        """The encoder in the form that a model reads: spectra, unless it says that it reads waves."""
        part = model.part if isinstance(model, Spec) else model
        form = getattr(part, "reads", "mel")
        return replace(self, form=form if form in FORMS else "mel")

    @property
    def frames(self) -> int:
        """The largest number of frames of a spectrogram."""
        return 1 + self.longest // frame_sizes(self.rate)[1]

    @property
    def shape(self) -> tuple[int, int]:
        return (self.frames, self.mels) if self.form == "mel" else (self.longest, 1)

    def arguments(self) -> dict[str, Any]:
        """For models of signals: the channels of a step and the largest number of steps."""
        return {"channels": self.shape[1], "length": self.shape[0]}

    def describe(self) -> str:
        return (
            f"Recordings are read at {self.rate:,} samples a second, up to {self.longest / self.rate:.3g} seconds, as "
            f"{f'log-mel spectra of {self.mels} bands' if self.form == 'mel' else 'waves'}. "
        )

    def wave(self, recording: Recording) -> Tensor:
        """The middle of a recording, at the rate of training (n,)."""
        old = recording.rate
        allowed = -(-self.longest * old // self.rate)
        wave = torch.from_numpy(np.ascontiguousarray(recording.mono()))
        begin = max(0, (len(wave) - allowed) // 2)
        return resample(wave[begin : begin + allowed], old, self.rate)[: self.longest]

    def levels(self, recording: Recording) -> Tensor:
        """Decibels of the mel bands (frames, mels)."""
        return mel_levels(self.wave(recording), self.rate, self.mels)[: self.frames]

    def encoded(self, recording: Recording) -> Tensor:
        """One recording in the form of this encoder, with NaN after its end."""
        if self.form == "mel":
            values = (self.levels(recording) - torch.tensor(self.mean)) / torch.tensor(self.deviation)
        else:
            wave = self.wave(recording)[:, None]
            values = (wave - wave.mean()) / wave.std(correction=0).clamp_min(1e-5)
        whole = values.new_full(self.shape, torch.nan)
        whole[: len(values)] = values
        return whole

    def in_memory(self, dataset: Any) -> bool:
        return len(dataset) * self.shape[0] * self.shape[1] * 4 <= MOST_IN_MEMORY

    def encode(self, dataset: Any, rows: np.ndarray | None = None) -> Tensor:
        if not isinstance(dataset, Sounds):
            name = dataset.name if isinstance(dataset, Dataset) else "the data"
            raise WonderlandError(f"This model reads recordings, and {name} is not made of sound.")
        rows = np.arange(len(dataset)) if rows is None else np.asarray(rows, np.int64)
        longer = int((dataset.seconds[rows] > self.longest / self.rate + 1e-6).sum())
        self.noticed = []
        if longer:
            text = f"{counted(longer, 'recording is', 'recordings are')} longer than {self.longest / self.rate:.3g} seconds; the middle is read."
            self.noticed.append(Finding("size", dataset.name, longer, text))
        encoded = torch.empty(len(rows), *self.shape)
        for place, row in enumerate(rows):
            encoded[place] = self.encoded(dataset.recording(int(row)))
        return encoded

    def examples(self, dataset: Any) -> Examples:
        if self.characters is None:
            return super().examples(dataset)
        x = self.encode(dataset) if self.in_memory(dataset) else lambda rows: self.encode(dataset, rows)
        return SpokenExamples(x, dataset.texts, self.tokens(dataset.texts), len(dataset))

    def tokens(self, texts: list[str] | None) -> np.ndarray | None:
        """Texts as numbers of their characters from 1 (n, longest), -1 after the end; characters of no training text are left out."""
        if texts is None:
            return None
        place = {character: code for code, character in enumerate(self.characters or "", 1)}
        rows = [[place[character] for character in text if character in place] for text in texts]
        tokens = np.full((len(rows), max(1, *map(len, rows)) if rows else 1), -1, np.int64)
        for row, codes in enumerate(rows):
            tokens[row, : len(codes)] = codes
        return tokens

    def schema(self) -> list[Field]:
        return [Field("sound", "sound", unit="WAV, FLAC or Ogg", shape=(None,))]

    def collect(self, rows: Sequence[Mapping[str, Any]]) -> Sounds:
        """Recordings given as the bytes of files."""
        sounds = Sounds([], name="recordings", origin={"memory": "recordings"}, findings=[])
        for row in rows:
            recording = read_recording(row["sound"], "The recording")
            sounds.add(None, recording, "", keep=True)
        sounds.finish()
        return sounds

    trial_words = "recordings of three lengths, in batches of 1, 5 and 12"

    def module(self, *, double: bool = False) -> Preprocessing | str:
        return SoundProgram(self)

    def trials(self, *, double: bool = False) -> Iterator[Trial]:
        return sound_trials(self)

    def traits(self, dataset: Sounds, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Length, level and the centre of the spectrum."""
        measured = []
        for row in rows:
            recording = dataset.recording(int(row))
            power = 10 ** (self.levels(recording).double().numpy() / 10)
            share = power.sum(0) / power.sum()
            wave = recording.mono()
            measured.append(
                (recording.seconds, float(np.sqrt(np.mean(np.square(wave)))), float(share @ np.arange(self.mels)))
            )
        table = np.array(measured)
        return {name: table[:, i] for i, name in enumerate(("seconds", "level", "centre of the mel bands"))}

    def open(self, source: Any, *, need_target: bool = False) -> Sounds:
        """New recordings: a folder (of classes, or flat), a zip file, one file, a table of paths, a list of files, or (arrays, rate)."""
        if isinstance(source, Sounds):
            return self._compared(source, need_target)
        if isinstance(source, tuple) and len(source) == 2 and isinstance(source[1], int):
            return self._compared(Sounds.of_arrays(source[0], source[1]), need_target)
        if isinstance(source, list) and source and all(isinstance(item, str | os.PathLike) for item in source):
            return self._open_members(
                [Member(Path(item).name, Path(item)) for item in source], Path("files"), need_target
            )
        if not isinstance(source, str | os.PathLike):
            raise WonderlandError(
                "This model reads recordings: give a folder, a zip file, files, a table of paths, or (arrays, rate)."
            )
        path = Path(source)
        if not path.exists():
            raise WonderlandError(f"{path} is missing.")
        if path.is_dir() or is_zip(path):
            return self._open_bundle(read_bundle(path, SUFFIXES), need_target)
        if is_table(path):
            return self._open_table(path, need_target)
        return self._open_members([Member(path.name, path)], path, need_target)

    def _open_members(self, members: list[Member], path: Path, need_target: bool) -> Sounds:
        sounds, _ = Sounds.read(
            members, name=path.name, origin={"path": str(path.absolute())}, findings=[], skip_broken=False
        )
        return self._compared(sounds, need_target)

    def _open_bundle(self, bundle: Bundle, need_target: bool) -> Sounds:
        if not bundle.members:
            raise WonderlandError(f"{bundle.root} holds no recordings (WAV, FLAC, Ogg).")
        if (
            need_target
            and self.names is not None
            and self.target is not None
            and not set(bundle.labels) & set(self.classes or ())
        ):
            columns = read_names([member.name for member in bundle.members], self.names)
            sounds = self._open_members(bundle.members, bundle.root, False)
            return self._answered(sounds, np.array(columns[self.target], object))
        if need_target and not bundle.labels:
            raise WonderlandError(
                f"{bundle.root} has no class folders to compare with: make one folder for each class."
            )
        members = [member for member in bundle.members if member.label or not need_target]
        sounds = self._open_members(members, bundle.root, False)
        known = bundle.labels and self.task != MULTILABEL and set(bundle.labels) <= set(self.classes or ())
        if need_target or (known and len(members) == sum(bool(member.label) for member in members)):
            sounds = self._answered(sounds, np.array([member.label for member in members], object))
        return sounds

    def _open_table(self, path: Path, need_target: bool) -> Sounds:
        frame = Glimpse(path).frame
        column = None if frame is None else path_column(frame, path.parent)
        if frame is None or column is None:
            raise WonderlandError(f"This model was trained on recordings; {path} is a table without paths to any.")
        sounds = self._open_members(members_of(path, frame, column), path, False)
        sounds.frame = frame.reset_index(drop=True)
        if self.characters is not None:
            if self.target in frame.columns:
                sounds.texts = [
                    " ".join(str(cell).split()) if isinstance(cell, str) else "" for cell in frame[self.target]
                ]
                sounds.task = self.task
            elif need_target:
                raise WonderlandError(f"{path} has no column {self.target!r} of texts to compare with.")
        elif self.task == MULTILABEL and self.classes and set(self.classes) <= set(map(str, frame.columns)):
            sounds.y, sounds.classes, sounds.task = frame[self.classes].to_numpy(np.float64), self.classes, self.task
        elif self.target in frame.columns:
            sounds = self._answered(sounds, frame[self.target].to_numpy(object))
        elif need_target:
            raise WonderlandError(f"{path} has no column {self.target!r} to compare with.")
        return sounds

    def _answered(self, sounds: Sounds, answers: np.ndarray) -> Sounds:
        """The recordings with the classes, labels or values that were given for them."""
        sounds.classes, sounds.task = self.classes, self.task
        if self.task == MULTILABEL:
            assert self.classes is not None
            sounds.y = coded(pieces(answers, self.classes), self.classes).astype(np.float64)
            return sounds
        import pandas as pd

        if self.classes is None:
            column = read_column(self.target or "target", pd.Series(answers))
            if column.levels is not None or column.missing:
                raise WonderlandError("This model predicts values: the targets to compare with must be finite numbers.")
            sounds.y = np.array(column.values, np.float64)
            return sounds
        texts = [str(answer) for answer in answers]
        for text in texts:
            if text not in self.classes:
                raise WonderlandError(
                    f"{sounds.name} has the class {text!r}, which this model does not know.{nearest(text, self.classes)}"
                )
        sounds.y = np.array([self.classes.index(text) for text in texts], np.int64)
        return sounds

    def _compared(self, sounds: Sounds, need_target: bool) -> Sounds:
        if self.characters is not None:
            if need_target and sounds.texts is None:
                raise WonderlandError(f"{sounds.name} has no texts to compare with: give a table of paths and texts.")
            return sounds
        if need_target and sounds.y is None:
            raise WonderlandError(
                f"{sounds.name} has no classes to compare with: give a folder with one folder for each class."
            )
        if (
            sounds.y is not None
            and sounds.classes != self.classes
            and sounds.classes is not None
            and sounds.y.ndim == 1
        ):
            return self._answered(sounds, np.array([sounds.classes[code] for code in sounds.y], object))
        return sounds

    def to_json(self) -> dict[str, Any]:
        names = (
            "rate",
            "longest",
            "mels",
            "mean",
            "deviation",
            "classes",
            "task",
            "target",
            "names",
            "form",
            "characters",
        )
        return {"kind": self.kind} | {name: getattr(self, name) for name in names}

    @classmethod
    def from_json(cls, saved: Any) -> "SoundEncoder":
        """Read what `to_json` gave; content that cannot be right is refused in a sentence."""
        if not isinstance(saved, dict) or saved.get("kind") != cls.kind:
            raise WonderlandError("The preprocessing of this model is not for sound: the file is damaged or not ours.")
        checks = {
            "rate": lambda v: _whole(v, 100, 768_000),
            "longest": lambda v: _whole(v, 1, 1 << 28),
            "mels": lambda v: _whole(v, 1, 1024),
            "mean": lambda v: _numbers(v, saved["mels"]),
            "deviation": lambda v: _numbers(v, saved["mels"]) and min(v) > 0,
            "classes": lambda v: v is None or (_texts(v) and 2 <= len(v) == len(set(v)) <= 100_000),
            "task": lambda v: v is None or v in (*TASKS, MULTILABEL, TRANSCRIPTION),
            "target": lambda v: v is None or isinstance(v, str),
            "names": lambda v: v is None or isinstance(v, str),
            "form": lambda v: v in FORMS,
            "characters": lambda v: v is None or (isinstance(v, str) and 1 <= len(v) == len(set(v)) <= 100_000),
        }
        for name, check in checks.items():
            if name not in saved or not check(saved[name]):
                shown = repr(saved.get(name))[:60]
                raise WonderlandError(
                    f"The preprocessing of this model has {name} = {shown}, which cannot be: the file is damaged or not ours."
                )
        return cls(**{name: saved[name] for name in checks})


def _target_of(dataset: Sounds) -> str | None:
    """The column that the target came from: the one whose values name the classes, or the one asked for."""
    asked = None if dataset.options is None else dataset.options.target
    if asked is not None or (dataset.y is None and dataset.texts is None):
        return asked
    named = [finding.subject for finding in dataset.findings if finding.kind == "target"]
    return named[-1] if named else None


def _whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _numbers(values: Any, count: int) -> bool:
    fits = isinstance(values, list) and len(values) == count
    return fits and all(isinstance(v, int | float) and not isinstance(v, bool) and abs(v) < 1e30 for v in values)


def _texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


class SpokenExamples(RowExamples):
    """Encoded recordings, with the tokens of what is said in them and the texts themselves."""

    def __init__(self, x: Any, texts: list[str] | None, tokens: np.ndarray | None, rows: int):
        super().__init__(x, tokens, rows)
        self.texts = texts
