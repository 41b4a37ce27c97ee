"""Precheck of a run folder without importing torch: missing, damaged or malicious files are refused early.

The checks here are cheap (file names, JSON, safetensors headers). `wonderland.load` verifies digests and shapes.
"""

import os
import re
import shlex
import struct
from pathlib import Path
from typing import Any

from wonderland.core.errors import WonderlandError
from wonderland.core.files import inside, open_plain, read_json
from wonderland.core.limits import check
from wonderland.core.strict_json import count_values, load_json

# The files whose digests trust.json records.
INPUTS = ("config.json", "model.safetensors", "preprocess.json", "preprocess.safetensors")
_PART_NAME = re.compile(r"(nn|models|tasks|optim|data|train|rl|kinds|own)\.[A-Za-z]\w*")


def read_header(path: str | Path) -> dict[str, Any]:
    """The header of a safetensors file (names, types, shapes), checked against the file's length; no tensor is read.

    A file that claims far more bytes than the disk holds of it (a sparse one) is refused: reading it would take all it claims.
    """
    path = Path(path)
    refusal = WonderlandError(f"{path} is not a safetensors file: it is damaged, cut short or not ours.")
    try:
        with open_plain(path) as file:
            status = os.fstat(file.fileno())
            size = status.st_size
            if status.st_blocks * 512 < size // 4:
                check("sparse_bytes", size, f"{path}, of which the disk holds {status.st_blocks * 512:,} bytes,")
            start = file.read(8)
            length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
            if length > size - 8:
                raise refusal
            check("header_bytes", length, f"The header of {path}")
            text = file.read(length)
        check("header_values", count_values(text), f"The header of {path}")
        header = load_json(text)
        entries = [entry for name, entry in header.items() if name != "__metadata__"]
        if max((int(entry["data_offsets"][1]) for entry in entries), default=0) != size - 8 - length:
            raise refusal
    except WonderlandError:
        raise
    except (ValueError, RecursionError, OSError, AttributeError, TypeError, LookupError, OverflowError) as error:
        raise refusal from error
    return header


def precheck(folder: str | Path) -> None:
    """Raise an error if this folder cannot be a finished run; `wonderland.load` checks in detail."""
    folder = Path(folder)
    if folder.is_file():
        raise WonderlandError(
            f"{folder} is a file, and a run is a folder: wonderland fit {shlex.quote(str(folder))} makes one."
        )
    if not folder.is_dir():
        raise WonderlandError(f"There is no run in {folder}: the folder does not exist.")
    if not (folder / "config.json").exists():
        raise WonderlandError(f"{folder} is not a run: it has no config.json.")
    config = read_json(inside(folder, "config.json"), strict=False)
    if isinstance(config, dict) and "model_type" in config and "recipe" not in config:
        raise WonderlandError(
            f"{folder} is a checkpoint of transformers, not a run. Fine-tune it with: wonderland fit DATA --from "
            f"{shlex.quote(str(folder))}"
        )
    _check_parts(config)
    if not (folder / "trust.json").exists():
        raise WonderlandError(
            f"The run in {folder} is not finished. Continue it with: wonderland fit --resume {shlex.quote(str(folder))}"
        )
    check_inputs(folder, read_json(inside(folder, "trust.json")))
    for name in ("model.safetensors", "preprocess.safetensors"):
        read_header(inside(folder, name))


def check_inputs(folder: Path, trust: Any) -> dict[str, str]:
    """The digests that trust.json records: exactly one for each file in INPUTS."""
    inputs = trust.get("inputs") if isinstance(trust, dict) else None
    if (
        not isinstance(inputs, dict)
        or set(inputs) != set(INPUTS)
        or not all(isinstance(v, str) for v in inputs.values())
    ):
        raise WonderlandError(f"{folder / 'trust.json'} is not a run's record of trust: it is damaged or not ours.")
    return inputs


def _check_parts(value: Any) -> None:
    """Every part named anywhere in config.json must have a name of the form that parts of this library have."""
    pending = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            for key in ("part", "function"):
                name = node.get(key)
                if (
                    isinstance(name, str)
                    and set(node) <= {"part", "arguments", "function"}
                    and not _PART_NAME.fullmatch(name)
                ):
                    raise WonderlandError(f"{name[:80]!r} is not a part of Wonderland, so it is not built.")
            pending += node.values()
        elif isinstance(node, list):
            pending += node
