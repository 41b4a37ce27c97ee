"""Records of a run: metrics without timestamps, which can be truncated exactly, and times in a separate file."""

import json
import os
import time
from pathlib import Path
from typing import Any

from wonderland.core import WonderlandError, disk_trouble, need, read_bytes
from wonderland.core.limits import check


class Records:
    """`metrics.jsonl` (values) and `times.jsonl` (seconds), appended during training.

    Metrics of an interrupted and resumed run equal those of an uninterrupted run byte for byte: they have no timestamps, and
    `cut` removes the lines written after the checkpoint that training continues from.
    """

    def __init__(self, folder: str | Path | None, *, tensorboard: bool = False):
        self.folder = Path(folder) if folder else None
        self.rows: list[dict[str, Any]] = []
        self._began = time.monotonic()
        self._board: Any = None
        if tensorboard:
            if not self.folder:
                raise WonderlandError("TensorBoard needs a folder to write to: give the run a folder.")
            module = need("torch.utils.tensorboard", extra="tensorboard", why="to write TensorBoard files")
            self._board = module.SummaryWriter(str(self.folder / "tensorboard"))

    def append(self, row: dict[str, Any]) -> None:
        """Add one row of metrics."""
        self.rows.append(row)
        if self.folder:
            self._write("metrics.jsonl", json.dumps(row))
            self._write(
                "times.jsonl", json.dumps({"step": row["step"], "seconds": round(time.monotonic() - self._began, 3)})
            )
        if self._board:
            for name, value in row.items():
                if name not in ("step", "epoch"):
                    self._board.add_scalar(name, value, row["step"])

    def _write(self, name: str, line: str) -> None:
        path = Path(self.folder or "") / name
        try:
            with path.open("a") as file:
                file.write(line + "\n")
        except OSError as error:
            raise disk_trouble(error, path) from error

    def size(self) -> int:
        """How many bytes of metrics are on disk, after a sync."""
        path = Path(self.folder or "") / "metrics.jsonl"
        if not self.folder or not path.exists():
            return 0
        with path.open("rb+") as file:
            os.fsync(file.fileno())
            return os.fstat(file.fileno()).st_size

    def cut(self, size: int) -> None:
        """Truncate metrics to the first `size` bytes, and read them."""
        path = Path(self.folder or "") / "metrics.jsonl"
        if not self.folder or (size == 0 and not path.exists()):
            return
        content = read_bytes(path, "records_bytes") if path.exists() else b""
        check("record_lines", content.count(b"\n"), path)
        if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= len(content):
            raise WonderlandError(
                f"{path} is shorter than the checkpoint says: it was changed. Start again with --overwrite."
            )
        if len(content) > size:
            with path.open("rb+") as file:
                file.truncate(size)
                os.fsync(file.fileno())
        try:
            self.rows = [dict(json.loads(line)) for line in content[:size].splitlines()]
        except (ValueError, TypeError, RecursionError) as error:
            raise WonderlandError(f"{path} was changed since it was written. Start again with --overwrite.") from error

    def close(self) -> None:
        """Close open files."""
        if self._board:
            self._board.close()


def read_records(path: Path) -> list[Any]:
    """The rows of a JSON lines file; damaged lines are skipped."""
    rows = []
    content = read_bytes(path, "records_bytes") if path.is_file() else b""
    check("record_lines", content.count(b"\n"), path)
    for line in content.split(b"\n"):
        try:
            if line.strip():
                rows.append(json.loads(line))
        except (ValueError, RecursionError):
            continue
    return rows
