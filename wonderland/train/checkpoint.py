"""Checkpoints: self-contained safetensors files, written atomically; the last ones are kept."""

import re
import time
from pathlib import Path
from typing import Any

from wonderland.core import WonderlandError, flatten, load_tensors, read_header, save_tensors, unflatten

_NAME = re.compile(r"step-(\d{9})\.safetensors")


class Checkpoints:
    """The checkpoints of a run, in a folder of their own.

    They are written so rarely that saving takes at most a twentieth of the time, and at most once in `least` seconds. That does
    not change any result, only how much is repeated after a crash.
    """

    def __init__(self, folder: str | Path, *, keep: int = 2, least: float = 1.0):
        self.folder = Path(folder)
        self.keep = keep
        self.least = least
        self._due = time.monotonic() + least

    def due(self) -> bool:
        """Whether it is time to save."""
        return time.monotonic() >= self._due

    def save(self, step: int, value: Any) -> None:
        """Write the nested value for this step, then delete older ones."""
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
        checkpoints = [
            (int(match[1]), path) for path in self.folder.glob("step-*") if (match := _NAME.fullmatch(path.name))
        ]
        return sorted(checkpoints, reverse=True)

    def shapes(self, part: str) -> tuple[Path, dict[str, list[int]]] | None:
        """The newest checkpoint with a header that can be read, and the shapes in it of the tensors of one part of the state."""
        prefix = f"state.state.parts.{part}."
        for _, path in self.files():
            try:
                header = read_header(path)
                return path, {
                    name.removeprefix(prefix): list(entry["shape"])
                    for name, entry in header.items()
                    if name.startswith(prefix)
                }
            except (WonderlandError, LookupError, TypeError):
                continue
        return None

    def newest(self) -> Any | None:
        """The content of the newest checkpoint that can be read; damaged ones are skipped. None if there is no checkpoint."""
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
    unshared = {}
    for name, tensor in tensors.items():
        pointer = tensor.untyped_storage().data_ptr()
        unshared[name] = tensor.clone() if pointer in seen else tensor
        seen.add(pointer)
    return unshared
