"""Weights of paused trials in a folder that several machines see."""

import errno
import os
import re
import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from wonderland.core import WonderlandError, disk_trouble, sha256
from wonderland.search import Study, Trial
from wonderland.train.checkpoint import Checkpoints

_NAME = re.compile(r"\d{4,6}-\d{1,2}-[0-9a-f]{8}")
LEFT_OUT = shutil.ignore_patterns(".*")


@dataclass(frozen=True)
class WeightsStore:
    """Copies of run folders, each written once and whole, named after trial and rung; the journal says which of them count."""

    folder: Path

    @staticmethod
    def of(shared: str | Path, study: Study) -> "WeightsStore":
        """The store of one study in a shared folder."""
        folder = Path(shared)
        if not folder.is_dir():
            raise WonderlandError(f"There is no folder {folder} to share weights in: mount it on every machine first.")
        entry = study.journal.entries[0]
        place = folder / sha256(repr(sorted(entry["about"].items())).encode() + repr(entry["space"]).encode())[:16]
        try:
            place.mkdir(exist_ok=True)
        except OSError as error:
            raise disk_trouble(error, place) from error
        return WeightsStore(place)

    def publish(self, run: Path, trial: int, rung: int) -> str:
        """Copy the run folder of a trial that has reached a rung; returns the name that the journal records."""
        name = f"{trial:04d}-{rung}-{os.urandom(4).hex()}"
        part = self.folder / f".{name}.part"
        try:
            shutil.copytree(run, part, ignore=LEFT_OUT)
            part.rename(self.folder / name)
        except OSError as error:  # copytree gathers those of all files in one without a number
            shutil.rmtree(part, ignore_errors=True)
            full = error.errno is None and "No space left" in str(error)
            reason = (
                OSError(errno.ENOSPC, "full")
                if full
                else error
                if error.errno
                else OSError(errno.EIO, str(error)[:200])
            )
            raise disk_trouble(reason, self.folder / name) from error
        return name

    def fetch(self, name: str, run: Path) -> None:
        """Replace what a run folder holds by the copy that the journal names."""
        source = self.folder / name
        if not _NAME.fullmatch(name) or not source.is_dir():
            raise WonderlandError(
                f"The weights {name!r} of a paused trial are not in {self.folder}: is it the shared folder?"
            )
        part = run / ".fetched.part"
        try:
            shutil.rmtree(part, ignore_errors=True)
            shutil.copytree(source, part)
            for path in run.iterdir():
                if not path.name.startswith("."):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            # Weights last: until they are there, the copy is made again after a kill.
            for path in sorted(part.iterdir(), key=lambda path: path.name == "checkpoint"):
                path.rename(run / path.name)
            part.rmdir()
        except OSError as error:
            raise disk_trouble(error, run) from error

    def sweep(self, trials: Sequence[Trial], kept: Collection[int]) -> None:
        """Remove copies that nothing goes on from: those of earlier rungs, and of trials that failed."""
        for trial in trials:
            if trial.running is not None:
                continue
            for path in self.folder.glob(f"{trial.number:04d}-*"):
                if path.name != trial.weights or (trial.failed is not None and trial.number not in kept):
                    shutil.rmtree(path, ignore_errors=True)


def newest_step(run: Path) -> int:
    """The step of the newest checkpoint of a run folder; -1 without one."""
    files = Checkpoints(run / "checkpoint").files()
    return files[0][0] if files else -1
