"""Sounds: recordings with the columns that go with them, kept in memory as far as they fit."""

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch

from wonderland.core import WonderlandError
from wonderland.data.bundle import Member
from wonderland.data.dataset import Dataset, Finding, counted
from wonderland.data.recording import Recording, read_recording, write_wave
from wonderland.kinds.sound.spectrogram import spectrogram_picture
from wonderland.ops.sound import resample

TRANSCRIPTION = "transcription"
MOST_IN_MEMORY = 1 << 30
LISTENED_RATE, LISTENED_SECONDS = 8000, 3.0  # of recordings inside a page


class Sounds(Dataset):
    """Recordings, and what is known of each: a class, a value or a text, and a group.

    >>> sounds = Sounds.of_arrays([np.zeros(800), np.ones(400)], 8000)
    >>> len(sounds), sounds.recording(1).seconds
    (2, 0.05)
    """

    kind = "sound"
    noun = "recordings"

    def __init__(self, members: Sequence[Member | None], *, name: str, origin: dict[str, Any], findings: list[Finding]):
        self.members, self.name, self.origin, self.findings = list(members), name, origin, findings
        self.rates: list[int] = []
        self.frames: list[int] = []
        self.channels: list[int] = []
        self.digests: list[str] = []
        self.frame = pd.DataFrame(index=range(len(self.members)))
        self.task = self.classes = self.y = None
        self.texts: list[str] | None = None  # what is said in each recording
        self.fingerprint = ""
        self._kept: dict[int, Recording] = {}

    @classmethod
    def read(
        cls, members: Sequence[Member], *, name: str, origin: dict[str, Any], findings: list[Finding], skip_broken: bool
    ) -> tuple["Sounds", np.ndarray]:
        """Read every file once; with `skip_broken`, those that cannot be read are left out. Also the places of those that stay."""
        sounds, held, broken, kept = cls([], name=name, origin=origin, findings=findings), 0, [], []
        for place, member in enumerate(members):
            try:
                data = member.read("sound_bytes")
                recording = read_recording(data, member)
            except WonderlandError as error:
                if not skip_broken:
                    raise WonderlandError(
                        f"{error} To leave out what cannot be read, give skip_broken (--skip-broken)."
                    ) from error
                broken.append(member.name)
                continue
            held += recording.samples.nbytes // recording.samples.shape[1]
            sounds.add(member, recording, hashlib.sha256(data).hexdigest(), keep=held <= MOST_IN_MEMORY)
            kept.append(place)
        if not kept:
            raise WonderlandError(
                f"None of the {counted(len(members), 'recording', 'recordings')} of {name} can be read."
            )
        if broken:
            shown = ", ".join(broken[:10]) + (f" and {len(broken) - 10} more" if len(broken) > 10 else "")
            text = f"{counted(len(broken), 'recording cannot be read and is', 'recordings cannot be read and are')} left out: {shown}."
            sounds.findings.append(Finding("broken", name, len(broken), text))
        sounds.finish()
        return sounds, np.array(kept, np.int64)

    @classmethod
    def of_arrays(cls, waves: Sequence[Any], rate: int, *, name: str = "arrays") -> "Sounds":
        """Recordings from arrays of samples (n,) or (n, channels)."""
        sounds = cls([], name=name, origin={"memory": name}, findings=[])
        for wave in waves:
            samples = np.asarray(wave, np.float32)
            samples = samples[:, None] if samples.ndim == 1 else samples
            sounds.add(None, Recording(samples, rate), hashlib.sha256(samples.tobytes()).hexdigest(), keep=True)
        sounds.finish()
        return sounds

    def add(self, member: Member | None, recording: Recording, digest: str, *, keep: bool) -> None:
        row = len(self.rates)
        if row == len(self.members):
            self.members.append(member)
        self.rates.append(recording.rate)
        self.frames.append(len(recording.samples))
        self.channels.append(recording.samples.shape[1])
        self.digests.append(digest)
        if keep:
            self._kept[row] = Recording(recording.mono()[:, None], recording.rate)

    def finish(self) -> None:
        """The fingerprint, and what is worth knowing of the recordings."""
        names = [str(row) if member is None else member.name for row, member in enumerate(self.members)]
        lines = sorted(f"{name}\0{digest}\n" for name, digest in zip(names, self.digests, strict=True))
        self.fingerprint = hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
        several = sum(count > 1 for count in self.channels)
        if several:
            text = f"{counted(several, 'recording has', 'recordings have')} several channels; their mean is used."
            self.findings.append(Finding("size", self.name, several, text))
        rates = Counter(self.rates)
        if len(rates) > 1:
            shown = ", ".join(f"{rate:,} ({count:,})" for rate, count in rates.most_common(4))
            text = f"The recordings have {len(rates)} rates, {shown} a second; all are resampled to one."
            self.findings.append(Finding("size", self.name, len(rates), text))
        repeated = len(self.digests) - len(set(self.digests))
        if repeated:
            copies = ("recording is a copy", "recordings are copies")
            text = f"{counted(repeated, *copies)} of another: scores may look better than they are."
            self.findings.append(Finding("copies", self.name, repeated, text))

    def __len__(self) -> int:
        return len(self.rates)

    @property
    def seconds(self) -> np.ndarray:
        """The length of each recording (n,)."""
        return np.array(self.frames) / np.array(self.rates)

    def recording(self, row: int) -> Recording:
        """One recording, with one channel; a file that has changed since it was opened is refused."""
        if row in self._kept:
            return self._kept[row]
        member = self.members[row]
        assert member is not None
        data = member.read("sound_bytes")
        if hashlib.sha256(data).hexdigest() != self.digests[row]:
            raise WonderlandError(f"{member} has changed since the data was opened. Open the data again.")
        recording = read_recording(data, member)
        return Recording(recording.mono()[:, None], recording.rate)

    def path(self, row: int) -> str:
        member = self.members[row]
        return f"{self.name}[{row}]" if member is None else member.name

    def labels(self) -> dict[str, list[Any]]:
        return {} if not self.members or self.members[0] is None else {"path": [self.path(i) for i in range(len(self))]}

    def columns(self) -> dict[str, np.ndarray]:
        return {str(name): self.frame[name].astype("string").fillna("").to_numpy(str) for name in self.frame.columns}

    def texts_of(self, name: str) -> np.ndarray:
        columns = self.columns()
        return columns[name] if name in columns else super().texts_of(name)

    def answer(self, row: int) -> Any:
        """The class, the labels as one text, the value or the text of a recording."""
        if self.texts is not None:
            return self.texts[row]
        assert self.y is not None
        if self.classes is None:
            return float(self.y[row])
        if self.y.ndim == 2:
            return ", ".join(self.classes[code] for code in np.flatnonzero(self.y[row])) or "none"
        return self.classes[self.y[row]]

    def example(self, i: int) -> dict[str, Any]:
        shown = {"path": self.path(i), "seconds": round(float(self.seconds[i]), 3), "rate": self.rates[i]}
        return shown | ({} if self.y is None and self.texts is None else {"target": self.answer(i)})

    def shown(self, i: int) -> dict[str, Any]:
        """A spectrogram to look at, and the recording to listen to."""
        recording = self.recording(i)
        return {"image": spectrogram_picture(recording), "audio": listenable(recording), "path": self.path(i)}

    def summary(self) -> list[dict[str, Any]]:
        seconds = self.seconds
        about = {"seconds": f"{np.median(seconds):.2g} ({seconds.min():.2g} to {seconds.max():.2g})"}
        if self.texts is not None:
            said = {"texts": len(set(self.texts)), "characters": len(set("".join(self.texts)))}
            return [{"recordings": len(self)} | said | about]
        if self.y is None:
            return [{"class": "(none)", "recordings": len(self), "share": "100 %"} | about]
        if self.classes is None:
            low, middle, high = np.quantile(self.y, (0, 0.5, 1))
            ends = {"lowest": f"{low:g}", "median": f"{middle:g}", "highest": f"{high:g}"}
            return [{"recordings": len(self)} | ends | about]
        several = self.y.ndim == 2
        counts = self.y.sum(0).astype(int) if several else np.bincount(self.y, minlength=len(self.classes))
        return [
            {"label" if several else "class": name, "recordings": int(count), "share": f"{100 * count / len(self):.1f} %"} | about
            for name, count in zip(self.classes, counts, strict=True)
        ]  # fmt: skip


def listenable(recording: Recording) -> str:
    """The first seconds of a recording as a WAVE file in a data URI, small enough for a page."""
    wave = recording.mono()[: round(LISTENED_SECONDS * recording.rate)]
    rate = min(recording.rate, LISTENED_RATE)
    wave = resample(torch.from_numpy(np.ascontiguousarray(wave)), recording.rate, rate).numpy()
    loudest = float(np.abs(wave).max(initial=0.0))
    wave = wave * (0.9 / loudest) if loudest > 0 else wave
    return "data:audio/wav;base64," + base64.b64encode(write_wave(wave, rate)).decode()
