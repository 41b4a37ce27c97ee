"""Mutations of files and folders: by what a file holds, by what stands in its place, by another run's; and digests made anew."""

import hashlib
import json
import os
import random
import shutil
import struct
from pathlib import Path
from typing import Any

from tests.fuzz.mutate import dumps, mutate_bytes, mutate_json_text, mutate_json_value, mutate_lines
from tests.fuzz.mutate_tensors import mutate_tensors, sign_tensors


def mutate_file(path: Path, draw: random.Random, strangers: tuple[Path, ...] = ()) -> str:
    """Change one file in place; says how. `strangers` are other folders with files of the same names."""
    if draw.random() < 0.12:
        return f"{path.name}: {replace_file(path, draw, strangers)}"
    content, suffix = path.read_bytes(), path.suffix
    there = [folder / path.name for folder in strangers if (folder / path.name).is_file()]
    if suffix == ".json" and there and draw.random() < 0.2:
        changed, words = graft(json.loads(content), json.loads(draw.choice(there).read_bytes()), draw)
        content = dumps(changed)
    elif suffix == ".json" and draw.random() < 0.15:
        changed, words = every_number(json.loads(content), draw)
        content = dumps(changed)
    elif suffix == ".json" and draw.random() < 0.75:
        changed, words = mutate_json_value(json.loads(content), draw)
        content = dumps(changed)
    elif suffix in (".json", ".jsonl") and draw.random() < 0.5:
        content, words = mutate_json_text(content, draw)
    elif suffix == ".safetensors" and draw.random() < 0.85:
        content, words = mutate_tensors(content, draw)
    elif suffix == ".jsonl" and draw.random() < 0.6:
        rows = [json.loads(line) for line in content.splitlines()]
        changed, words = mutate_json_value(rows, draw)
        changed = changed if isinstance(changed, list) else [changed]
        content = b"".join(dumps(row) + b"\n" for row in changed)
    elif suffix == ".jsonl" and draw.random() < 0.7:
        content, words = mutate_lines(content, draw)
    else:
        content, words = mutate_bytes(content, draw)
    path.write_bytes(content)
    return f"{path.name}: {words}"


def graft(value: Any, other: Any, draw: random.Random) -> tuple[Any, str]:
    """One entry of a JSON file, taken from the same place of another file."""
    path: list[Any] = []
    mine, theirs = value, other
    while isinstance(mine, dict) and isinstance(theirs, dict) and (keys := sorted(mine.keys() & theirs.keys())):
        key = draw.choice(keys)
        path.append(key)
        if draw.random() < 0.35 or not isinstance(mine[key], dict):
            mine[key] = theirs[key]
            return value, f"{'.'.join(path)} of another file"
        mine, theirs = mine[key], theirs[key]
    return other, "the content of another file"


def every_number(value: Any, draw: random.Random) -> tuple[Any, str]:
    """A number changed everywhere in a JSON file, as sizes that belong together would be."""
    numbers: set[int] = set()

    def walk(node: Any, old: int | None = None, new: int = 0) -> Any:
        if isinstance(node, dict):
            return {key: walk(entry, old, new) for key, entry in node.items()}
        if isinstance(node, list):
            return [walk(entry, old, new) for entry in node]
        if type(node) is int and node > 1:
            numbers.add(node)
            return new if node == old else node
        return node

    walk(value)
    if not numbers:
        return value, "unchanged"
    old = draw.choice(sorted(numbers))
    new = draw.choice([old + 1, old - 1, old * 2, old // 2, 0, -old, 1, 4096, 10**7])
    return walk(value, old, new), f"{old} becomes {new} everywhere"


def replace_file(path: Path, draw: random.Random, strangers: tuple[Path, ...]) -> str:
    """Something else in the place of a file: nothing, a folder, a link, a pipe, a file of another run or of another name."""

    def away() -> Path:
        path.unlink()
        return path

    def linked() -> None:
        kept = path.with_name(f"{path.name}.kept")
        path.rename(kept)
        path.symlink_to(kept.name)

    def sparse() -> None:
        with path.open("r+b") as file:
            file.truncate(40 << 30)

    beside = sorted(
        other
        for other in path.parent.iterdir()
        if other.is_file() and not other.is_symlink() and other != path and other.suffix == path.suffix
    )

    def of_another(folders: list[Path]) -> None:
        shutil.copy(draw.choice(folders), path)

    ways = {
        "removed": away,
        "a folder": lambda: away().mkdir(),
        "a pipe": lambda: os.mkfifo(away()),
        "a link to itself": lambda: away().symlink_to(path.name),
        "a link to /dev/zero": lambda: away().symlink_to("/dev/zero"),
        "a link to /etc/passwd": lambda: away().symlink_to("/etc/passwd"),
        "a link to nothing": lambda: away().symlink_to("nowhere"),
        "a link inside": linked,
        "claims 40 GB": sparse,
        "may not be read": lambda: path.chmod(0),
    }  # fmt: skip
    there = [folder / path.name for folder in strangers if (folder / path.name).is_file()]
    if there:
        ways["of another run"] = lambda: of_another(there)
        ways["of another run, once more"] = lambda: of_another(there)
    if beside:
        ways["another file of this folder"] = lambda: of_another(beside)
    way = draw.choice(sorted(ways))
    ways[way]()
    return way


def sign_again(folder: Path) -> None:
    """Make the digests of a run fit its files again, as somebody who changed them on purpose would."""

    def sha(name: str) -> str:
        try:
            return hashlib.sha256(_content(folder / name)).hexdigest()
        except OSError:
            return ""

    try:
        _sign_preprocessing(folder)
        inputs = {"config.json": sha("config.json")}
        checkpoints = [f"checkpoint/{path.name}" for path in sorted((folder / "checkpoint").glob("*.safetensors"))]
        for name in ("model.safetensors", "context.safetensors", *checkpoints):
            _sign_tensors(folder / name, inputs)
        trust = json.loads(_content(folder / "trust.json"))
        trust["inputs"] = {name: sha(name) for name in trust["inputs"]}
        (folder / "trust.json").write_bytes(dumps(trust))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass


def _content(path: Path) -> bytes:
    """The content of a plain file that is not made huge; pipes would block."""
    if not path.is_file() or path.stat().st_size > 1 << 26:
        raise OSError(f"{path} is no plain file")
    return path.read_bytes()


def _sign_preprocessing(folder: Path) -> None:
    """config.json records the preprocessing too."""
    from wonderland.ship.run import load_encoder

    try:
        config = json.loads(_content(folder / "config.json"))
        if "preprocessing" in config:
            config["preprocessing"] = load_encoder(folder).digest()
            (folder / "config.json").write_bytes(dumps(config))
    except Exception:  # what is refused anyway
        return


def _sign_tensors(path: Path, inputs: dict[str, str]) -> None:
    """The digests that a file of tensors carries of others, and of itself."""
    try:
        content = _content(path)
        size = struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8 : 8 + size])
        stored = json.loads(header["__metadata__"]["wonderland"])
        meta = stored["meta"]
        if "inputs" in meta:
            meta["inputs"] = inputs
        for key, value in meta.get("state", {}).get("dict", []):
            if key == {"value": "identity"}:
                value["value"] = inputs["config.json"]
        header["__metadata__"]["wonderland"] = dumps(stored).decode()
        text = dumps(header)
        path.write_bytes(sign_tensors(struct.pack("<Q", len(text)) + text + content[8 + size :]))
    except Exception:  # what cannot be read any more stays as it is
        return
