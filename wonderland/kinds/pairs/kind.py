"""The road for pairs of texts: an encoder-decoder, taught with the right words given, judged by what it writes alone."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.data import Batches, Split, split
from wonderland.kinds.pairs.pairs import Pairs, PairsEncoder
from wonderland.models import EncoderDecoder
from wonderland.optim import warmup_cosine
from wonderland.core.recipe import Recipe
from wonderland.road.request import Request
from wonderland.train.start import Start
from wonderland.tasks.translating import measured
from wonderland.tasks.translation import Translation
from wonderland.train import State, Supervised, adamw
from wonderland.tasks.token_trust import TokenTrust
from wonderland.understand import cost


@dataclass
class TranslationPlan:
    """All that the training of a translator needs: made from a config and the pairs it names, the same each time."""

    dataset: Pairs
    parts: Split
    encoder: PairsEncoder
    task: Translation
    recipe: Recipe
    seed: int
    own: nn.Module | None = None
    start: Start | None = None

    watch = "validation/loss"

    def __post_init__(self):
        self.x, self.y = self.encoder.encode(self.dataset), self.encoder.answers(self.dataset)

    def state(self) -> State:
        """Fresh weights and optimizer, the same for the same seed."""
        torch.manual_seed(self.seed)
        recipe = self.recipe
        assert not isinstance(recipe.model, str)
        model = recipe.model.build() if self.start is None else self.start.teach(self.start.translator())
        return State(
            model=model, optimizer=adamw(model, lr=recipe.lr, weight_decay=recipe.weight_decay, betas=recipe.betas)
        )

    def step(self) -> Supervised:
        """What is done with each batch."""
        recipe = self.recipe

        def schedule(step: int, steps: int) -> float:
            return warmup_cosine(step, steps, warmup=recipe.warmup)

        return Supervised(
            self.task.loss, recipe.steps, recipe.lr, schedule, clip=recipe.clip, accumulate=recipe.accumulate,
            precision=recipe.precision,
        )  # fmt: skip

    def batches(self) -> Batches:
        """Training pairs, shuffled."""
        return Batches(self.x, self.y, size=self.recipe.batch_size, seed=self.seed, rows=self.parts.train)

    def part(self, rows: np.ndarray) -> list[tuple[Tensor, Tensor]]:
        """Batches of some rows."""
        return [(self.x[piece], self.y[piece]) for piece in torch.as_tensor(rows).split(64)]

    def evaluate(self, state: State) -> dict[str, float]:
        """Nats and perplexity of the validation pairs, with the right words given."""
        nats, count = 0.0, 0
        state.model.eval()
        with torch.no_grad():
            for x, y in self.part(self.parts.validation[:1000]):
                found = self.task.logits(state.model, x).flatten(0, 1)
                nats += float(nn.functional.cross_entropy(found, y.flatten(), ignore_index=-100, reduction="sum"))
                count += int((y != -100).sum())
        measures = self.task.measures(nats, count, 1)
        return {"validation/loss": measures["loss"], "validation/perplexity": measures["perplexity"]}

    def trusted(self, model: nn.Module, level: float) -> dict[str, Any]:
        """Temperature, scores, and what the test pairs say of them."""
        model.eval()
        trust = TokenTrust.fit(
            lambda x: self.task.logits(model, x),
            self.part(self.parts.validation),
            self.part(self.parts.calibration),
            level,
        )
        return trust.to_json() | {
            "measured": {"test": measured(self.task, model, self.encoder, self.some("test"), trust)}
        }

    def some(self, name: str) -> Pairs:
        """The pairs of one part."""
        rows, given = self.parts.parts[name], self.dataset
        assert given.targets is not None
        return Pairs(
            given.name, [given.sources[i] for i in rows], [given.targets[i] for i in rows], columns=given.columns
        )

    def about(self) -> dict[str, Any]:
        """What the record of the source says beside the usual."""
        return {"tokenizer": self.encoder.tokenizer.digest, **({} if self.start is None else self.start.about())}

    def flops(self) -> int:
        """Operations of one pair, forward."""
        model, task = self.state().model, self.task

        class Whole(nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, x: Tensor) -> Tensor:
                return task.logits(self.model, x)

        return cost(Whole(), self.x[:1]).flops

    def describe(self) -> str:
        """The plan in a sentence."""
        recipe = self.recipe
        assert not isinstance(recipe.model, str)
        epochs = recipe.steps / self.batches().per_epoch
        kind = self.encoder.tokenizer.kind
        kind = kind if kind in ("characters", "words") else f"{kind} tokens"
        return (
            f"Vocabulary: {self.encoder.tokenizer.vocab:,} {kind}. Model: {recipe.model.name}, {recipe.steps:,} steps of "
            f"{recipe.batch_size} pairs ({epochs:.3g} epochs), peak rate {recipe.lr:.3g}.{self.start.describe() if self.start else ''}"
        )


def choose_translation(dataset: Pairs, request: Request, own: nn.Module | None) -> TranslationPlan:
    """Split the pairs, learn tokens, and settle every number of the recipe."""
    if own is not None:
        raise WonderlandError("A translator is chosen by the recipe: model= is for rows, images and classes of text.")
    if isinstance(request.test, str):
        raise WonderlandError("A test set of its own is for tables; pairs are split by themselves.")
    for name in ("group", "time", "keep", "size"):
        if getattr(request, name):
            raise WonderlandError(f"{name} is for tables and images; {dataset.name} holds pairs of texts.")
    parts, start = _parts(dataset, request), Start.of(request)
    encoder = _encoder(dataset, parts, request, start)
    made = recipe(parts, encoder)
    if start is not None:
        made = going_on(made, start, parts, encoder)
    made = made.changed(
        batch_size=request.batch_size,
        weight_decay=request.weight_decay,
        clip=request.clip,
        accumulate=request.accumulate,
        precision=request.precision,
        patience=request.patience,
        lr=request.lr if not isinstance(request.lr, str) else None,
    )
    return TranslationPlan(dataset, parts, encoder, made.task.build(), made, request.seed, start=start)


def _encoder(dataset: Pairs, parts: Split, request: Request, start: Start | None) -> PairsEncoder:
    if start is None:
        return dataset.encoder(parts.train, **request.cut())
    begin = start.translator().begin
    return PairsEncoder.around(start.tokenizer, begin, dataset, parts.train, context=request.context)


def going_on(made: Recipe, start: Start, parts: Split, encoder: PairsEncoder) -> Recipe:
    """The recipe for pairs with a checkpoint to go on from: a few epochs."""
    batch, model = 16 if len(parts.train) >= 200 else 8, start.translator()
    task = Translation.spec(vocab=model.vocab, read=encoder.read)
    epoch = max(1, len(parts.train) // batch)
    return start.recipe(replace(made, batch_size=batch, task=task), model.origin.spec, epoch=epoch, epochs=5)


def rebuild_translation(config: dict[str, Any], dataset: Pairs, folder: Path) -> TranslationPlan:
    """The plan that a config describes, from the same pairs."""
    request, made = Request.from_json(config["request"]), Recipe.from_json(config["recipe"])
    parts, start = _parts(dataset, request), Start.of(request)
    if start is not None:
        start.check(config)
    encoder = _encoder(dataset, parts, request, start)
    if parts.digest != config["split"]["digest"] or encoder.tokenizer.digest != config["source"].get("tokenizer"):
        raise WonderlandError(
            f"The pairs of {folder} can no longer be split and cut as they were: start a new run in another folder."
        )
    return TranslationPlan(dataset, parts, encoder, made.task.build(), made, request.seed, start=start)


def _parts(dataset: Pairs, request: Request) -> Split:
    share = min(0.1, 2000 / len(dataset))
    test = min(float(request.test), 0.2, max(2000 / len(dataset), 0.01))
    return split(dataset, seed=request.seed, test=test, validation=share, calibration=share)


def recipe(parts: Split, encoder: PairsEncoder) -> Recipe:
    """Defaults for pairs of this number: a small transformer, a few minutes on a laptop."""
    rows = len(parts.train)
    large = rows > 20_000
    dim, depth = (192, 3) if large else (128, 2)
    batch = 64 if rows >= 2000 else 32 if rows >= 200 else 8
    epoch = max(1, rows // batch)
    steps = max(300, min(4000, epoch * (8 if large else 60)))
    vocab = encoder.tokenizer.vocab
    return Recipe(
        kind="pairs",
        model=EncoderDecoder.spec(vocab=vocab, dim=dim, depth=depth, heads=4, dropout=0.1, begin=1),
        task=Translation.spec(vocab=vocab, read=encoder.read, label_smoothing=0.05),
        steps=steps,
        batch_size=batch,
        lr=2e-3 if not large else 1e-3,
        weight_decay=0.01,
        betas=(0.9, 0.98),
        warmup=0.1,
        clip=1.0,
        evaluate_every=max(1, steps // 15),
        patience=6,
    )
