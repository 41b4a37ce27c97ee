"""The runs of a folder: what the page lists of each, read from small files and kept until these change."""

import json
import math
import os
import struct
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wonderland.core import MIB, WonderlandError, inside, read_json
from wonderland.core.files import open_plain

MOST_RUNS = 10_000
MOST_ENTRIES = 200_000  # of folders that are looked at
POINTS = 400  # of a learning curve
MOST_AXES = 16  # of a tensor in a file
FRESH = 120  # seconds since the last record within which an unfinished run counts as training
FILES = ("config.json", "trust.json", "metrics.jsonl", "model.safetensors")
LOWER = ("loss", "rmse", "mae", "mse", "brier", "perplexity", "bits", "error", "ece", "wer", "cer")


def lower_is_better(metric: str) -> bool:
    """Whether smaller values of a metric are better.

    >>> [lower_is_better(name) for name in ("accuracy", "log_loss", "rmse", "r2", "bits_per_byte")]
    [False, True, True, False, True]
    """
    return any(word in metric.lower() for word in LOWER)


class Catalog:
    """Runs in a folder and in its folders; a folder that is a run itself has this one."""

    def __init__(self, root: str | Path):
        self.root = Path(root)
        if not self.root.is_dir():
            raise WonderlandError(f"There is no folder {self.root}: name the one that holds your runs.")
        self._kept: dict[str, tuple[Any, dict[str, Any]]] = {}
        self._folders: dict[str, Path] = {}

    def folder(self, name: str) -> Path:
        """The folder of a run by its name in the list; no other folder is ever given."""
        if name not in self._folders:
            self._folders = dict(self._find())
        if name not in self._folders:
            raise WonderlandError(f"There is no run {name[:200]!r} in {self.root}.")
        return self._folders[name]

    def runs(self) -> list[dict[str, Any]]:
        """A summary of every run, the newest first."""
        self._folders = dict(self._find())
        self._kept = {name: kept for name, kept in self._kept.items() if name in self._folders}
        return sorted((self.summary(name) for name in self._folders), key=lambda run: -run["changed"])

    def summary(self, name: str) -> dict[str, Any]:
        """What the list shows of a run."""
        folder = self.folder(name)
        stamp, changed = _stamp(folder)
        kept = self._kept.get(name)
        if kept is None or kept[0] != stamp:
            kept = stamp, summarise(name, folder)
            self._kept[name] = kept
        summary = kept[1]
        status = summary["status"]
        if status == "unfinished":
            status = "training" if abs(time.time() - changed) < FRESH else "stopped"
        return summary | {"status": status, "changed": changed}

    def _find(self) -> Iterator[tuple[str, Path]]:
        """Names and folders of runs: this folder, those in it, and those in these; links are not followed."""
        if (self.root / "config.json").is_file():
            yield self.root.resolve().name, self.root
            return
        runs, looked = 0, 0
        level = [self.root]
        for _ in range(2):
            below: list[Path] = []
            for parent in level:
                try:
                    entries = sorted(os.scandir(parent), key=lambda entry: entry.name)
                except OSError:
                    continue
                for entry in entries:
                    looked += 1
                    if looked > MOST_ENTRIES or runs >= MOST_RUNS:
                        return
                    if entry.name.startswith(".") or not entry.is_dir(follow_symlinks=False):
                        continue
                    path = Path(entry.path)
                    if (path / "config.json").is_file():
                        runs += 1
                        yield path.relative_to(self.root).as_posix(), path
                    else:
                        below.append(path)
            level = below


def _stamp(folder: Path) -> tuple[Any, float]:
    """What changes with the files of a run, and when the last of them changed."""
    stamp, latest = [], 0.0
    for name in FILES:
        try:
            about = os.stat(folder / name)
        except OSError:
            stamp.append(None)
            continue
        stamp.append((about.st_mtime_ns, about.st_size))
        latest = max(latest, about.st_mtime)
    return stamp, latest


def summarise(name: str, folder: Path) -> dict[str, Any]:
    """The summary of a run; a run that cannot be read has a sentence instead of numbers."""
    summary: dict[str, Any] = {"name": name, "status": "unfinished", "metrics": {}, "problem": ""}
    try:
        config = read_json(inside(folder, "config.json"))
        source, recipe = _object(config, "source"), _object(config, "recipe")
        summary |= {
            "data": _text(source.get("name")),
            "kind": _text(source.get("kind")),
            "rows": source.get("rows") if isinstance(source.get("rows"), int) else None,
            "task": _part(recipe.get("task")),
            "model": _part(recipe.get("model")),
            "steps": recipe.get("steps") if isinstance(recipe.get("steps"), int) else None,
        }
        if (folder / "trust.json").exists():
            measured = _object(read_json(inside(folder, "trust.json")), "measured")
            test = _object(measured, "test")
            summary["metrics"] = numbers(test.get("metrics"))
            summary["status"] = "finished"
            conformal = numbers(test.get("conformal"))
            summary["coverage"], summary["level"] = conformal.get("coverage"), conformal.get("level")
            summary["error"] = numbers(test.get("ece")).get("after")
        last = last_record(folder / "metrics.jsonl")
        summary["step"] = last.get("step")
        if not summary["metrics"]:
            summary["metrics"] = {
                k.removeprefix("validation/"): v for k, v in last.items() if k.startswith("validation/")
            }
        summary["bytes"] = _size(folder / "model.safetensors")
        summary["parameters"] = count_parameters(folder / "model.safetensors")
        summary["seconds"] = seconds(folder / "times.jsonl")
    except (WonderlandError, OSError, ValueError, RecursionError) as error:
        summary["status"], summary["problem"] = "damaged", str(error)[:500]
    return summary


