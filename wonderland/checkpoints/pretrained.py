"""Published checkpoints: a folder of the transformers library to a model of ours with the same numbers, and back."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from wonderland.checkpoints.families import FAMILIES, Family
from wonderland.checkpoints.families.family import trunk_of
from wonderland.checkpoints.families.options import Options
from wonderland.checkpoints.families.outline import difference
from wonderland.core import (
    MIB,
    Spec,
    WonderlandError,
    disk_trouble,
    inside,
    nearest,
    read_bytes,
    read_header,
    read_json,
    write_bytes,
    write_json,
)
from wonderland.models.adapt import adapters
from wonderland.models.encoder import Encoder
from wonderland.models.heads import MaskedLM, SequenceClassifier, SpanFinder, TokenClassifier

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
SHARDS = 1000
DTYPES = {"F64": torch.float64, "F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}
# What belongs to a tokenizer, and the settings of generation: carried along as they are.
BESIDE = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt",
    "vocab.txt", "spiece.model", "tokenizer.model", "generation_config.json", "chat_template.jinja",
)  # fmt: skip
BESIDE_LIMIT = 256 * MIB


@dataclass(frozen=True)
class Origin:
    """Where a model came from: its folder, its published options, its architecture, and the spec that it was built from."""

    folder: Path
    config: Mapping[str, Any]
    family: str
    head: str
    spec: Spec


def check_folder(folder: Path) -> None:
    """Say why there can be no checkpoint in a place that is not a folder."""
    if not folder.is_dir():
        why = "a checkpoint is a folder, and this is a file" if folder.is_file() else "the folder does not exist"
        raise WonderlandError(f"There is no checkpoint in {folder}: {why}.")


def load_pretrained(folder: str | Path, *, dtype: torch.dtype | None = None) -> Any:
    """The model of a checkpoint folder of the transformers library (config.json and safetensors), with its numbers.

    GPT-2, LLaMA, BERT, DistilBERT, T5, Mamba and RWKV; with their heads for words, sequences, tags and spans. What comes
    back is a `Decoder`, `Encoder`, `EncoderDecoder`, or one of the heads on them, in evaluation mode and in the precision of
    the file (or `dtype`). An option that is not known here is refused, never ignored. No code of the folder is run, no
    pickle is read, and names and shapes are compared with the file's header before memory is taken.

    Positions count the real tokens of a row: where transformers is given padding on the left, give it position_ids too.
    """
    folder = Path(folder)
    if dtype is not None and dtype not in DTYPES.values():
        raise WonderlandError(f"A model is loaded as float64, float32, bfloat16 or float16, not as {dtype}.")
    check_folder(folder)
    config = _config(folder)
    family = _family(config, folder)
    file = File(folder, family)
    head = _head(config, family, file)
    options = Options(config, family.title)
    spec = family.describe(options, head, file)
    options.finish()
    _compare(spec, family, head, file)
    kind = file.dtype if dtype is None else dtype
    with unfilled(), _default(torch.float64 if kind == torch.float64 else torch.float32):
        model = spec.build()
    model = model.to(kind)
    _fill(model, family, head, file)
    model.origin = Origin(folder, config, family.kind, head, spec)
    if trunk_of(model) is not model:
        trunk_of(model).origin = Origin(folder, config, family.kind, "trunk", spec.arguments["trunk"])
    return model.eval()


def load_classifier(folder: str | Path, classes: int, *, pad: int | None = None) -> Any:
    """The trunk of a checkpoint under a head for so many classes, the head that transformers has for its family.

    A checkpoint that is such a classifier keeps its head; any other gets a new one, which has everything to learn. `pad` is
    the token that fills rows up, where the checkpoint names none.
    """
    loaded = load_pretrained(folder, dtype=torch.float32)
    origin: Origin = loaded.origin
    if isinstance(loaded, SequenceClassifier) and loaded.head.out_features == classes and loaded.pad is not None:
        return loaded
    family, named = FAMILIES[origin.family], origin.config.get("pad_token_id")
    pad = named if isinstance(named, int) and named >= 0 else pad
    labels = ("id2label", "label2id", "num_labels", "_num_labels")
    config = {key: value for key, value in origin.config.items() if key not in labels}
    config |= {"num_labels": classes, "pad_token_id": pad}
    if "sequence" in family.heads.values():
        spec = family.describe(Options(config, family.title), "sequence", File(origin.folder, family))
    else:
        trunk = origin.spec
        trunk = Spec(trunk.name, {**trunk.arguments, "tie": True})
        spec = SequenceClassifier.spec(trunk=trunk, classes=classes, pool="last", bias=False, pad=pad)
    model = spec.build()
    found, wanted = trunk_of(loaded).state_dict(), model.trunk.state_dict()
    if lacking := [name for name in wanted if name not in found and not name.startswith("pooler.")]:
        raise WonderlandError(
            f"The checkpoint in {folder} lacks {lacking[0]!r}, without which it cannot be a classifier."
        )
    model.trunk.load_state_dict({name: found.get(name, value) for name, value in wanted.items()})
    model.origin = Origin(origin.folder, config, family.kind, "sequence", spec)
    return model.eval()


def save_pretrained(
    model: Any, folder: str | Path, *, like: str | Path | None = None, labels: Sequence[str] | None = None
) -> None:
    """Write a model as a checkpoint folder that `from_pretrained` of the transformers library loads, with equal numbers.

    A model that was loaded goes back as what it was: options that its class does not hold (names of labels, ids of tokens)
    and the files of its tokenizer come from the folder it came from, or from `like`. A model built here is written if it is
    one of the families; what differs is told. Adapters are merged first: `save_pretrained(merge(model), ...)`. `labels` names
    the classes of a head.
    """
    folder = Path(folder)
    if held := adapters(model):
        raise WonderlandError(
            f"This model holds an adapter at {held[0][0]}: save models.merge(model), or the adapter alone with save_adapter."
        )
    origin = _origin_of(model, like)
    family, head, config = _published(model, origin)
    if labels is not None:
        classes = getattr(getattr(model, "head", None), "out_features", 0) if head in ("sequence", "tags") else 0
        if len(labels) != classes or len(set(labels)) != classes:
            raise WonderlandError(
                f"labels are {classes} different names, one for each class of the head, not {list(labels)!r:.80}."
            )
        config = {key: value for key, value in config.items() if key not in ("num_labels", "_num_labels")}
        config |= {"id2label": {str(i): name for i, name in enumerate(labels)}}
        config |= {"label2id": {name: i for i, name in enumerate(labels)}}
    tensors: dict[str, Tensor] = {}
    state = model.state_dict()
    for ours, piece in family.pieces(model, head).items():
        if piece is None:
            continue
        parts = piece.to_theirs(state[ours].detach().cpu())
        tensors |= dict(zip(piece.names, parts, strict=True))
        tensors |= {name: parts[0].clone() for name in piece.also}
    kind = next(value.dtype for value in tensors.values() if value.is_floating_point())
    config |= {"dtype": str(kind).removeprefix("torch.")}
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_trouble(error, folder) from error
    if origin is not None:
        carry(origin.folder, folder)
    write_bytes(folder / SINGLE, save(tensors, metadata={"format": "pt"}))
    write_json(folder / "config.json", config)


def carry(source: Path, folder: Path) -> None:
    """Copy the files of a tokenizer, and the settings of generation, where they are."""
    if source.resolve() == folder.resolve():
        return
    for name in BESIDE:
        if (source / name).is_file():
            write_bytes(folder / name, read_bytes(inside(source, name), BESIDE_LIMIT))


class File:
    """The weights of a folder: names and shapes from the headers of its files, tensors one at a time."""

    def __init__(self, folder: Path, family: Family):
        self.folder, self.family = folder, family
        self.places: dict[str, Path] = {}
        self.headers: dict[str, Any] = {}
        for path, wanted in _files(folder).items():
            header = {name: entry for name, entry in read_header(path).items() if name != "__metadata__"}
            for name in header if wanted is None else wanted:
                if name not in header:
                    raise WonderlandError(
                        f"{folder / INDEX} says that {path.name} holds {name[:80]!r}, which it does not."
                    )
                self.places[name], self.headers[name] = path, _entry(header[name], name, path)
        kinds = {entry["dtype"] for entry in self.headers.values() if entry["dtype"] in DTYPES}
        if not kinds:
            raise WonderlandError(f"{folder} holds no weights in floating point numbers.")
        self.dtype = next(DTYPES[kind] for kind in DTYPES if kind in kinds)

    def find(self, name: str) -> str | None:
        """The name under which a tensor is in the file: its own, one without the trunk's prefix, or one of older days."""
        prefix = self.family.prefix
        for one in (name, name.removeprefix(prefix), prefix + name):
            older = one.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
            for tried in (one, older):
                if tried in self.headers:
                    return tried
        return None

    def has(self, name: str) -> bool:
        """Whether a tensor is there."""
        return self.find(name) is not None

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor by its header."""
        return tuple(self.headers[name]["shape"])

    def tied(self, said: bool, head: str, table: str) -> bool:
        """Whether a head is the embedding: it is not if the file has one of its own that differs."""
        own, rows = self.find(head), self.find(table)
        if own is None or rows is None:
            if not said and own is None:
                raise WonderlandError(
                    f"{self.folder} has no {head!r}, the weights of the head, and says that they are not those of the embedding."
                )
            return said
        return said and self.same(head, table)

    def same(self, copy: str, table: str) -> bool:
        """Whether a tensor that repeats another is equal to it; one that is not there is."""
        one, other = self.find(copy), self.find(table)
        if one is None or other is None or one == other:
            return True
        return self.shape(one) == self.shape(other) and torch.equal(self.read(one), self.read(other))

    def read(self, name: str) -> Tensor:
        """One tensor."""
        path = self.places[name]
        try:
            with safe_open(path, framework="pt") as file:
                return file.get_tensor(name)
        except (SafetensorError, ValueError, OSError) as error:
            raise WonderlandError(f"{path} is not a safetensors file: it is damaged, cut short or not ours.") from error


class unfilled(TorchFunctionMode):
    """Build without drawing weights that are overwritten at once."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _DRAWING:
            return args[0]
        return func(*args, **(kwargs or {}))


