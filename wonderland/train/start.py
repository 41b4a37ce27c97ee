"""A checkpoint on disk as the start of a fit: its tokenizer, its weights, and which of them learn."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from wonderland.checkpoints import load_classifier, load_pretrained
from wonderland.checkpoints.outline import check_folder
from wonderland.core import Spec, WonderlandError, sha256
from wonderland.data.text.tokenizer import Tokenizer
from wonderland.models import Decoder, EncoderDecoder
from wonderland.models.adapt import adapters, merge, train_only
from wonderland.nn import IA3, LoRA
from wonderland.core.recipe import Recipe
from wonderland.road.request import Request
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
    def of(request: Request) -> "Start | None":
        """The start that a request names; None for weights drawn by chance."""
        if request.start is None:
            return None
        folder = Path(request.start)
        check_folder(folder)
        if not (folder / "tokenizer.json").is_file():
            raise WonderlandError(
                f"The checkpoint in {folder} has no tokenizer.json, so it cannot read text. "
                "AutoTokenizer.from_pretrained(...).save_pretrained(folder) of transformers writes it."
            )
        for name in ("tokens", "vocab", "tokenizer"):
            if getattr(request, name) is not None:
                raise WonderlandError(f"{name} is for a fit without a checkpoint, which has a tokenizer of its own.")
        return Start(folder, request.method or "full", Tokenizer.load(folder))

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

    def writer(self) -> Any:
        """The checkpoint as a language model."""
        model = load_pretrained(self.folder, dtype=torch.float32)
        if not isinstance(model, Decoder) or model.origin.head != "lm":  # pyright: ignore
            raise WonderlandError(
                f"The checkpoint in {self.folder} is no language model that writes on: plain text is learned by "
                "GPT2LMHeadModel, LlamaForCausalLM, MambaForCausalLM and RwkvForCausalLM."
            )
        return self.fitting(model)

    def translator(self) -> Any:
        """The checkpoint as a model that reads a text and writes another."""
        model = load_pretrained(self.folder, dtype=torch.float32)
        if not isinstance(model, EncoderDecoder) or model.origin.head != "lm":  # pyright: ignore
            raise WonderlandError(
                f"The checkpoint in {self.folder} does not write one text for another: pairs are learned by "
                "T5ForConditionalGeneration."
            )
        if (self.tokenizer.pad, self.tokenizer.end is None) != (0, False):
            raise WonderlandError(
                f"The tokenizer in {self.folder} needs a padding token with the id 0, and one that ends texts."
            )
        return self.fitting(model)

    def classifier(self, classes: int) -> Any:
        """The checkpoint under a head for classes."""
        return self.fitting(load_classifier(self.folder, classes, pad=self.pad))

    @property
    def pad(self) -> int:
        """The token that fills rows up: the tokenizer's, or the one that ends texts, which no text holds."""
        found = self.tokenizer.pad if self.tokenizer.pad is not None else self.tokenizer.end
        if found is None:
            raise WonderlandError(
                f"The tokenizer in {self.folder} has neither a padding token nor one that ends texts: name one as pad_token "
                "in tokenizer_config.json."
            )
        return found

    def fitting(self, model: Any) -> Any:
        """The model, if it has a vector for each of the tokenizer's tokens."""
        if self.tokenizer.vocab > model.vocab:
            raise WonderlandError(
                f"The tokenizer in {self.folder} has {self.tokenizer.vocab:,} tokens and the model {model.vocab:,}: "
                "the two do not belong together."
            )
        return model

    def teach(self, model: nn.Module) -> Any:
        """The model with what the method teaches learning, and the rest at rest."""
        headed = hasattr(model, "trunk")
        trunk = model.trunk if headed else model
        if self.method == "bias" and not any(name.endswith("bias") for name, _ in trunk.named_parameters()):  # pyright: ignore
            raise WonderlandError(f"The model in {self.folder} has no biases to learn: take lora, ia3, head or full.")
        if self.method == "bias" or (self.method == "head" and headed):
            # Biases that are there: new ones would make it a model of another description.
            train_only(model, (*(NEW if headed else ()), *(("*bias",) if self.method == "bias" else ())))
            return model
        return learning(model, ADAPTERS.get(self.method, self.method), also=NEW if headed else ())

    def recipe(self, made: Recipe, spec: Spec, *, epoch: int, epochs: int) -> Recipe:
        """A recipe for going on: the checkpoint's model, gentle rates, few epochs."""
        steps = max(30, epoch * epochs)
        return replace(
            made, model=spec, steps=steps, lr=1e-4 if self.method == "full" else 1e-3, weight_decay=0.01,
            betas=(0.9, 0.999), warmup=0.1, average=None, clip=1.0, evaluate_every=max(1, min(epoch, steps // 5)), patience=5,
        )  # fmt: skip


def plain(model: nn.Module) -> nn.Module:
    """A model without adapters: what they learned is part of its weights."""
    return merge(model) if adapters(model) else model
