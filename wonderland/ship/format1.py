"""Format 1 of config.json, which version 0.9 wrote, read as format 2."""

from typing import Any

from wonderland.core import WonderlandError
from wonderland.kinds import KINDS

# Options of version 0.9 that belong to training; the others are of the kind of data.
_TRAINING = ("epochs", "steps", "budget", "lr", "weight_decay", "batch_size", "clip", "accumulate", "precision", "patience",
             "test", "level", "seed", "threads")  # fmt: skip
_DEFAULTS = {"test": 0.2, "level": 0.9, "seed": 0}


def upgrade(config: dict[str, Any]) -> dict[str, Any]:
    """Convert a config of format 1 to format 2; an incomplete one is refused."""
    try:
        source, request, recipe = (dict(config[name]) for name in ("source", "request", "recipe"))
        kind = str(recipe.pop("kind"))
        members, folds, variants = (recipe.pop(name) for name in ("members", "folds", "kinds"))
        betas, decay, warmup = (recipe.pop(name) for name in ("betas", "weight_decay", "warmup"))
        augment = recipe.pop("augment")
        augment = None if augment is None else {"part": "data.Augment", "arguments": dict(augment)}
    except (KeyError, TypeError, ValueError) as error:
        raise WonderlandError(
            "config.json of format 1 does not hold a whole recipe: it is damaged or not ours."
        ) from error
    if kind not in KINDS:
        raise WonderlandError("config.json names a kind of data that is not known here: it is damaged or not ours.")
    schedule = {"warmup": warmup} | dict(KINDS[kind].format1_schedule)
    recipe |= {
        "learner": _part("train.GradientDescent"),
        "optimizer": _part("optim.FusedAdamW", weight_decay=decay, betas=betas),
        "schedule": _part("optim.warmup_cosine", **schedule),
        "augment": augment,
        "ensemble": {"members": members, "folds": folds, "variants": variants} if members else None,
    }
    options = {
        name: value for name, value in request.items() if value is not None and value is not False and value != []
    }
    training = {name: options.pop(name) for name in _TRAINING if name in options}
    training = {name: value for name, value in training.items() if _DEFAULTS.get(name) != value}
    asked = options.pop("kind", None)
    return config | {
        "format": 2,
        "source": source | {"kind": kind},
        "request": {"kind": asked, "options": options, "training": training},
        "recipe": recipe,
        "device": "cpu",
    }


def _part(name: str, **arguments: Any) -> dict[str, Any]:
    return {"part": name, "arguments": arguments}