_DRAWING = {torch.Tensor.normal_, torch.Tensor.uniform_}


@contextmanager
def _default(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _config(folder: Path) -> dict[str, Any]:
    if not (folder / "config.json").exists():
        raise WonderlandError(f"{folder} is not a checkpoint: it has no config.json.")
    config = read_json(inside(folder, "config.json"))
    if not isinstance(config, dict):
        raise WonderlandError(
            f"{folder / 'config.json'} is not a table of options: it is damaged or not a checkpoint's."
        )
    return config


def _family(config: dict[str, Any], folder: Path) -> Family:
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        told = repr(kind)[:60] if kind is not None else "no family"
        hint = nearest(kind, FAMILIES) if isinstance(kind, str) else ""
        raise WonderlandError(
            f"{folder / 'config.json'} says model_type = {told}.{hint} The families that can be loaded are "
            f"{', '.join(FAMILIES)}."
        )
    return FAMILIES[kind]


def _head(config: dict[str, Any], family: Family, file: File) -> str:
    named = config.get("architectures")
    if named is None and family.heads:
        # A configuration that does not say has the head that its weights belong to.
        return "words" if any(_is_head(name, family) for name in file.headers) else "trunk"
    if not isinstance(named, list) or len(named) != 1 or str(named[0]) not in family.heads:
        shown = repr(named)[:80]
        raise WonderlandError(
            f"config.json says architectures = {shown}, and those of {family.title} that can be loaded are "
            f"{', '.join(family.heads)}."
        )
    return family.heads[named[0]]


def _is_head(name: str, family: Family) -> bool:
    return name.startswith(("lm_head.", "head.", "cls.predictions.", "vocab_")) or (
        family.kind == "t5" and name.startswith("decoder.")
    )


def _files(folder: Path) -> dict[Path, list[str] | None]:
    """The files of weights, and which names to take of each; None for all."""
    if (folder / SINGLE).exists():
        return {inside(folder, SINGLE): None}
    if not (folder / INDEX).exists():
        pickled = sorted(path.name for path in folder.glob("*.bin")) + sorted(
            path.name for path in folder.glob("*.pt*")
        )
        if pickled:
            raise WonderlandError(
                f"{folder} holds its weights as {pickled[0]}, a pickle, which may run any code when it is read, so it is not. "
                "Convert it where you trust it: AutoModel.from_pretrained(folder).save_pretrained(folder) of transformers "
                "writes model.safetensors (take the class that config.json names under architectures)."
            )
        raise WonderlandError(f"{folder} has no weights: neither {SINGLE} nor {INDEX}.")
    index = read_json(inside(folder, INDEX))
    places = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(places, dict) or not places or not all(isinstance(value, str) for value in places.values()):
        raise WonderlandError(f"{folder / INDEX} does not say which file holds which tensor: it is damaged.")
    found: dict[Path, list[str] | None] = {}
    for name, file in places.items():
        found.setdefault(inside(folder, file), []).append(name)  # pyright: ignore[reportOptionalMemberAccess]
        if len(found) > SHARDS:
            raise WonderlandError(f"{folder / INDEX} names more than {SHARDS:,} files, so it is not read.")
    return found


def _entry(entry: Any, name: str, path: Path) -> dict[str, Any]:
    shape = entry.get("shape") if isinstance(entry, dict) else None
    fine = isinstance(shape, list) and all(isinstance(size, int) and 0 <= size < 1 << 40 for size in shape)
    if not fine or not isinstance(entry.get("dtype"), str):
        raise WonderlandError(f"{path}: the header says nothing proper of {name[:80]!r}: it is damaged.")
    return entry


def _compare(spec: Spec, family: Family, head: str, file: File) -> None:
    """The model without memory, its names and shapes against those of the file."""
    depth = max([value for key, value in _sizes(spec) if key in ("depth", "target_depth")], default=1)
    if depth > len(file.headers):
        raise WonderlandError(
            f"{file.folder / 'config.json'} asks for {depth:,} layers, and there are {len(file.headers):,} tensors: "
            "the two do not belong together."
        )
    try:
        with torch.device("meta"):
            model = spec.build()
    except WonderlandError:
        raise
    except (TypeError, ValueError, RuntimeError, ArithmeticError, MemoryError) as error:
        raise WonderlandError(
            f"The model of {file.folder} cannot be built: {str(error).splitlines()[0][:200]}"
        ) from error
    needed: set[str] = set()
    state = model.state_dict()
    pieces = family.pieces(model, head)
    for ours, piece in pieces.items():
        if piece is None:
            continue
        for name, shape in zip(piece.names, piece.shapes(tuple(state[ours].shape)), strict=True):
            found = file.find(name)
            if found is None:
                raise WonderlandError(
                    f"{file.folder} lacks {name!r}, which a {family.title} of these options has: "
                    "the weights and config.json do not belong together."
                )
            if file.shape(found) != shape:
                raise WonderlandError(
                    f"{file.folder}: {found!r} has shape {list(file.shape(found))}, and by config.json it is {list(shape)}."
                )
            if file.headers[found]["dtype"] not in DTYPES:
                kind = file.headers[found]["dtype"]
                raise WonderlandError(f"{file.folder}: {found!r} holds {kind}: weights are floating point numbers.")
            needed.add(found)
        needed.update(file.find(name) or name for name in piece.also)
    for name in file.headers:
        if name not in needed and not _spare(name, family):
            raise WonderlandError(
                f"{file.folder} holds {name[:80]!r}, for which this {family.title} has no place: "
                "the weights and config.json do not belong together."
            )


def _sizes(spec: Spec) -> Iterator[tuple[str, int]]:
    for key, value in spec.arguments.items():
        if isinstance(value, Spec):
            yield from _sizes(value)
        elif isinstance(value, int):
            yield key, value


def _spare(name: str, family: Family) -> bool:
    # A tied head may be written out again; that it is the embedding was compared before.
    repeated = {"lm_head.weight", "head.weight", "cls.predictions.decoder.weight", "vocab_projector.weight"}
    return re.fullmatch(family.spare, name) is not None or name in repeated


def _fill(model: nn.Module, family: Family, head: str, file: File) -> None:
    state = model.state_dict()
    with torch.no_grad():
        for ours, piece in family.pieces(model, head).items():
            if piece is None:
                continue
            target = state[ours]
            rows = 0
            for name, size in zip(piece.names, piece.sizes, strict=True):
                part = target[rows : rows + size] if len(piece.names) > 1 else target
                found = file.read(file.find(name) or name)
                if not torch.isfinite(found).all():
                    raise WonderlandError(f"{file.folder}: {name!r} holds values that are not finite: it is damaged.")
                part.copy_(piece.to_ours(found, tuple(part.shape)))
                rows += size
        if family.finish is not None:
            family.finish(model)


def _origin_of(model: Any, like: str | Path | None) -> Origin | None:
    own: Origin | None = getattr(model, "origin", None) or getattr(trunk_of(model), "origin", None)
    if like is None:
        return own
    folder = Path(like)
    config = _config(folder)
    family = _family(config, folder)
    named = config.get("architectures")
    head = family.heads.get(str(named[0]), "words") if isinstance(named, list) and named else "words"
    return Origin(folder, config, family.kind, head, own.spec if own else Spec("nn.identity"))


HEADS: dict[type, tuple[str, ...]] = {
    MaskedLM: ("words", "pretraining"),
    SequenceClassifier: ("sequence", "next"),
    SpanFinder: ("spans",),
    TokenClassifier: ("tags",),
    Encoder: ("trunk", "trunk encoder"),
}


def _published(model: Any, origin: Origin | None) -> tuple[Family, str, dict[str, Any]]:
    """The family that a model is of, its head, and its options."""
    reasons = []
    possible = HEADS.get(type(model), ("words", "trunk"))
    for family in FAMILIES.values():
        config = family.config(model)
        if config is None:
            continue
        came = origin is not None and origin.family == family.kind
        heads = [head for head in possible if head in family.heads.values()]
        if isinstance(model, MaskedLM):
            heads = [head for head in heads if (head == "pretraining") == (model.pair is not None)]
        if origin is not None and came and origin.head in heads:
            heads = [origin.head]
        if not heads:
            continue
        head = heads[0]
        if missing := sorted(key for key, value in config.items() if value is None and key not in _MAY_BE_NULL):
            reasons.append(f"as {family.title}, there is no name for its {missing[0]}")
            continue
        tried = [config]
        if origin is not None and came:
            # A model that still is what it was goes back with the very options that it came with.
            tried = [dict(origin.config), _kept(origin.config, config, origin.head == head)]
        words = ""
        for one in tried:
            one["architectures"] = [name for name, kind in family.heads.items() if kind == head][:1]
            words = _unlike(model, one, family, head)
            if not words:
                return family, head, one
        reasons.append(f"as {family.title}, {words}")
    under = (
        []
        if reasons
        else [one.title for one in FAMILIES.values() if one.config(getattr(model, "trunk", None)) is not None]
    )
    reasons += [f"its trunk is {title}, for which transformers has no such head" for title in under]
    told = f" ({'; '.join(reasons)})" if reasons else ""
    raise WonderlandError(
        f"This {type(model).__name__} is none of the families that transformers reads, {', '.join(FAMILIES)}{told}."
    )


def _unlike(model: Any, config: dict[str, Any], family: Family, head: str) -> str:
    """What keeps options from being those of a model, in words."""
    options = Options(config, family.title)
    try:
        with torch.device("meta"):
            twin = family.describe(options, head, _Written(model)).build()
        options.finish()
    except WonderlandError as error:
        return str(error)
    return difference(model, twin)


_MAY_BE_NULL = {"pad_token_id", "bos_token_id", "eos_token_id", "classifier_dropout"}


def _kept(before: Mapping[str, Any], now: dict[str, Any], same: bool) -> dict[str, Any]:
    """Options as they were, except for what the model says otherwise now."""
    kept = dict(before)
    labels = before.get("id2label")
    if same and isinstance(labels, Mapping) and len(labels) == len(now.get("id2label", labels)):
        now = {key: value for key, value in now.items() if key not in ("id2label", "label2id")}
    # Ids of tokens are not the model's to know, except for padding under a head.
    free = {"bos_token_id", "eos_token_id", "decoder_start_token_id", "pad_token_id"}
    own = {key for key in free if now.get(key) is not None and (key not in before or key == "pad_token_id")}
    now = {key: value for key, value in now.items() if key not in free or key in own}
    if "id2label" in now:
        kept = {key: value for key, value in kept.items() if key not in ("num_labels", "_num_labels")}
    return kept | now


class _Written:
    """The file that is about to be written, as `describe` looks into it."""

    def __init__(self, model: Any):
        self.model = model

    def has(self, name: str) -> bool:
        return getattr(self.model, "pooler", None) is not None

    def tied(self, said: bool, head: str, table: str) -> bool:
        return said and self.model.head is None

    def same(self, copy: str, table: str) -> bool:
        return True
