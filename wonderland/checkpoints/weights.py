"""The weights of a checkpoint folder: names and shapes from the headers of its safetensors files, tensors on demand."""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from wonderland.core import WonderlandError, inside, read_header, read_json
from wonderland.core.limits import check

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
DTYPES = {"F64": torch.float64, "F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}


class WeightFiles:
    """The tensors of a folder. Opening reads headers only; `read` reads one tensor.

    `prefix` is what the names of the trunk begin with; published files have them with it or without it.
    """

    def __init__(self, folder: Path, prefix: str):
        self.folder, self.prefix = folder, prefix
        self.paths: dict[str, Path] = {}
        self.headers: dict[str, Any] = {}
        for path, expected in _shards(folder).items():
            header = {name: entry for name, entry in read_header(path).items() if name != "__metadata__"}
            for name in header if expected is None else expected:
                if name not in header:
                    raise WonderlandError(
                        f"{folder / INDEX} says that {path.name} holds {name[:80]!r}, but it does not."
                    )
                self.paths[name], self.headers[name] = path, _checked_entry(header[name], name, path)
        dtypes = {entry["dtype"] for entry in self.headers.values() if entry["dtype"] in DTYPES}
        if not dtypes:
            raise WonderlandError(f"{folder} holds no floating point weights.")
        self.dtype = next(DTYPES[name] for name in DTYPES if name in dtypes)

    def find(self, name: str) -> str | None:
        """The name of a tensor in the file: as given, with or without the trunk's prefix, or with the older names of norms."""
        for candidate in (name, name.removeprefix(self.prefix), self.prefix + name):
            older = candidate.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
            older = older.replace("parametrizations.weight.original0", "weight_g")
            older = older.replace("parametrizations.weight.original1", "weight_v")
            for spelling in (candidate, older):
                if spelling in self.headers:
                    return spelling
        return None

    def has(self, name: str) -> bool:
        """Whether there is a tensor of this name."""
        return self.find(name) is not None

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, from its header."""
        return tuple(self.headers[name]["shape"])

    def tied(self, configured: bool, head: str, embedding: str) -> bool:
        """Whether the output head is the embedding: it is not if the file holds a head with other values.

        Only a file that holds both tensors, under a configuration that ties them, makes it necessary to read them.
        """
        if self.find(head) is None or self.find(embedding) is None:
            if not configured and self.find(head) is None:
                raise WonderlandError(
                    f"{self.folder} lacks {head!r}, the weights of the head, and its config.json says that the head does not "
                    "share the weights of the embedding."
                )
            return configured
        return configured and self.equal(head, embedding)

    def equal(self, copy: str, original: str) -> bool:
        """Whether `copy` is absent, or equal to `original`."""
        copied, source = self.find(copy), self.find(original)
        if copied is None or source is None or copied == source:
            return True
        return self.shape(copied) == self.shape(source) and torch.equal(self.read(copied), self.read(source))

    def read(self, name: str) -> Tensor:
        """The tensor of a name that is in the file."""
        path = self.paths[name]
        try:
            with safe_open(path, framework="pt") as file:
                return file.get_tensor(name)
        except (SafetensorError, ValueError, OSError) as error:
            raise WonderlandError(f"{path} is not a safetensors file: it is damaged, cut short or not ours.") from error


def _shards(folder: Path) -> dict[Path, list[str] | None]:
    """The files of weights, and the names to take from each; None for all."""
    if (folder / SINGLE).exists():
        return {inside(folder, SINGLE): None}
    if not (folder / INDEX).exists():
        pickles = [path.name for pattern in ("*.bin", "*.pt*") for path in sorted(folder.glob(pattern))]
        if pickles:
            raise WonderlandError(
                f"{folder} holds its weights as {pickles[0]}, a pickle. Reading a pickle can run any code, so it is not read. "
                "If you trust the file, convert it: AutoModel.from_pretrained(folder).save_pretrained(folder) of transformers "
                "writes model.safetensors (use the class that config.json names under architectures)."
            )
        raise WonderlandError(f"{folder} has no weights: neither {SINGLE} nor {INDEX}.")
    index = read_json(inside(folder, INDEX), strict=False)
    weight_map = index.get("weight_map") if isinstance(index, dict) else None
    named = isinstance(weight_map, dict) and all(isinstance(file, str) for file in weight_map.values())
    if not named or not weight_map:
        raise WonderlandError(f"{folder / INDEX} does not say which file holds which tensor: it is damaged.")
    shards: dict[Path, list[str] | None] = {}
    for name, file in weight_map.items():
        shards.setdefault(inside(folder, file), []).append(name)  # pyright: ignore[reportOptionalMemberAccess]
        check("shards", len(shards), folder / INDEX)
    return shards


def _checked_entry(entry: Any, name: str, path: Path) -> dict[str, Any]:
    shape = entry.get("shape") if isinstance(entry, dict) else None
    valid = isinstance(shape, list) and all(isinstance(size, int) and 0 <= size < 1 << 40 for size in shape)
    if not valid or not isinstance(entry.get("dtype"), str):
        raise WonderlandError(f"{path}: the header has no valid shape and dtype for {name[:80]!r}: it is damaged.")
    return entry
