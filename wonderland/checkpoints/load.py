"""Loading checkpoints: a folder of the transformers library to a model with the same outputs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from wonderland.checkpoints.families import FAMILIES, Family
from wonderland.checkpoints.families.family import trunk_of
from wonderland.checkpoints.outlines import Outline, outline
from wonderland.checkpoints.weights import DTYPES, WeightFiles
from wonderland.core import WonderlandError
from wonderland.core.damage import refuse_damaged


def load_pretrained(folder: str | Path, *, dtype: torch.dtype | None = None) -> Any:
    """The model of a checkpoint folder of the transformers library (config.json and safetensors), with equal outputs.

    GPT-2, LLaMA, BERT, DistilBERT, T5, Mamba and RWKV, with their heads for language models, classification of sequences and
    tokens, and spans; ResNet, RegNet, ConvNeXt, ViT and DINOv2 for images. The result is a `Decoder`, `Encoder`,
    `EncoderDecoder`, one of the heads on them, or a network of images, in evaluation mode and in the precision of the file (or `dtype`); its `origin` is the `Outline` of the folder. An option that is not supported
    is refused, never ignored. No code of the folder is run, no pickle is read, and names and shapes are compared with the
    headers before memory is allocated.

    Positions count the real tokens of a row, so left padding changes nothing; for transformers to agree there, give it
    position_ids.
    """
    if dtype is not None and dtype not in DTYPES.values():
        raise WonderlandError(f"A model can be loaded as float64, float32, bfloat16 or float16, not as {dtype}.")
    origin = outline(folder)
    with refuse_damaged(f"The checkpoint in {origin.folder}"):
        return _loaded(origin, origin.dtype if dtype is None else dtype)


def _loaded(origin: Outline, dtype: torch.dtype) -> Any:
    """The model of an outline, with its weights."""
    with skip_initialization(), _default_dtype(torch.float64 if dtype == torch.float64 else torch.float32):
        model: Any = origin.spec.build()
    model = model.to(dtype)
    family = FAMILIES[origin.family]
    _copy_weights(model, family, origin.head, WeightFiles(origin.folder, family.prefix))
    model.origin = origin
    if trunk_of(model) is not model:
        trunk_of(model).origin = replace(origin, head="trunk", spec=origin.spec.arguments["trunk"])
    return model.eval()


def load_classifier(folder: str | Path, classes: int, *, pad: int | None = None) -> Any:
    """The trunk of a checkpoint under a head for `classes` classes, in float32: the head that transformers has for its family.

    A checkpoint that is such a classifier keeps its head; any other gets a new one with random weights. `pad` is the padding
    token of a checkpoint that names none. `outline(folder).classifier(classes)` gives its spec without loading it.
    """
    loaded = load_pretrained(folder, dtype=torch.float32)
    origin: Outline = loaded.origin.classifier(classes, pad=pad)
    if origin is loaded.origin:
        return loaded
    model: Any = origin.spec.build()
    if origin.head == "image":
        kept = {name: value for name, value in loaded.state_dict().items() if not name.startswith("head.")}
        model.load_state_dict(kept, strict=False)
        model.origin = origin
        return model.eval()
    weights, expected = trunk_of(loaded).state_dict(), model.trunk.state_dict()
    if missing := [name for name in expected if name not in weights and not name.startswith("pooler.")]:
        raise WonderlandError(f"The checkpoint in {folder} lacks {missing[0]!r}, which a classifier needs.")
    model.trunk.load_state_dict({name: weights.get(name, initial) for name, initial in expected.items()})
    model.origin = origin
    return model.eval()


class skip_initialization(TorchFunctionMode):
    """Build modules without drawing random weights, because all of them are overwritten."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _RANDOM:
            return args[0]
        return func(*args, **(kwargs or {}))


_RANDOM = {torch.Tensor.normal_, torch.Tensor.uniform_}


@contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _copy_weights(model: nn.Module, family: Family, head: str, weights: WeightFiles) -> None:
    state = model.state_dict()
    with torch.no_grad():
        for ours, conversion in family.conversions(model, head).items():
            if conversion is None:
                continue
            target, first = state[ours], 0
            for name, rows in zip(conversion.names, conversion.sizes, strict=True):
                part = target[first : first + rows] if len(conversion.names) > 1 else target
                first += rows
                if not name:
                    part.zero_()
                    continue
                published = weights.read(weights.find(name) or name)
                if not torch.isfinite(published).all():
                    raise WonderlandError(
                        f"{weights.folder}: {name!r} holds values that are not finite: it is damaged."
                    )
                part.copy_(conversion.from_published(published, tuple(part.shape)))
        if family.after_load is not None:
            family.after_load(model)
