"""Tensors on disk without pickle: safetensors files that carry a digest, and nested state as tensors plus JSON."""

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from wonderland.core.errors import WonderlandError, visible
from wonderland.core.files import open_plain, write_bytes
from wonderland.core.precheck import read_header
from wonderland.core.strict_json import parse_json


def digest(tensors: dict[str, Tensor], meta: dict[str, Any]) -> str:
    """SHA-256 over names, types, shapes, values and the JSON beside them."""
    hashed = hashlib.sha256(json.dumps(meta, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        hashed.update(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        if tensor.numel():
            # as_strided, since a tensor with one element is contiguous whatever its stride, and view needs stride 1.
            hashed.update(tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8).numpy().data)
    return hashed.hexdigest()


def save_tensors(path: str | Path, tensors: dict[str, Tensor], meta: dict[str, Any]) -> str:
    """Write tensors and JSON as one safetensors file, atomically; returns the digest stored in it."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    sha256 = digest(tensors, meta)
    # One metadata entry only: safetensors does not keep the order of several, and equal content must give equal bytes.
    metadata = json.dumps({"meta": meta, "sha256": sha256}, allow_nan=False)
    write_bytes(path, save(tensors, metadata={"wonderland": metadata}))
    return sha256


def load_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_tensors` wrote into fresh, aligned memory, and check its digest."""
    path = Path(path)
    read_header(path)
    try:
        with open_plain(path) as handle, safe_open(_utf8_name(path, handle), framework="pt") as file:
            metadata = parse_json((file.metadata() or {}).get("wonderland", "{}"))
            # Cloned because tensors in a mapped file may be unaligned, and vectorised kernels round differently there.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, RecursionError, OSError) as error:
        raise WonderlandError(f"{path} is not a safetensors file: it is damaged, cut short or not ours.") from error
    meta = metadata.get("meta", {}) if isinstance(metadata, dict) else {}
    if not isinstance(metadata, dict) or metadata.get("sha256") != digest(tensors, meta):
        raise WonderlandError(f"{path} does not match the digest stored in it: it is damaged or was changed.")
    return tensors, meta


def _utf8_name(path: Path, opened: Any) -> str:
    """A name of the file that safetensors takes, which must be UTF-8: where it is not, that of the open file."""
    return str(path) if visible(str(path)) == str(path) else f"/proc/self/fd/{opened.fileno()}"


def flatten(value: Any) -> tuple[dict[str, Tensor], Any]:
    """Nested dicts, lists and tuples as (tensors by path, JSON skeleton); inverse of `unflatten`."""
    tensors: dict[str, Tensor] = {}

    def walk(node: Any, path: str) -> Any:
        if isinstance(node, Tensor):
            tensors[path] = node
            return {"tensor": path, "channels_last": _is_channels_last(node)}
        if isinstance(node, dict):
            items = [[walk(key, f"{path}.key"), walk(child, f"{path}.{key}")] for key, child in node.items()]
            return {"dict": items}
        if isinstance(node, list | tuple):
            items = [walk(child, f"{path}.{index}") for index, child in enumerate(node)]
            return {"tuple" if isinstance(node, tuple) else "list": items}
        if node is None or isinstance(node, bool | int | str):
            return {"value": node}
        if isinstance(node, float):
            return {"float": node.hex()}
        raise WonderlandError(
            f"A {type(node).__name__} at {path!r} cannot be saved: state holds tensors, numbers, text, lists and dicts."
        )

    return tensors, walk(value, "state")


def unflatten(tensors: dict[str, Tensor], skeleton: Any) -> Any:
    """The nested value from its tensors and skeleton; inverse of `flatten`."""
    ((kind, content), *rest) = skeleton.items()
    if kind == "tensor":
        tensor = tensors[content]
        return tensor.contiguous(memory_format=torch.channels_last) if dict(rest)["channels_last"] else tensor
    if kind == "dict":
        return {unflatten(tensors, key): unflatten(tensors, child) for key, child in content}
    if kind in ("list", "tuple"):
        items = [unflatten(tensors, child) for child in content]
        return tuple(items) if kind == "tuple" else items
    return float.fromhex(content) if kind == "float" else content


def _is_channels_last(tensor: Tensor) -> bool:
    return tensor.dim() == 4 and not tensor.is_contiguous() and tensor.is_contiguous(memory_format=torch.channels_last)