def details(name: str, folder: Path) -> dict[str, Any]:
    """What the page of one run shows beyond the summary."""
    config = read_json(inside(folder, "config.json"))
    details_of_run: dict[str, Any] = {
        "findings": [_text(text) for text in _list(_object(config, "source").get("findings"))[:200]],
        "split": numbers(_object(config, "split").get("sizes")),
        "seed": config.get("seed") if isinstance(config.get("seed"), int) else None,
        "versions": {str(k): _text(v) for k, v in list(_object(config, "versions").items())[:30]},
        "level": config.get("level") if isinstance(config.get("level"), float) else None,
        "report": (folder / "report.html").is_file(),
        "test": {},
    }
    if (folder / "trust.json").exists():
        test = _object(_object(read_json(inside(folder, "trust.json")), "measured"), "test")
        reliability = _object(test, "reliability")
        details_of_run["test"] = {
            "rows": test.get("rows") if isinstance(test.get("rows"), int) else None,
            "error": numbers(test.get("ece")),
            "conformal": numbers(test.get("conformal")),
            "note": _text(_object(test, "conformal").get("note")),
            "reliability": {
                side: [numbers(entry) for entry in _list(reliability.get(side))[:100] if isinstance(entry, dict)]
                for side in ("before", "after")
            },
        }
    return details_of_run


def curves(folder: Path) -> dict[str, list[list[float]]]:
    """Each number of metrics.jsonl over the steps, thinned out evenly where there are many."""
    rows = []
    path = folder / "metrics.jsonl"
    if path.exists():
        with open_plain(path) as file:
            content = file.read(64 * MIB)
        rows = [row for line in content.splitlines() if (row := _record(line))]
    if len(rows) > POINTS:
        rows = [rows[round(i * (len(rows) - 1) / (POINTS - 1))] for i in range(POINTS)]
    lines: dict[str, list[list[float]]] = {}
    for row in rows:
        for key, value in row.items():
            if key not in ("step", "epoch") and (key in lines or len(lines) < 60):
                lines.setdefault(key, []).append([row["step"], value])
    return lines


def _record(line: bytes) -> dict[str, float]:
    """The numbers of one record; {} for a line that is not finished or not ours."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    values = numbers(row)
    return values if "step" in values else {}


def last_record(path: Path) -> dict[str, float]:
    """The last whole record of a file of records, read from its end."""
    try:
        with open_plain(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - (1 << 16)))
            lines = file.read().splitlines()
    except WonderlandError:
        return {}
    return next((row for line in reversed(lines) if (row := _record(line))), {})


def seconds(path: Path) -> float | None:
    """Seconds of training of the last process that worked on a run."""
    return last_record(path).get("seconds")


def count_parameters(path: Path) -> int | None:
    """The number of weights, from the header of a file of them."""
    try:
        with open_plain(path) as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > 16 * MIB:
                return None
            header = json.loads(file.read(length))
        shapes = [entry["shape"] for key, entry in header.items() if key != "__metadata__"]
        if any(len(shape) > MOST_AXES or any(int(size) >= 1 << 63 for size in shape) for shape in shapes):
            return None
        return sum(math.prod(int(size) for size in shape) for shape in shapes)
    except (WonderlandError, OSError, ValueError, KeyError, TypeError, AttributeError, struct.error, RecursionError):
        return None


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def numbers(value: Any) -> dict[str, float]:
    """The finite numbers of an object.

    >>> numbers({"a": 1, "b": float("nan"), "c": "x", "d": True})
    {'a': 1}
    """
    if not isinstance(value, Mapping):
        return {}
    fine = ((str(k)[:200], v) for k, v in value.items() if isinstance(v, int | float) and not isinstance(v, bool))
    return {key: number for key, number in fine if abs(number) < 1e300}


def _object(value: Any, key: str) -> Mapping[str, Any]:
    member = value.get(key) if isinstance(value, Mapping) else None
    return member if isinstance(member, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value[:2000] if isinstance(value, str) else ""


def _part(spec: Any) -> str:
    """The name of a part without its folder."""
    part = spec.get("part") or spec.get("own") if isinstance(spec, Mapping) else None
    return _text(part).rpartition(".")[2]
