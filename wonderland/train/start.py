"""A checkpoint on disk as the start of a fit: its tokenizer, its weights, and which of them learn."""

import functools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from wonderland import checkpoints
from wonderland.checkpoints.outline import Outline, check_folder
from wonderland.core import Spec, WonderlandError, name_of, sha256
from wonderland.core.recipe import Recipe
from wonderland.data.text.tokenizer import Tokenizer
from wonderland.models import Decoder, EncoderDecoder
from wonderland.models.adapt import adapters, merge, train_only
from wonderland.nn import IA3, LoRA
from wonderland.optim import FusedAdamW
from wonderland.train.finetune import HEAD, learning

ADAPTERS: dict[str, Spec] = {"lora": LoRA.spec(rank=8), "ia3": IA3.spec()}
NEW = (*HEAD, "trunk.pooler*")  # what a head on a trunk may have to learn from nothing


@dataclass(frozen=True)
class Start:
    """Where a fit begins: a folder of the transformers library, and the way it is tuned.

    What learns is merged into plain weights at the end, so a run that began with a checkpoint is a run like any other.
    """

    folder: Path
    method: str
    tokenizer: Tokenizer

    @staticmethod
    def of(options: Any) -> "Start | None":
        """The start that the options of a kind of text name; None for random weights."""
        if options.start is None:
            if options.method is not None:
                raise WonderlandError("method says how a checkpoint is tuned: name the checkpoint with start (--from).")
            return None
        folder = Path(options.start).expanduser().absolute()
        check_folder(folder)
        if not (folder / "tokenizer.json").is_file():
            raise WonderlandError(
                f"The checkpoint in {folder} has no tokenizer.json, so it cannot read text. "
                "AutoTokenizer.from_pretrained(...).save_pretrained(folder) of transformers writes it."
            )
        for name in ("tokens", "vocab", "tokenizer"):
            if vars(options).get(name) is not None:
                raise WonderlandError(f"{name} is for a fit without a checkpoint, which has a tokenizer of its own.")
        return Start(folder, options.method or "full", Tokenizer.load(folder))

    @property
    def digest(self) -> str:
        """One number for all the files that matter."""
        names = sorted(path.name for path in self.folder.iterdir() if path.suffix in (".json", ".safetensors"))
        return sha256("".join(f"{name} {sha256(self.folder / name)}\n" for name in names).encode())

    def about(self) -> dict[str, Any]:
        """What config.json says of it."""
        return {"start": self.digest}

    def describe(self) -> str:
        """The start in a sentence."""
        what = {"full": "all of it learns", "head": "its head learns", "bias": "its biases learn"}
        return f" From {self.folder.name}: {what.get(self.method, f'{self.method} learns, and is merged')}."

    def check(self, config: dict[str, Any]) -> None:
        """Refuse to go on from another checkpoint than the one that a run began with."""
        if config["source"].get("start") != self.digest:
            raise WonderlandError(
                f"The checkpoint in {self.folder} changed since the run began, so it cannot go on as it was. "
                "Bring back the checkpoint, or start a new run in another folder."
            )

    @functools.cached_property
    def outline(self) -> Outline:
        """What the folder says of its model, without its weights."""
        outline = checkpoints.outline(self.folder)
        if self.tokenizer.vocab > outline.vocab:
            raise WonderlandError(
                f"The tokenizer in {self.folder} has {self.tokenizer.vocab:,} tokens and the model {outline.vocab:,}: "
                "the two do not belong together."
            )
        return outline

    def language_model(self) -> Outline:
        """The outline of the checkpoint, if it is a language model."""
        if self.outline.spec.name != name_of(Decoder) or self.outline.head != "lm":
            raise WonderlandError(
                f"The checkpoint in {self.folder} is no language model that writes on: plain text is learned by "
                "GPT2LMHeadModel, LlamaForCausalLM, MambaForCausalLM and RwkvForCausalLM."
            )
        return self.outline

    def translator(self) -> Outline:
        """The outline of the checkpoint, if it reads a text and writes another."""
        if self.outline.spec.name != name_of(EncoderDecoder) or self.outline.head != "lm":
            raise WonderlandError(
                f"The checkpoint in {self.folder} does not write one text for another: pairs are learned by "
                "T5ForConditionalGeneration."
            )
        if (self.tokenizer.pad, self.tokenizer.end is None) != (0, False):
            raise WonderlandError(
                f"The tokenizer in {self.folder} needs a padding token with the id 0, and one that ends texts."
            )
        return self.outline

    def classifier(self, classes: int) -> Outline:
        """The outline of the checkpoint under a head for classes."""
        return self.outline.classifier(classes, pad=self.pad)

    def load(self) -> Any:
        """The model of the checkpoint as it is, with what the method trains requiring gradients."""
        return self.prepared(checkpoints.load_pretrained(self.folder, dtype=torch.float32))

    def load_classifier(self, classes: int) -> Any:
        """The model of the checkpoint under a head for classes, with what the method trains requiring gradients."""
        return self.prepared(checkpoints.load_classifier(self.folder, classes, pad=self.pad))

    @property
    def pad(self) -> int:
        """The token that fills rows up: the tokenizer's padding, or the one that ends texts, which no text holds."""
        pad = self.tokenizer.pad if self.tokenizer.pad is not None else self.tokenizer.end
        if pad is None:
            raise WonderlandError(
                f"The tokenizer in {self.folder} has neither a padding token nor one that ends texts: name one as pad_token "
                "in tokenizer_config.json."
            )
        return pad

    def prepared(self, model: nn.Module) -> Any:
        """The model with what the method trains requiring gradients, and the rest frozen."""
        headed = "trunk" in dict(model.named_children())
        trunk = model.trunk if headed else model
        if self.method == "bias" and not any(name.endswith("bias") for name, _ in trunk.named_parameters()):  # pyright: ignore
            raise WonderlandError(f"The model in {self.folder} has no biases to learn: take lora, ia3, head or full.")
        if self.method == "bias" or (self.method == "head" and headed):
            # Biases that are there: new ones would make it a model of another description.
            train_only(model, (*(NEW if headed else ()), *(("*bias",) if self.method == "bias" else ())))
            return model
        return learning(model, ADAPTERS.get(self.method, self.method), also=NEW if headed else ())

    def recipe(self, made: Recipe, spec: Spec, *, epoch: int, epochs: int) -> Recipe:
        """A recipe for tuning: the checkpoint's model, small rates, few epochs."""
        steps = max(30, epoch * epochs)
        return replace(
            made, model=spec, steps=steps, lr=1e-4 if self.method == "full" else 1e-3,
            optimizer=FusedAdamW.spec(weight_decay=0.01, betas=[0.9, 0.999]), schedule=Spec("optim.warmup_cosine", {"warmup": 0.1}),
            average=None, clip=1.0, evaluate_every=max(1, min(epoch, steps // 5)), patience=5,
        )  # fmt: skip


def plain(model: nn.Module) -> nn.Module:
    """A model without adapters: what they learned is part of its weights."""
    return merge(model) if adapters(model) else model
