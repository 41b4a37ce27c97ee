"""Checkpoints: one self-contained safetensors file a time, whole or absent, the last good one always kept."""

import re
import time
from pathlib import Path
from typing import Any

from wonderland.core import WonderlandError, flatten, load_tensors, save_tensors, unflatten

_NAME = re.compile(r"step-(\d{9})\.safetensors")


class Checkpoints:
    """The checkpoints of a run, in a folder of their own.

    Saving is spaced so that it costs at most a twentieth of the time, and is never more than once in `least` seconds.
    When a checkpoint is saved does not change any result, only how much is repeated after a kill.
    """

    def __init__(self, folder: str | Path, *, keep: int = 2, least: float = 1.0):
        self.folder = Path(folder)
        self.keep = keep
        self.least = least
        self._due = time.monotonic() + least

    def due(self) -> bool:
        """Is it time to save?"""
        return time.monotonic() >= self._due

    def save(self, step: int, value: Any) -> None:
        """Write the nested value for this step, then let go of older ones."""
        started = time.monotonic()
        self.folder.mkdir(parents=True, exist_ok=True)
        tensors, skeleton = flatten(value)
        save_tensors(
            self.folder / f"step-{step:09d}.safetensors", _unshared(tensors), {"step": step, "state": skeleton}
        )
        for _, path in self.files()[self.keep :]:
            path.unlink(missing_ok=True)
        now = time.monotonic()
        self._due = now + max(self.least, 20 * (now - started))

    def files(self) -> list[tuple[int, Path]]:
        """(step, path) of each checkpoint, newest first."""
        found = [(int(match[1]), path) for path in self.folder.glob("step-*") if (match := _NAME.fullmatch(path.name))]
        return sorted(found, reverse=True)

    def newest(self) -> Any | None:
        """The newest checkpoint that is whole; a damaged one is passed over for the one before it."""
        damaged = None
        for _, path in self.files():
            try:
                tensors, meta = load_tensors(path)
                return unflatten(tensors, meta["state"])
            except (WonderlandError, LookupError, TypeError, ValueError, AttributeError) as error:
                damaged = damaged or error
        if damaged:
            raise WonderlandError(
                f"No whole checkpoint is left in {self.folder}: {damaged} Start again with --overwrite."
            )
        return None


def _unshared(tensors: dict[str, Any]) -> dict[str, Any]:
    """Copies of tensors that share memory with an earlier one, since the format stores each by itself."""
    seen: set[int] = set()
    apart = {}
    for name, tensor in tensors.items():
        place = tensor.untyped_storage().data_ptr()
        apart[name] = tensor.clone() if place in seen else tensor
        seen.add(place)
    return apart
