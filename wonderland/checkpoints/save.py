"""Saving checkpoints: a model as a folder that `from_pretrained` of the transformers library loads."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

from wonderland.checkpoints.config_file import read_config
from wonderland.checkpoints.families import FAMILIES, Family
from wonderland.checkpoints.families.difference import difference
from wonderland.checkpoints.families.family import trunk_of
from wonderland.checkpoints.families.options import Options
from wonderland.checkpoints.outlines import Origin, family_of
from wonderland.checkpoints.weights import SINGLE
from wonderland.core import WonderlandError, disk_trouble, inside, read_bytes, write_bytes, write_json
from wonderland.models.adapt import adapters
from wonderland.models.encoder import Encoder
from wonderland.models.heads import MaskedLM, SequenceClassifier, SpanFinder, TokenClassifier
from wonderland.models.speech.wav2vec2 import SpeechRecogniser
from wonderland.models.text_linear import TextBlend
from wonderland.models.vision.image_model import ImageModel

# Files of a tokenizer and settings of generation, which are copied unchanged.
COMPANIONS = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt",
    "vocab.txt", "spiece.model", "tokenizer.model", "generation_config.json", "chat_template.jinja",
)  # fmt: skip
HEADS: dict[type, tuple[str, ...]] = {
    SpeechRecogniser: ("ctc",),
    MaskedLM: ("lm", "pretraining"),
    SequenceClassifier: ("sequence", "next_sentence"),
    SpanFinder: ("spans",),
    TokenClassifier: ("tokens",),
    Encoder: ("trunk", "encoder"),
}
NULLABLE = {
    "pad_token_id",
    "bos_token_id",
    "eos_token_id",
    "classifier_dropout",
    "sliding_window",
    "attn_logit_softcapping",
    "final_logit_softcapping",
}
TOLD = 3  # differences that the error of a model of no family names
TOKEN_IDS = {"bos_token_id", "eos_token_id", "decoder_start_token_id", "pad_token_id"}


def save_pretrained(
    model: Any, folder: str | Path, *, like: str | Path | None = None, labels: Sequence[str] | None = None
) -> None:
    """Write a model as a checkpoint folder that `from_pretrained` of the transformers library loads, with equal outputs.

    Options that the model does not hold (names of labels, ids of tokens) and the files of the tokenizer come from the folder
    that it was loaded from, or from `like`. A model that was built here is written if it is one of the families; if not, the
    error names the difference. Merge adapters first: `save_pretrained(merge(model), ...)`. `labels` names the classes of a
    head. Of a `TextBlend` the network is written, and not the linear model beside it.
    """
    folder = Path(folder)
    model = model.network if isinstance(model, TextBlend) else model
    if adapted := adapters(model):
        raise WonderlandError(
            f"This model has an adapter at {adapted[0][0]}: save models.merge(model), or the adapter alone with save_adapter."
        )
    origin = _origin(model, like)
    family, head, config = _published_form(model, origin)
    if labels is not None:
        config = _with_labels(config, labels, model, head)
    tensors: dict[str, Tensor] = {}
    state = model.state_dict()
    for ours, conversion in family.conversions(model, head).items():
        if conversion is None:
            continue
        published = conversion.to_published(state[ours].detach().cpu())
        tensors |= {name: part for name, part in zip(conversion.names, published, strict=True) if name}
        tensors |= {name: published[0].clone() for name in conversion.copies}
    if family.unread is not None:
        prefix = family.trunk_prefix(head)
        tensors |= {prefix + name: value for name, value in family.unread(model).items()}
    dtype = next(value.dtype for value in tensors.values() if value.is_floating_point())
    config |= {"dtype": str(dtype).removeprefix("torch.")}
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_trouble(error, folder) from error
    if origin is not None:
        copy_companions(origin.folder, folder)
    write_bytes(folder / SINGLE, save(tensors, metadata={"format": "pt"}))
    write_json(folder / "config.json", config)


def copy_companions(source: Path, folder: Path) -> None:
    """Copy the files of a tokenizer and the settings of generation, those that there are."""
    if source.resolve() == folder.resolve():
        return
    for name in COMPANIONS:
        if (source / name).is_file():
            write_bytes(folder / name, read_bytes(inside(source, name), "companion_bytes"))


def _with_labels(config: dict[str, Any], labels: Sequence[str], model: Any, head: str) -> dict[str, Any]:
    classes = getattr(getattr(model, "head", None), "out_features", 0) if head in ("sequence", "tokens", "image") else 0
    if len(labels) != classes or len(set(labels)) != classes:
        raise WonderlandError(
            f"labels must be {classes} different names, one for each class of the head, not {list(labels)!r:.80}."
        )
    config = {key: value for key, value in config.items() if key not in ("num_labels", "_num_labels")}
    config |= {"id2label": {str(i): name for i, name in enumerate(labels)}}
    return config | {"label2id": {name: i for i, name in enumerate(labels)}}


def _origin(model: Any, like: str | Path | None) -> Origin | None:
    """The folder that options and tokenizer files are taken from: `like`, or the one that the model was loaded from."""
    if like is None:
        return getattr(model, "origin", None) or getattr(trunk_of(model), "origin", None)
    folder = Path(like)
    config = read_config(folder)
    family = family_of(config, folder)
    architectures = config.get("architectures")
    head = "lm"
    if isinstance(architectures, list) and architectures:
        head = family.heads.get(str(architectures[0]), "lm")
    return Origin(folder, config, family.model_type, head)


def _published_form(model: Any, origin: Origin | None) -> tuple[Family, str, dict[str, Any]]:
    """The family of a model, its head, and the options of config.json that describe it exactly."""
    differences: list[str] = []
    # Several families can describe one model: the one that it was loaded from comes first.
    own = [] if origin is None else [FAMILIES[origin.family]]
    for family in [*own, *(family for family in FAMILIES.values() if family not in own)]:
        config = family.to_config(model)
        source = origin if origin is not None and origin.family == family.model_type else None
        head = None if config is None else _head(model, family, source)
        if config is None or head is None:
            continue
        if missing := sorted(key for key, value in config.items() if value is None and key not in NULLABLE):
            _tell(differences, family, f"its {missing[0]} has no name in transformers")
            continue
        reason = ""
        for candidate in _candidates(config, source, head):
            candidate["architectures"] = [name for name, kind in family.heads.items() if kind == head][:1]
            reason = _mismatch(model, candidate, family, head)
            if not reason:
                return family, head, candidate
        _tell(differences, family, reason)
    if not differences:
        trunk = getattr(model, "trunk", None)
        titles = [family.title for family in FAMILIES.values() if family.to_config(trunk) is not None]
        differences = [f"its trunk is {title}, for which transformers has no such head" for title in titles]
    details = f" ({'; '.join(differences[:TOLD])})" if differences else ""
    raise WonderlandError(
        f"This {type(model).__name__} is none of the families that transformers reads, {', '.join(FAMILIES)}{details}."
    )


def _tell(differences: list[str], family: Family, reason: str) -> None:
    """Add why a model is not of a family, unless it is not of another for the same reason."""
    if not any(difference.endswith(f", {reason}") for difference in differences):
        differences.append(f"as {family.title}, {reason}")


def _head(model: Any, family: Family, source: Origin | None) -> str | None:
    """The head of a model in the words of a family, None if transformers has no such head for it."""
    usual = ("image",) if isinstance(model, ImageModel) and isinstance(model.head, nn.Linear) else ("lm", "trunk")
    heads = [head for head in HEADS.get(type(model), usual) if head in family.heads.values()]
    if isinstance(model, MaskedLM):
        heads = [head for head in heads if (head == "pretraining") == (model.pair is not None)]
    if source is not None and source.head in heads:
        return source.head
    return heads[0] if heads else None


def _candidates(config: dict[str, Any], source: Origin | None, head: str) -> Iterator[dict[str, Any]]:
    """Options to try: those of the original folder unchanged, then with what the model changed; or those of the model."""
    if source is None:
        yield config
        return
    yield dict(source.config)
    yield _updated(source.config, config, source.head == head)


def _mismatch(model: Any, config: dict[str, Any], family: Family, head: str) -> str:
    """Why options do not describe a model; empty if they do."""
    options = Options(config, family.title)
    try:
        with torch.device("meta"):
            rebuilt = family.to_spec(options, head, _ModelWeights(model)).build()
        options.check_all_read()
    except WonderlandError as error:
        return str(error)
    return difference(model, rebuilt)


def _updated(before: Mapping[str, Any], now: dict[str, Any], same_head: bool) -> dict[str, Any]:
    """The original options, except for those that the model has changed."""
    original = dict(before)
    labels = before.get("id2label")
    if same_head and isinstance(labels, Mapping) and len(labels) == len(now.get("id2label", labels)):
        now = {key: value for key, value in now.items() if key not in ("id2label", "label2id")}
    # A model does not know its token ids, except for the padding token of a head.
    known = {key for key in TOKEN_IDS if now.get(key) is not None and (key not in before or key == "pad_token_id")}
    now = {key: value for key, value in now.items() if key not in TOKEN_IDS or key in known}
    if "id2label" in now:
        original = {key: value for key, value in original.items() if key not in ("num_labels", "_num_labels")}
    return original | now


class _ModelWeights:
    """The weights of a model that is about to be written, as `to_spec` asks about them."""

    def __init__(self, model: Any):
        self.model = model

    def has(self, name: str) -> bool:
        return getattr(self.model, "pooler", None) is not None

    def tied(self, configured: bool, head: str, embedding: str) -> bool:
        return configured and self.model.head is None

    def equal(self, copy: str, original: str) -> bool:
        return True
