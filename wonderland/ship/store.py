"""Files of a run folder: weights and config.json. Everything is checked on reading; models are built from registered parts only."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)

import wonderland.models
import wonderland.nn
import wonderland.optim
import wonderland.train.closed_form
import wonderland.train.learner  # noqa: F401 - these fill the closed set that a saved model may name
from wonderland.core import Spec, WonderlandError, inside, load_tensors, read_header, read_json, save_tensors
from wonderland.core.schema import require
from wonderland.ship.format1 import upgrade
from wonderland.ship.schema import CONFIG

FORMAT = 2
DTYPES = {
    torch.float32: "F32", torch.float64: "F64", torch.bfloat16: "BF16", torch.float16: "F16", torch.int64: "I64",
    torch.int32: "I32", torch.uint8: "U8", torch.bool: "BOOL",
}  # fmt: skip


def save_model(folder: str | Path, model: nn.Module, meta: dict[str, Any]) -> None:
    """Write a model's weights and buffers as `model.safetensors`."""
    tensors = {name: _real(tensor) for name, tensor in model.state_dict().items()}
    save_tensors(Path(folder) / "model.safetensors", tensors, meta)


def load_model(folder: str | Path, spec: Spec | None, own: nn.Module | None = None) -> nn.Module:
    """Build the model of a folder: first on the meta device, to compare names and shapes with the file, then with its weights."""
    path = inside(folder, "model.safetensors")
    header = {name: entry for name, entry in read_header(path).items() if name != "__metadata__"}
    if own is None:
        assert spec is not None
        _compare_with_header(build_on_meta(spec, len(header)).state_dict(), header, path)
        model = spec.build()
    else:
        model = own
        _compare_with_header(model.state_dict(), header, path)
    tensors, _ = load_tensors(path)
    with torch.no_grad():
        for name, target in model.state_dict().items():
            if not torch.isfinite(tensors[name]).all():
                raise WonderlandError(f"{path}: {name!r} holds values that are not finite: it is damaged.")
            _real(target).copy_(tensors[name])
    return model.eval()


def build_on_meta(spec: Spec, tensors: int) -> nn.Module:
    """The model on the meta device; refused when it has far more parameters or modules than its file has tensors."""
    left = {"parameters": 2 * tensors + 16, "modules": 16 * tensors + 256}

    def count(noun: str) -> None:
        left[noun] -= 1
        if left[noun] < 0:
            raise WonderlandError(
                "The model's description asks for more layers than its weights file holds: it is damaged."
            )

    handles = [
        register_module_parameter_registration_hook(lambda module, name, parameter: count("parameters")),
        register_module_module_registration_hook(lambda module, name, inner: count("modules")),
    ]
    try:
        with torch.device("meta"):
            return spec.build()
    except WonderlandError:
        raise
    except (TypeError, ValueError, RuntimeError, ArithmeticError, AttributeError, LookupError, MemoryError) as error:
        raise WonderlandError(f"The model's description cannot be built: {_first_line(error)}") from error
    finally:
        for handle in handles:
            handle.remove()


def check_model(spec: Spec, shapes: dict[str, list[int]], path: Path) -> None:
    """Refuse a description of a model that does not fit the tensors of its training checkpoint, before it is built."""
    expected = build_on_meta(spec, len(shapes)).state_dict()
    for name in expected.keys() ^ shapes.keys():
        raise WonderlandError(f"{path} and config.json differ in {name[:80]!r}: the two do not belong together.")
    for name, tensor in expected.items():
        if list(tensor.shape) != shapes[name]:
            raise WonderlandError(
                f"{path}: {name!r} has shape {shapes[name]}, but config.json says {list(tensor.shape)}."
            )


def _compare_with_header(expected: dict[str, Tensor], header: dict[str, Any], path: Path) -> None:
    """Refuse a file whose names, types or shapes are not those of the model."""
    for name in expected.keys() - header.keys():
        raise WonderlandError(
            f"{path} lacks {name!r}, which the model's description has: the two do not belong together."
        )
    for name in header.keys() - expected.keys():
        raise WonderlandError(
            f"{path} holds {name[:80]!r}, which the model's description has not: the two do not belong together."
        )
    for name, tensor in expected.items():
        entry = header[name]
        shape = entry.get("shape") if isinstance(entry, dict) else None
        kind = DTYPES.get(_real(tensor).dtype)
        if isinstance(entry, dict) and kind and entry.get("dtype") != kind:
            raise WonderlandError(
                f"{path}: {name!r} is of type {entry.get('dtype')}, but the model's description says {kind}."
            )
        if shape != list(_real(tensor).shape):
            raise WonderlandError(
                f"{path}: {name!r} has shape {shape}, but the model's description says {list(tensor.shape)}."
            )


def _real(tensor: Tensor) -> Tensor:
    """Complex numbers as pairs, as they are stored."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def read_config(folder: str | Path) -> dict[str, Any]:
    """The run's config.json, checked for its form."""
    folder = Path(folder)
    if not folder.is_dir():
        raise WonderlandError(f"There is no run in {folder}: the folder does not exist.")
    if not (folder / "config.json").exists():
        raise WonderlandError(f"{folder} is not a run: it has no config.json.")
    config = read_json(inside(folder, "config.json"))
    if isinstance(config, dict) and config.get("format") == 1:
        config = upgrade(config)
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise WonderlandError(f"{folder / 'config.json'} is not in a format that this version reads.")
    require(config, CONFIG, folder / "config.json")
    return config
