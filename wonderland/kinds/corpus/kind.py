"""The road for plain text: a decoder as large as the text can teach, windows at random places, the best weights kept."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.data import PackedDocuments, Windows
from wonderland.kinds.corpus.corpus import Corpus, TokenParts, learn_tokens, write_parts
from wonderland.kinds.corpus.encoder import CorpusEncoder
from wonderland.data.text.token_file import TokenFile
from wonderland.data.text.tokenizer import Tokenizer
from wonderland.generation.prompts import context as positions
from wonderland.models import Decoder
from wonderland.nn import Attention, Rotary
from wonderland.optim import warmup_cosine
from wonderland.core.recipe import Recipe
from wonderland.road.request import Request
from wonderland.train.start import Start
from wonderland.tasks.language import LanguageModelling
from wonderland.train import State, Supervised, adamw
from wonderland.tasks.token_trust import TokenTrust
from wonderland.understand import cost

LEAST = 8
MEASURED = 200_000  # tokens of a part that trust looks at
JUDGED = 10_000  # tokens of the validation part that an evaluation looks at


@dataclass
class LanguagePlan:
    """All that the training of a language model needs: made from a config and the text it names, the same each time."""

    dataset: Corpus
    parts: TokenParts
    encoder: CorpusEncoder
    task: LanguageModelling
    recipe: Recipe
    seed: int
    own: nn.Module | None = None
    start: Start | None = None

    watch = "validation/loss"

    def state(self) -> State:
        """Fresh weights and optimizer, the same for the same seed."""
        torch.manual_seed(self.seed)
        recipe = self.recipe
        assert not isinstance(recipe.model, str)
        model = recipe.model.build() if self.start is None else self.start.teach(self.start.writer())
        return State(
            model=model, optimizer=adamw(model, lr=recipe.lr, weight_decay=recipe.weight_decay, betas=recipe.betas)
        )

    def step(self) -> Supervised:
        """What is done with each batch."""
        recipe = self.recipe

        def schedule(step: int, steps: int) -> float:
            return warmup_cosine(step, steps, warmup=recipe.warmup, floor=0.05)

        return Supervised(
            self.task.loss,
            recipe.steps,
            recipe.lr,
            schedule,
            clip=recipe.clip,
            accumulate=recipe.accumulate,
            precision=recipe.precision,
        )

    def batches(self) -> "Windows | PackedBatches":
        """Windows of the training part, or rows of packed documents."""
        train, context, size = self.parts.files["train"], self.encoder.context, self.recipe.batch_size
        if packs(train, context, self.parts.many):
            return PackedBatches(train, context=context, size=size, seed=self.seed)
        return Windows(train, context=context, size=size, seed=self.seed)

    def logits(self, model: nn.Module):
        """A function from inputs to logits, for measuring."""
        model.eval()
        return lambda x: self.task.logits(model, x)

    def part(self, name: str, most: int | None = None) -> list[tuple[Tensor, Tensor]]:
        """Batches that hold every token of a part once, or at most so many."""
        return list(whole(self.parts.files[name], self.encoder.context, self.parts.many, most))

    def evaluate(self, state: State) -> dict[str, float]:
        """Nats, bits a byte and perplexity of the validation part."""
        return self.judged(state.model, "validation", JUDGED)

    def judged(self, model: nn.Module, name: str, most: int | None = None) -> dict[str, float]:
        """The measures of a part by its name."""
        nats, count = 0.0, 0
        logits = self.logits(model)
        with torch.no_grad():
            for x, y in self.part(name, most):
                found = nn.functional.cross_entropy(
                    logits(x).flatten(0, 1), y.flatten(), ignore_index=-100, reduction="sum"
                )
                nats, count = nats + float(found), count + int((y != -100).sum())
        file = self.parts.files[name]
        size = int(file.bytes[-1]) * count / max(1, len(file))
        found = self.task.measures(nats, count, max(1, round(size)))
        return {f"{name}/{measure}": value for measure, value in found.items()}

    def trusted(self, model: nn.Module, level: float) -> dict[str, Any]:
        """Temperature, scores, and what the test part says of them."""
        logits = self.logits(model)
        trust = TokenTrust.fit(logits, self.part("validation", MEASURED), self.part("calibration", MEASURED), level)
        test, batches = self.parts.files["test"], self.part("test", MEASURED)
        # A part of a few huge documents may be larger than what is measured: the bytes of what is.
        size = int(test.bytes[-1])
        if len(test) > MEASURED:
            size = round(size * sum(int((y != -100).sum()) for _, y in batches) / len(test))
        measured = trust.measure(self.task, logits, batches, size)
        return trust.to_json() | {"measured": {"test": measured}}

    def about(self) -> dict[str, Any]:
        """What the record of the source says beside the usual."""
        more = {} if self.start is None else self.start.about()
        return {"context": self.encoder.context, "tokenizer": self.encoder.tokenizer.digest, **more}

    def flops(self) -> int:
        """Operations of one row, forward."""
        return cost(self.state().model, torch.zeros(1, self.encoder.context, dtype=torch.int64)).flops

    def describe(self) -> str:
        """The plan in a sentence."""
        recipe, tokenizer = self.recipe, self.encoder.tokenizer
        assert not isinstance(recipe.model, str)
        epochs = recipe.steps / self.batches().per_epoch
        return (
            f"Vocabulary: {tokenizer.vocab:,} {'characters' if tokenizer.kind == 'characters' else f'{tokenizer.kind} tokens'}. "
            f"Model: {recipe.model.name}, {recipe.steps:,} steps of {recipe.batch_size} x {self.encoder.context} tokens "
            f"({epochs:.3g} epochs), peak rate {recipe.lr:.3g}.{self.start.describe() if self.start else ''}"
        )


class PackedBatches(PackedDocuments):
    """Packed documents as pairs (x, y): tokens and segments together (b, 2, t), and targets (b, t)."""

    def batch(self, epoch: int, position: int) -> Any:
        found = super().batch(epoch, position)
        return torch.stack([found.tokens, found.segments], 1), found.targets


def packs(file: TokenFile, context: int, many: bool) -> bool:
    """Whether documents are packed: many of them, not much longer than the context. Long ones are read in windows."""
    return many and len(file) / max(1, len(file.documents) - 1) < 16 * context


def whole(
    file: TokenFile, context: int, many: bool, most: int | None = None, rows: int = 64
) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches (x, y) that predict every token but the first of a text (or of each document) once."""
    if packs(file, context, many):
        packed = PackedDocuments(file, context=context, size=rows)
        stop = len(packed.rows) if most is None else min(len(packed.rows), max(1, most // context))
        for first in range(0, stop, rows):
            found = packed.take(range(first, min(stop, first + rows)))
            yield torch.stack([found.tokens, found.segments], 1), found.targets
        return
    begins = np.arange(0, len(file) - 1, context)
    begins = begins if most is None else begins[: max(1, most // context)]
    inner = set(file.documents[1:-1].tolist()) if len(file.documents) > 2 else set()
    for first in range(0, len(begins), rows):
        some = begins[first : first + rows]
        x, y = np.zeros((len(some), context), np.int64), np.full((len(some), context), -100, np.int64)
        for row, begin in enumerate(some):
            tokens = np.asarray(file.tokens[begin : begin + context + 1], np.int64)
            x[row, : len(tokens) - 1], y[row, : len(tokens) - 1] = tokens[:-1], tokens[1:]
            for place in range(int(begin) + 1, int(begin) + len(tokens)) if inner else ():
                if place in inner:
                    y[row, place - int(begin) - 1] = -100
        yield torch.from_numpy(x), torch.from_numpy(y)


def choose_language(dataset: Corpus, request: Request, own: nn.Module | None) -> LanguagePlan:
    """Learn tokens, write the parts, and settle every number of the recipe."""
    _refuse(dataset, request, own)
    shares, start = dataset.shares(float(request.test)), Start.of(request)
    model = None if start is None else start.writer()
    tokenizer = _tokenizer(dataset, shares, request, start)
    parts = write_parts(dataset, tokenizer, shares, request.seed)
    limit = None if model is None else positions(model)
    context = _context(dataset, parts, request, limit)
    made = recipe(parts, tokenizer, context)
    if start is not None and model is not None:
        made = going_on(made, start, model, parts, context)
    there, asked = len(parts.files["train"]), (request.batch_size or 1) * context
    # Packed documents are rows of their own, and larger batches take all of them.
    if asked > max(there, context) and not packs(parts.files["train"], context, parts.many):
        raise WonderlandError(
            f"batch_size {request.batch_size} asks for {asked:,} tokens a step, and the training part of {dataset.name} has "
            f"{there:,}: at most {max(1, there // context)} goes with a context of {context}."
        )
    made = made.changed(
        batch_size=request.batch_size,
        weight_decay=request.weight_decay,
        clip=request.clip,
        accumulate=request.accumulate,
        precision=request.precision,
        patience=request.patience,
        lr=request.lr if not isinstance(request.lr, str) else None,
    )
    return _plan(dataset, parts, tokenizer, context, made, request.seed, start)


def rebuild_language(config: dict[str, Any], dataset: Corpus, folder: Path) -> LanguagePlan:
    """The plan that a config describes, from the same text."""
    request, made = Request.from_json(config["request"]), Recipe.from_json(config["recipe"])
    shares, start = dataset.shares(float(request.test)), Start.of(request)
    if start is not None:
        start.check(config)
    tokenizer = _saved_tokenizer(folder, config) or _tokenizer(dataset, shares, request, start)
    parts = write_parts(dataset, tokenizer, shares, request.seed)
    if parts.digest != config["split"]["digest"]:
        raise WonderlandError(
            f"The text of {folder} can no longer be cut into tokens as it was: start a new run in another folder."
        )
    context = config["source"].get("context")
    if not isinstance(context, int) or context < 1:
        raise WonderlandError(f"{folder / 'config.json'} does not say how long its context is: it is damaged.")
    return _plan(dataset, parts, tokenizer, context, made, request.seed, start)


def _tokenizer(dataset: Corpus, shares: dict[str, float], request: Request, start: Start | None) -> Tokenizer:
    if start is not None:
        return start.tokenizer
    if request.tokenizer is not None:
        return Tokenizer.load(request.tokenizer)
    return learn_tokens(dataset, shares, request.seed, kind=request.tokens, vocab=request.vocab)


def _saved_tokenizer(folder: Path, config: dict[str, Any]) -> Tokenizer | None:
    """The tokenizer of a run that was begun, if it was written already and is the one that config.json names."""
    from wonderland.core import read_json

    try:
        found = CorpusEncoder.from_json(read_json(folder / "preprocess.json", 128 << 20)).tokenizer
    except WonderlandError:
        return None
    return found if found.digest == config["source"].get("tokenizer") else None


def _plan(
    dataset: Corpus,
    parts: TokenParts,
    tokenizer: Tokenizer,
    context: int,
    made: Recipe,
    seed: int,
    start: Start | None,
) -> LanguagePlan:
    given = dataset.documents
    encoder = CorpusEncoder(tokenizer, context, many=parts.many, lines=given.lines, column=given.column)
    return LanguagePlan(dataset, parts, encoder, made.task.build(), made, seed, start=start)


def _refuse(dataset: Corpus, request: Request, own: nn.Module | None) -> None:
    if own is not None:
        raise WonderlandError(
            "A language model is chosen by the recipe: model= is for rows, images and classes of text."
        )
    for name in ("target", "group", "time", "keep", "drop", "size"):
        if getattr(request, name):
            raise WonderlandError(f"{name} is for tables and images; {dataset.name} is plain text.")
    if isinstance(request.test, str):
        raise WonderlandError("A test set of its own is for tables; the end of a text is kept for its test.")


def _context(dataset: Corpus, parts: TokenParts, request: Request, limit: int | None) -> int:
    """How far the model looks back: as asked, or as the shortest part and the positions of a checkpoint allow."""
    if limit is not None and (request.context or 1) > limit:
        raise WonderlandError(f"The checkpoint has {limit:,} positions: the context cannot be {request.context:,}.")
    usual = request.context or min(128, limit or 128)
    if packs(parts.files["train"], usual, parts.many):
        longest = max(int(np.diff(np.asarray(file.documents)).max()) for file in parts.files.values())
        return request.context or max(LEAST, min(usual, longest))
    shortest = min(len(file) for file in parts.files.values())
    whole_text = sum(len(file) for file in parts.files.values())
    if shortest < LEAST + 1:
        raise WonderlandError(
            f"{dataset.name} has {whole_text:,} tokens, too few to learn from and to test on: give at least "
            f"{(LEAST + 1) * 20:,}."
        )
    if request.context and shortest < request.context + 1:
        raise WonderlandError(
            f"{dataset.name} has {whole_text:,} tokens, and its shortest part {shortest:,}: the context can be at most "
            f"{shortest - 1:,}, not {request.context:,}."
        )
    return min(usual, shortest - 1)


def going_on(made: Recipe, start: Start, model: Any, parts: TokenParts, context: int) -> Recipe:
    """The recipe for a text with a checkpoint to go on from: a few epochs."""
    batch = max(1, min(32, 1024 // context))
    epoch = max(1, len(parts.files["train"]) // (batch * context))
    made = replace(made, batch_size=batch, task=LanguageModelling.spec(vocab=model.vocab))
    return start.recipe(made, model.origin.spec, epoch=min(epoch, 500), epochs=3)


def recipe(parts: TokenParts, tokenizer: Tokenizer, context: int) -> Recipe:
    """Defaults for a text of this size: a small decoder, as many steps as a few minutes on a laptop allow."""
    tokens = len(parts.files["train"])
    large = tokens > 3_000_000
    dim, depth = (192, 5) if large else (128, 4) if tokens > 50_000 else (64, 3)
    batch = max(4, min(64, (2048 if large else 1536) // context))
    seen = 40 * tokens if tokens < 200_000 else 8_000_000 if large else 5_000_000
    steps = max(300, min(4000, seen // (batch * context)))
    return Recipe(
        kind="corpus",
        model=Decoder.spec(
            vocab=tokenizer.vocab,
            dim=dim,
            depth=depth,
            mixer=Attention.spec(heads=dim // 32, position=Rotary.spec(), window=context),
            dropout=0.0 if tokens > 500_000 else 0.1,
        ),
        task=LanguageModelling.spec(vocab=tokenizer.vocab),
        steps=steps,
        batch_size=batch,
        lr=2e-3 if dim <= 128 else 1.5e-3,
        weight_decay=0.1,
        betas=(0.9, 0.97),
        warmup=0.05,
        clip=1.0,
        evaluate_every=max(1, steps // 15),
        patience=6,
    )
