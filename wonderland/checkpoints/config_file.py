"""The config.json of a checkpoint folder, read and checked without loading torch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wonderland.checkpoints.families.names import DEFINED_IN
from wonderland.core import WonderlandError, inside, nearest, read_json


def check_folder(folder: Path) -> None:
    """Refuse a place that is not a folder."""
    if not folder.is_dir():
        why = "a checkpoint is a folder, and this is a file" if folder.is_file() else "the folder does not exist"
        raise WonderlandError(f"There is no checkpoint in {folder}: {why}.")


def read_config(folder: Path) -> dict[str, Any]:
    """The options in config.json."""
    if not (folder / "config.json").exists():
        raise WonderlandError(f"{folder} is not a checkpoint: it has no config.json.")
    config = read_json(inside(folder, "config.json"), strict=False)
    if not isinstance(config, dict):
        raise WonderlandError(
            f"{folder / 'config.json'} is not an object of options: it is damaged or not of a checkpoint."
        )
    return config


def family_name(config: Mapping[str, Any], folder: Path) -> str:
    """The name of the family that a configuration says it is of, as its model_type."""
    name = config.get("model_type")
    if not isinstance(name, str) or name not in DEFINED_IN:
        hint = nearest(name, DEFINED_IN) if isinstance(name, str) else ""
        says = "has no model_type" if name is None else f"says model_type = {repr(name)[:60]}"
        raise WonderlandError(
            f"{folder / 'config.json'} {says}.{hint} The families that can be loaded are {', '.join(DEFINED_IN)}."
        )
    return name


def refuse_unknown_family(start: Any) -> None:
    """Refuse a checkpoint of a family that cannot be loaded before anything is asked about the data."""
    folder = Path(str(start)).expanduser()
    if (folder / "config.json").is_file():
        family_name(read_config(folder), folder)


def refuse_unknown_checkpoint(source: Any) -> None:
    """The same for a place that may be a run as well, whose config.json has no model_type."""
    folder = Path(str(source)).expanduser()
    if (folder / "config.json").is_file() and "model_type" in read_config(folder):
        refuse_unknown_family(folder)
