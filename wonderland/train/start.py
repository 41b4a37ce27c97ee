"""A pretrained checkpoint as the start of a fit: its tokenizer, its weights, and which of them are trained."""

import functools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from wonderland import checkpoints
from wonderland.checkpoints.config_file import check_folder
from wonderland.checkpoints.outlines import Outline
from wonderland.core import Spec, WonderlandError, name_of, sha256
from wonderland.core.recipe import Recipe
from wonderland.data.text.tokenizer import Tokenizer
from wonderland.models import Decoder, EncoderDecoder
from wonderland.models.adapt import adapters, merge, train_only
from wonderland.nn import IA3, LoRA, QuantisedLoRA
from wonderland.optim import FusedAdamW
from wonderland.train.finetune import HEAD, make_trainable

ADAPTERS: dict[str, Spec] = {"lora": LoRA.spec(rank=8), "qlora": QuantisedLoRA.spec(rank=8), "ia3": IA3.spec()}
NEW = (*HEAD, "trunk.pooler*")  # parameters of a new head, which have random weights


@dataclass(frozen=True)
class Start:
    """The checkpoint that a fit starts from: a folder of the transformers library, and the method of fine-tuning.

    Adapters are merged into the weights at the end, so the run is saved like any other.
    """

    folder: Path
    method: str
    tokenizer: Tokenizer

    @staticmethod
    def of(options: Any) -> "Start | None":
        """The start named by the options of a text kind; None for random weights."""
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
        """SHA-256 over all JSON and safetensors files of the folder."""
        names = sorted(path.name for path in self.folder.iterdir() if path.suffix in (".json", ".safetensors"))
        return sha256("".join(f"{name} {sha256(self.folder / name)}\n" for name in names).encode())

    def about(self) -> dict[str, Any]:
        """The entry of config.json."""
        return {"start": self.digest}

    def describe(self) -> str:
        """The start in a sentence."""
        trained = {"full": "all of it is trained", "head": "its head is trained", "bias": "its biases are trained"}
        return f" From {self.folder.name}: {trained.get(self.method, f'{self.method} is trained, and merged')}."

    def check(self, config: dict[str, Any]) -> None:
        """Refuse to resume a run with another checkpoint than the one it started from."""
        if config["source"].get("start") != self.digest:
            raise WonderlandError(
                f"The checkpoint in {self.folder} changed since the run began, so the run cannot be resumed. "
                "Restore the checkpoint, or start a new run in another folder."
            )

    @functools.cached_property
    def outline(self) -> Outline:
        """The description of the model in the folder, without its weights."""
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
                f"The checkpoint in {self.folder} is not a causal language model: plain text needs "
                "GPT2LMHeadModel, LlamaForCausalLM, MambaForCausalLM or another ...ForCausalLM."
            )
        return self.outline

    def translator(self) -> Outline:
        """The outline of the checkpoint, if it is an encoder-decoder that generates text."""
        if self.outline.spec.name != name_of(EncoderDecoder) or self.outline.head != "lm":
            raise WonderlandError(
                f"The checkpoint in {self.folder} is not an encoder-decoder that generates text: pairs need "
                "T5ForConditionalGeneration, BartForConditionalGeneration or MarianMTModel."
            )
        if self.tokenizer.pad is None or self.tokenizer.end is None or self.tokenizer.end == self.tokenizer.pad:
            raise WonderlandError(f"The tokenizer in {self.folder} needs a padding token, and another that ends texts.")
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
        """The padding id: the tokenizer's padding token, or else its end token, which occurs in no text."""
        pad = self.tokenizer.pad if self.tokenizer.pad is not None else self.tokenizer.end
        if pad is None:
            raise WonderlandError(
                f"The tokenizer in {self.folder} has neither a padding token nor one that ends texts: name one as pad_token "
                "in tokenizer_config.json."
            )
        return pad

    def prepared(self, model: nn.Module) -> Any:
        """The model with what the method trains requiring gradients, and the rest frozen."""
        has_trunk = "trunk" in dict(model.named_children())
        trunk = model.trunk if has_trunk else model
        if self.method == "bias" and not any(name.endswith("bias") for name, _ in trunk.named_parameters()):  # pyright: ignore
            raise WonderlandError(f"The model in {self.folder} has no biases to learn: take lora, ia3, head or full.")
        if self.method == "bias" or (self.method == "head" and has_trunk):
            # Only existing biases: new ones would change the spec of the model.
            train_only(model, (*(NEW if has_trunk else ()), *(("*bias",) if self.method == "bias" else ())))
            return model
        return make_trainable(model, ADAPTERS.get(self.method, self.method), also=NEW if has_trunk else ())

    def recipe(self, base: Recipe, spec: Spec, *, epoch: int, epochs: int) -> Recipe:
        """A recipe for fine-tuning: the model of the checkpoint, small learning rates, few epochs."""
        steps = max(30, epoch * epochs)
        return replace(
            base, model=spec, steps=steps, lr=1e-4 if self.method == "full" else 1e-3,
            optimizer=FusedAdamW.spec(weight_decay=0.01, betas=[0.9, 0.999]), schedule=Spec("optim.warmup_cosine", {"warmup": 0.1}),
            average=None, clip=1.0, evaluate_every=max(1, min(epoch, steps // 5)), patience=5,
        )  # fmt: skip


def merge_adapters(model: nn.Module) -> nn.Module:
    """The model with its adapters merged into the weights."""
    return merge(model) if adapters(model) else model
