"""The outline of a checkpoint: what config.json and the headers of the weights say, before any weight is loaded."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from wonderland.checkpoints.config_file import check_folder, family_name, read_config
from wonderland.checkpoints.families import FAMILIES, Family
from wonderland.checkpoints.families.options import Options
from wonderland.checkpoints.pooling import pooling_of
from wonderland.checkpoints.weights import DTYPES, WeightFiles
from wonderland.core import Spec, WonderlandError, name_of
from wonderland.core.damage import refuse_damaged
from wonderland.models.heads import SequenceClassifier
from wonderland.nn.positions import Learned

LABELS = ("id2label", "label2id", "num_labels", "_num_labels")


@dataclass(frozen=True)
class Origin:
    """The published form of a model: its folder, the options in config.json, the family, and the head ("lm", "sequence",
    "tokens", "spans", "next_sentence", "pretraining", "ctc", "trunk", "encoder" or "image")."""

    folder: Path
    config: Mapping[str, Any]
    family: str
    head: str


@dataclass(frozen=True)
class Outline(Origin):
    """What is known of the model in a checkpoint folder without its weights.

    spec: builds the model. dtype: the precision of the file. vocab: the number of tokens, 0 for images.
    positions: the longest sequence that its position table allows; None without a table.
    pad: the padding token, and begin: the first token of what an encoder-decoder writes; None if there is none.
    """

    spec: Spec
    dtype: torch.dtype
    vocab: int
    positions: int | None
    pad: int | None
    begin: int | None

    def classifier(self, classes: int, *, pad: int | None = None) -> "Outline":
        """The outline of what `load_classifier` loads: the same trunk under a head for `classes` classes.

        A checkpoint that is such a classifier already stays as it is. `pad` is the padding token of a checkpoint that names
        none.
        """
        arguments = self.spec.arguments
        if "image" in FAMILIES[self.family].heads.values():
            if arguments.get("classes") == classes:
                return self
            kept = {key: value for key, value in self.config.items() if key not in LABELS} | {"num_labels": classes}
            spec = self.spec.changed(classes=classes)
            return replace(self, config=kept, head="image", spec=spec, dtype=torch.float32)
        if self.spec.name == name_of(SequenceClassifier) and arguments["classes"] == classes and self.pad is not None:
            return self
        pad = pad if self.pad is None else self.pad
        config = {key: value for key, value in self.config.items() if key not in LABELS}
        config |= {"num_labels": classes, "pad_token_id": pad}
        family = FAMILIES[self.family]
        pool = pooling_of(self.folder) if self.head == "trunk" else None
        if pool is not None:
            trunk = self.spec.changed(pooler=False) if arguments.get("pooler") else self.spec
            spec = SequenceClassifier.spec(trunk=trunk, classes=classes, pool=pool, pad=pad)
        elif "sequence" in family.heads.values():
            weights = WeightFiles(self.folder, family.prefix)
            spec = family.to_spec(Options(config, family.title), "sequence", weights)
        else:
            trunk = Spec(self.spec.name, {**arguments, "tie": True})
            spec = SequenceClassifier.spec(trunk=trunk, classes=classes, pool="last", bias=False, pad=pad)
        return replace(self, config=config, head="sequence", spec=spec, pad=pad, dtype=torch.float32)


def outline(folder: str | Path) -> Outline:
    """What config.json and the headers of the weights say about the model of a checkpoint folder, to plan without loading it.

    Everything that `load_pretrained` checks before it takes memory is checked here: known family and options, and the names
    and shapes of all tensors. No weights are read, except for the tensors of a tied head or embedding that the file repeats:
    those are compared, because they decide whether the model is tied.
    """
    folder = Path(folder)
    with refuse_damaged(f"The checkpoint in {folder}"):
        return _outline(folder)


def _outline(folder: Path) -> Outline:
    check_folder(folder)
    config = read_config(folder)
    family = family_of(config, folder)
    weights = WeightFiles(folder, family.prefix)
    head = _head(config, family, weights)
    options = Options(config, family.title)
    spec = family.to_spec(options, head, weights)
    options.check_all_read()
    check_weights(spec, family, head, weights)
    trunk = spec.arguments.get("trunk", spec)
    return Outline(
        folder=folder,
        config=config,
        family=family.model_type,
        head=head,
        spec=spec,
        dtype=weights.dtype,
        vocab=trunk.arguments.get("vocab", 0),
        positions=_positions(trunk),
        pad=options.pad,
        begin=trunk.arguments.get("begin"),
    )


def family_of(config: Mapping[str, Any], folder: Path) -> Family:
    """The family that a configuration names as its model_type."""
    return FAMILIES[family_name(config, folder)]


def _head(config: Mapping[str, Any], family: Family, weights: WeightFiles) -> str:
    architectures = config.get("architectures")
    if architectures is None:
        # Without a named architecture, the weights show whether there is a language model's head.
        return "lm" if any(_is_lm_head(name, family) for name in weights.headers) else "trunk"
    if not isinstance(architectures, list) or len(architectures) != 1 or str(architectures[0]) not in family.heads:
        raise WonderlandError(
            f"config.json says architectures = {repr(architectures)[:80]}, but for {family.title} only these can be loaded: "
            f"{', '.join(family.heads)}."
        )
    return family.heads[architectures[0]]


def _is_lm_head(name: str, family: Family) -> bool:
    prefixes = ("lm_head.", "embed_out.", "generator_", "head.", "cls.predictions.", "vocab_")
    return name.startswith(prefixes) or (family.model_type == "t5" and name.startswith("decoder."))


def _positions(trunk: Spec) -> int | None:
    position = trunk.arguments.get("position")
    if isinstance(position, Spec) and position.name == name_of(Learned):
        return position.arguments["length"]
    return None


def check_weights(spec: Spec, family: Family, head: str, weights: WeightFiles) -> None:
    """Compare the names and shapes of the model, built on the meta device, with the headers of the file."""
    depth = max((value for key, value in _integers(spec) if key in ("depth", "target_depth")), default=1)
    if depth > len(weights.headers):
        raise WonderlandError(
            f"{weights.folder / 'config.json'} asks for {depth:,} layers, but there are only {len(weights.headers):,} "
            "tensors: the weights and config.json do not belong together."
        )
    try:
        with torch.device("meta"):
            model = spec.build()
    except WonderlandError:
        raise
    except (TypeError, ValueError, RuntimeError, ArithmeticError, MemoryError) as error:
        raise WonderlandError(
            f"The model of {weights.folder} cannot be built: {str(error).splitlines()[0][:200]}"
        ) from error
    used: set[str] = set()
    state = model.state_dict()
    for ours, conversion in family.conversions(model, head).items():
        if conversion is None:
            continue
        shapes = conversion.published_shapes(tuple(state[ours].shape))
        used.update(
            _checked_name(name, shape, family, weights)
            for name, shape in zip(conversion.names, shapes, strict=True)
            if name
        )
        used.update(weights.find(name) or name for name in conversion.copies)
    for name in weights.headers:
        if name not in used and not _is_unused(name, family):
            raise WonderlandError(
                f"{weights.folder} holds {name[:80]!r}, which {family.title} with these options does not have: "
                "the weights and config.json do not belong together."
            )


def _checked_name(name: str, shape: tuple[int, ...], family: Family, weights: WeightFiles) -> str:
    """The name in the file of a tensor with the right shape and a floating point type."""
    stored = weights.find(name)
    if stored is None:
        raise WonderlandError(
            f"{weights.folder} lacks {name!r}, which {family.title} with these options has: "
            "the weights and config.json do not belong together."
        )
    if weights.shape(stored) != shape:
        raise WonderlandError(
            f"{weights.folder}: {stored!r} has shape {list(weights.shape(stored))}, but config.json asks for {list(shape)}."
        )
    dtype = weights.headers[stored]["dtype"]
    if dtype not in DTYPES and not (dtype == "I64" and name.endswith("num_batches_tracked")):
        raise WonderlandError(
            f"{weights.folder}: {stored!r} has the type {dtype}, but weights are floating point numbers."
        )
    return stored


def _integers(spec: Spec) -> Iterator[tuple[str, int]]:
    shared = spec.arguments.get("groups") is not None  # layers that share their weights need no tensors of their own
    for key, value in spec.arguments.items():
        if shared and key == "depth":
            continue
        if isinstance(value, Spec):
            yield from _integers(value)
        elif isinstance(value, int):
            yield key, value
        elif key == "depths":
            yield "depth", sum(value)


def _is_unused(name: str, family: Family) -> bool:
    # A tied head may be written out again; `tied` has compared it with the embedding.
    tied_heads = {
        "lm_head.weight",
        "embed_out.weight",
        "head.weight",
        "cls.predictions.decoder.weight",
        "vocab_projector.weight",
    }
    return re.fullmatch(family.unused, name) is not None or name in tied_heads
