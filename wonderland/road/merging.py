"""Merging what is on disk: runs and checkpoints to one run or checkpoint."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from wonderland import checkpoints
from wonderland.checkpoints.config_file import check_folder, read_config
from wonderland.core import WonderlandError, load_tensors, lock, read_json, write_bytes, write_json
from wonderland.models.merging import Weights, merge_weights
from wonderland.ship import Run, load
from wonderland.ship.store import save_model

KEPT = ("config.json", "preprocess.json", "preprocess.safetensors")  # files of a run that its weights do not change


def merge(
    sources: Sequence[str | Path],
    out: str | Path,
    *,
    method: str = "average",
    base: str | Path | None = None,
    **options: Any,
) -> Path:
    """Merge runs, or checkpoints of the transformers library, into a new folder; returns it.

    Several runs become a run: they have the same recipe of the model, preprocessing and split, so that its test rows were
    seen by none of them; merged.json says what it was made of. It has no calibration yet: `wonderland.fit(resume=out)` measures it anew. Checkpoints, or checkpoints
    and runs that began from them, become a checkpoint. `method`, and the options shares, scale and density, are those of
    `models.merge_weights`.
    """
    out, folders = Path(out), [Path(source) for source in sources]
    if out.exists() and any(out.iterdir()):
        raise WonderlandError(f"There are files in {out}: name another folder for the merged model.")
    as_runs = all(is_run(folder) for folder in folders)
    loaded = [_loaded(folder, alone=as_runs) for folder in folders]
    start = None if base is None else _loaded(Path(base), alone=as_runs)
    if as_runs:
        _check_alike(loaded)
    networks = [_network(item) for item in loaded]
    weights = merge_weights(
        [_weights(network) for network in networks],
        method,
        base=None if start is None else _in_trunk(_weights(_network(start)), networks[0]),
        **options,
    )
    model = networks[0]
    with torch.no_grad():
        for name, target in model.state_dict().items():
            target.copy_(weights[name])
    out.mkdir(parents=True, exist_ok=True)
    names = [str(folder.absolute()) for folder in folders]
    about = {
        "sources": names,
        "method": method,
        "base": None if base is None else str(Path(base).absolute()),
        **options,
    }
    write_json(out / "merged.json", about)
    if not as_runs:
        like = next(folder for folder in folders if not is_run(folder))
        checkpoints.save_pretrained(model, out, like=like)
        return out
    with lock(out):
        for name in KEPT:
            if (folders[0] / name).exists():
                write_bytes(out / name, (folders[0] / name).read_bytes())
        save_model(out, model, load_tensors(folders[0] / "model.safetensors")[1])
    return out


def is_run(folder: Path) -> bool:
    """Whether a folder holds a run, and not a checkpoint of the transformers library."""
    check_folder(folder)
    return "model_type" not in read_config(folder)


def _loaded(folder: Path, *, alone: bool) -> Any:
    """A run, or the model of a checkpoint."""
    if not is_run(folder):
        if alone:
            raise WonderlandError(f"Runs are merged here, and {folder} is a checkpoint: give a run as the base too.")
        return checkpoints.load_pretrained(folder, dtype=torch.float32)
    return load(folder)


def _network(item: Any) -> nn.Module:
    """The model of a run or a checkpoint; of a blend beside a checkpoint's network, that network."""
    return item.model if isinstance(item, Run) else item


def _weights(model: nn.Module) -> Weights:
    return {name: value.detach() for name, value in model.state_dict().items()}


def _in_trunk(base: Weights, model: nn.Module) -> Weights:
    """The weights of a base under the names that they have in a model with a head of its own."""
    names = set(model.state_dict())
    if set(base) & names or not any(name.startswith("trunk.") for name in names):
        return base
    return {f"trunk.{name}": value for name, value in base.items()}


def _check_alike(runs: Sequence[Run]) -> None:
    """Refuse runs whose merged model would be tested on rows that one of them was trained on, or read with another encoder."""
    first = runs[0]
    for run in runs[1:]:
        for key, words in (("split", "divide the rows in another way"), ("source", "are of other data")):
            if run.config.get(key) != first.config.get(key):
                raise WonderlandError(
                    f"The runs in {first.folder} and {run.folder} {words}, so that a merged model would be tested on rows that "
                    "one of them learned: fit both with the same data, seed and split."
                )
        if run.recipe.model != first.recipe.model:
            raise WonderlandError(
                f"The runs in {first.folder} and {run.folder} have models of other sizes or kinds: merge runs with the same model."
            )
        if read_json(run.folder / "preprocess.json") != read_json(first.folder / "preprocess.json"):
            raise WonderlandError(
                f"The runs in {first.folder} and {run.folder} prepare the data in another way: fit both with the same options."
            )
