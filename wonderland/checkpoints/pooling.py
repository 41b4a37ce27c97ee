"""How a checkpoint of sentence vectors pools its tokens, read from the files that sentence-transformers writes."""

from pathlib import Path

from wonderland.core import WonderlandError, read_json

POOLINGS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "first",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "last",
}


def pooling_of(folder: Path) -> str | None:
    """The pooling named by `modules.json` and the configuration of its pooling module; None for a folder without one."""
    if not (folder / "modules.json").is_file():
        return None
    modules = read_json(folder / "modules.json", strict=False)
    named = [module for module in modules if isinstance(module, dict)] if isinstance(modules, list) else []
    places = [str(module.get("path")) for module in named if str(module.get("type")).endswith(".Pooling")]
    if not places:
        return None
    place = folder / places[0]
    if len(places) > 1 or place.parent != folder or not (place / "config.json").is_file():
        raise WonderlandError(f"{folder / 'modules.json'} names a pooling that is not there: copy the folder again.")
    config = read_json(place / "config.json", strict=False)
    chosen = [name for name, value in config.items() if name.startswith("pooling_mode") and value is True]
    if len(chosen) != 1 or chosen[0] not in POOLINGS:
        shown = " and ".join(chosen) or "none"
        raise WonderlandError(
            f"{place / 'config.json'} asks for the pooling {shown}: mean, max, first and last token are known."
        )
    return POOLINGS[chosen[0]]
