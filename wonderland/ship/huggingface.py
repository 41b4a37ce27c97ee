"""A run as a folder that the transformers library loads: weights, config.json and tokenizer, loaded again and compared."""

import importlib.util
import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from wonderland.checkpoints import load_pretrained, save_pretrained
from wonderland.core import Spec, WonderlandError, write_bytes, write_json
from wonderland.ship.comparing import TOLERANCE

SHAPES = ((1, 2), (2, 7), (5, 33))


def write_folder(run: Any, folder: Path) -> float:
    """Write the checkpoint folder of a run; returns the largest difference of probabilities once it is loaded again."""
    with tempfile.TemporaryDirectory() as scratch:
        save(run, Path(scratch))
        difference = compared(run.model, Path(scratch))
        if not difference <= TOLERANCE:
            raise WonderlandError(
                f"The folder, loaded again, differs from the run by {difference:.1e}, more than {TOLERANCE:g}: it was not written."
            )
    save(run, folder)
    return difference


def save(run: Any, folder: Path) -> None:
    """Weights and config.json, and tokenizer.json with what transformers asks of it."""
    head = getattr(network(run.model), "head", None)
    named = run.classes is not None and getattr(head, "out_features", 0) == len(run.classes)
    labels = run.classes if named else None
    try:
        save_pretrained(run.model, folder, labels=labels)
    except WonderlandError:
        # Dropout counts in training alone, and some families have none: the same weights without it may be of one.
        plain = without_dropout(run)
        if plain is None:
            raise
        save_pretrained(plain, folder, labels=labels)
    for name, content in run.encoder.beside().items():
        if name == "tokenizer.json":
            write_bytes(folder / name, content)
            if not (folder / "tokenizer_config.json").exists():
                write_json(folder / "tokenizer_config.json", tokenizer_settings(run.encoder.tokenizer))


def without_dropout(run: Any) -> Any:
    """The model of a run built without dropout, with its weights; None where it has none."""
    spec = run.recipe.model
    if not isinstance(spec, Spec):
        return None
    given = {name: spec.arguments.get(name) for name in ("dropout", "embed_dropout", "drop_path")}
    zeros = {name: [0.0] * len(value) if isinstance(value, list) else 0.0 for name, value in given.items() if value}
    if not zeros:
        return None
    model = Spec(spec.name, dict(spec.arguments) | zeros).build()
    model.load_state_dict(run.model.state_dict())
    return model.eval()


def tokenizer_settings(tokenizer: Any) -> dict[str, Any]:
    """tokenizer_config.json: the class that reads tokenizer.json as it is, and the tokens with a role."""
    roles = {
        "pad_token": tokenizer.pad,
        "unk_token": tokenizer.unknown,
        "bos_token": tokenizer.begin,
        "eos_token": tokenizer.end,
    }
    return {"tokenizer_class": "PreTrainedTokenizerFast"} | {
        name: tokenizer.token(place) for name, place in roles.items() if place is not None
    }


def network(model: Any) -> Any:
    """The network that is written: of a blend of texts, the one beside the linear model."""
    return getattr(model, "network", model)


def compared(model: Any, folder: Path) -> float:
    """The largest difference of probabilities between a model and its folder, loaded by transformers where it is installed."""
    ours = network(model).eval()
    vocab = getattr(ours, "vocab", None)
    generator = torch.Generator().manual_seed(0)
    largest = 0.0
    theirs = loaded(folder)
    for rows, length in SHAPES:
        if vocab is None:
            x: Tensor = torch.rand(rows, 3, 64, 64, generator=generator)
        else:
            x = torch.randint(1, vocab, (rows, length), generator=generator)
        with torch.no_grad():
            expected, other = ours(x), theirs(x)
        largest = max(largest, float((expected.softmax(-1) - other.softmax(-1)).abs().max()))
    return largest


def loaded(folder: Path) -> Any:
    """A function from inputs to logits, by transformers, else by our own reader of the folder."""
    if importlib.util.find_spec("transformers") is None:
        model = load_pretrained(folder, dtype=torch.float32)
        return lambda x: model(x)
    import transformers

    name = json.loads((folder / "config.json").read_text())["architectures"][0]
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    model = getattr(transformers, name).from_pretrained(folder, dtype=torch.float32).eval()
    return lambda x: model(x).logits
