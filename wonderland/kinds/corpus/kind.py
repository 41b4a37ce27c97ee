"""The kind corpus: plain text; a decoder sized by the text, trained on random windows."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, read_json
from wonderland.core.recipe import Recipe
from wonderland.data.source import Glimpse
from wonderland.data.text.tokenizer import Tokenizer
from wonderland.generation.prompts import context as positions
from wonderland.kinds.corpus.corpus import Corpus, TokenParts, learn_tokens, write_parts
from wonderland.kinds.corpus.encoder import CorpusEncoder
from wonderland.kinds.corpus.examples import packs
from wonderland.kinds.corpus.options import Options as CorpusOptions
from wonderland.kinds.kind import Claim, Kind, evaluation_interval, model_space
from wonderland.kinds.table.table import unknown_column
from wonderland.models import Decoder
from wonderland.nn import Attention, Rotary
from wonderland.optim import FusedAdamW
from wonderland.tasks import LanguageModelling, Task
from wonderland.train.learner import GradientDescent
from wonderland.train.start import Start

LEAST = 8


class CorpusKind(Kind):
    """Plain text for a language model: text files, folders of them, a column of sentences."""

    name = "corpus"
    Options = CorpusOptions
    models = ("models.Decoder", "models.RNNLM")
    typical = {"vocab": 256, "dim": 128, "depth": 4}  # noqa: RUF012

    format1_schedule = {"floor": 0.05}  # noqa: RUF012

    def claims(self, glimpse: Glimpse, asked: Mapping[str, Any]) -> Claim | None:
        if asked.get("task") == "language" or (asked.get("lines") and glimpse.plain_text is not None):
            return Claim(1.0, "a language model is asked for")
        if glimpse.plain_text == "plain" and not asked.get("column"):
            return Claim(0.95, "it is plain text")
        named = any(asked.get(name) for name in ("target", "group", "time", "test", "split", "task"))
        if named or glimpse.path is None or glimpse.suffix == ".parquet" or glimpse.plain_text or glimpse.frame is None:
            return None
        column = self._only_text(glimpse, asked)
        return None if column is None else Claim(0.93, f"column {column!r} of sentences is all it has")

    def _only_text(self, glimpse: Glimpse, asked: Mapping[str, Any]) -> str | None:
        """The name of the only informative column, if it holds several words a cell."""
        frame, drop = glimpse.frame, asked.get("drop") or ()
        assert frame is not None
        names = [name for name in frame.columns if name not in drop]
        if len(names) > 1:
            roles = glimpse.roles(drop, {*(asked.get("keep") or ()), glimpse.contents.target})
            return roles.free_text[0] if len(roles.free_text) == 1 and not roles.informative else None
        words = [len(cell.split()) if isinstance(cell, str) else 0 for name in names for cell in frame[name]]
        return str(names[0]) if words and float(np.median(words)) > 1 else None

    def open(self, glimpse: Glimpse, options: CorpusOptions, test: Glimpse | None = None) -> Corpus:
        self.refuse_test(test, "the end of a text is kept for its test")
        if not isinstance(glimpse.source, str | Path):
            raise WonderlandError("A corpus is read from a file or a folder: give its path.")
        if options.tokenizer is not None:
            for name in ("tokens", "vocab"):
                if vars(options)[name] is not None:
                    raise WonderlandError(
                        f"{name} is for tokens that are to be learned, and tokenizer names those of a file."
                    )
        path, column, findings = Path(glimpse.source).expanduser(), options.column, []
        if glimpse.path is not None and not glimpse.path.is_dir() and glimpse.plain_text is None and glimpse.suffix in (
            ".csv", ".tsv", ".jsonl", ".ndjson"
        ) and glimpse.frame is not None:  # fmt: skip
            for name in options.drop:
                if name not in glimpse.frame.columns:
                    raise unknown_column("drop", name, list(glimpse.frame.columns))
            column = column or self._only_text(glimpse, {"drop": options.drop})
            roles = glimpse.roles(options.drop, {glimpse.contents.target})
            findings = roles.left_out() if not options.column else []
        elif options.drop:
            raise WonderlandError(
                f"drop leaves out columns of a CSV or JSON lines file, and {glimpse.name} is not one: leave it out."
            )
        dataset = Corpus.open(path, column=column, lines=options.lines, strict=options.strict, findings=findings)
        dataset.start = Start.of(options)
        return dataset

    def split(self, dataset: Corpus, *, test: float, seed: int, plain: bool = False) -> TokenParts:
        """The parts as files of tokens, which are learned from the training part."""
        shares = dataset.shares(test)
        dataset.tokenizer = dataset.tokenizer or self._tokenizer(dataset, shares, seed)
        return write_parts(dataset, dataset.tokenizer, shares, seed)

    def _tokenizer(self, dataset: Corpus, shares: dict[str, float], seed: int) -> Tokenizer:
        options: CorpusOptions = dataset.options
        if dataset.start is not None:
            dataset.start.language_model()
            return dataset.start.tokenizer
        if options.tokenizer is not None:
            return Tokenizer.load(options.tokenizer)
        return learn_tokens(dataset, shares, seed, kind=options.tokens, vocab=options.vocab)

    def task(self, dataset: Corpus, parts: TokenParts, encoder: CorpusEncoder) -> Task:
        assert dataset.tokenizer is not None
        vocab = dataset.tokenizer.vocab if dataset.start is None else dataset.start.outline.vocab
        return LanguageModelling(vocab)

    def encoder(self, dataset: Corpus, parts: TokenParts) -> CorpusEncoder:
        limit = None if dataset.start is None else dataset.start.outline.positions
        documents = dataset.documents
        assert dataset.tokenizer is not None
        context = _context(dataset, parts, dataset.options.context, limit)
        return CorpusEncoder(
            dataset.tokenizer, context, many=parts.many, lines=documents.lines, column=documents.column
        )

    def read_encoder(self, saved: Any, tensors: dict[str, Tensor]) -> CorpusEncoder:
        return CorpusEncoder.from_json(saved, tensors)

    def remember(self, dataset: Corpus, folder: Path, config: Mapping[str, Any] | None) -> None:
        """Keep token files in the run folder, and reuse the tokenizer of an interrupted run, which takes long to train."""
        dataset.home = folder / ".tokens"
        if config is None:
            return
        try:
            saved = CorpusEncoder.from_json(read_json(folder / "preprocess.json", "encoder_bytes"))
        except WonderlandError:
            return
        if saved.digest() == config.get("preprocessing"):
            dataset.tokenizer = saved.tokenizer

    def recipe(self, dataset: Corpus, parts: TokenParts, encoder: CorpusEncoder, task: Any) -> Recipe:
        """Defaults for a text of this size: a small decoder, as many steps as a few minutes on a laptop allow."""
        tokens, context = len(parts.files["train"]), encoder.context
        large = tokens > 3_000_000
        dim, depth = (192, 5) if large else (128, 4) if tokens > 50_000 else (64, 3)
        batch = max(4, min(64, (2048 if large else 1536) // context))
        seen = 40 * tokens if tokens < 200_000 else 8_000_000 if large else 5_000_000
        steps = max(300, min(4000, seen // (batch * context)))
        recipe = Recipe(
            model=Decoder.spec(
                vocab=encoder.tokenizer.vocab,
                dim=dim,
                depth=depth,
                mixer=Attention.spec(heads=dim // 32, position=Rotary.spec(), window=context),
                dropout=0.0 if tokens > 500_000 else 0.1,
            ),
            task=LanguageModelling.spec(vocab=task.vocab),
            learner=GradientDescent.spec(),
            optimizer=FusedAdamW.spec(weight_decay=0.1, betas=[0.9, 0.97]),
            schedule=Spec("optim.warmup_cosine", {"warmup": 0.05, "floor": 0.05}),
            steps=steps,
            batch_size=batch,
            lr=2e-3 if dim <= 128 else 1.5e-3,
            evaluate_every=max(1, steps // 15),
            patience=6,
        )
        start = dataset.start
        if start is None:
            return recipe
        batch = max(1, min(32, 1024 // context))
        epoch = max(1, tokens // (batch * context))
        return start.recipe(
            replace(recipe, batch_size=batch), start.language_model().spec, epoch=min(epoch, 500), epochs=3
        )

    def space(self, recipe: Recipe) -> dict[str, Any]:
        return super().space(recipe) | model_space(recipe, {"model.depth": ("integer", 2, 6)})

    def initial(self, dataset: Any, task: Task) -> nn.Module | None:
        return None if dataset.start is None else dataset.start.load()

    def adjust_to_steps(self, recipe: Recipe) -> Recipe:
        return recipe.changed(evaluate_every=evaluation_interval(recipe.steps))

    def check_recipe(
        self, dataset: Corpus, parts: TokenParts, encoder: CorpusEncoder, recipe: Recipe, asked: Mapping[str, Any]
    ) -> None:
        """Refuse batches that are asked to be larger than the text."""
        available, needed = len(parts.files["train"]), asked.get("batch_size", 1) * encoder.context
        # Packed documents are rows of their own, and larger batches take all of them.
        if needed > max(available, encoder.context) and not packs(parts.files["train"], encoder.context, parts.many):
            raise WonderlandError(
                f"batch_size {recipe.batch_size} asks for {needed:,} tokens a step, and the training part of {dataset.name} has "
                f"{available:,}: at most {max(1, available // encoder.context)} fits a context of {encoder.context}."
            )

    def facts(self, run: Any, plan: Any) -> dict[str, Any]:
        """Generated samples, tokens with similar embeddings, attention maps."""
        return {
            "noun": "tokens",
            "columns_title": "The texts",
            "rows": sum(len(file) for file in plan.parts.files.values()),
            "split_note": "Whole documents are assigned to the parts at random." if plan.parts.many else
                          "The text is split by position: the beginning is for training, the end for testing.",
            "samples": samples(run, plan),
            "neighbours": neighbours(run, plan),
            "attention": attention_maps(run, plan),
        }  # fmt: skip


def _context(dataset: Corpus, parts: TokenParts, asked: int | None, limit: int | None) -> int:
    """The context length: as asked, or as the shortest part and the positions of a checkpoint allow."""
    if limit is not None and (asked or 1) > limit:
        raise WonderlandError(f"The checkpoint has {limit:,} positions: the context cannot be {asked:,}.")
    usual = asked or min(128, limit or 128)
    if packs(parts.files["train"], usual, parts.many):
        longest = max(int(np.diff(np.asarray(file.documents)).max()) for file in parts.files.values())
        return asked or max(LEAST, min(usual, longest))
    shortest = min(len(file) for file in parts.files.values())
    tokens = sum(len(file) for file in parts.files.values())
    if shortest < LEAST + 1:
        raise WonderlandError(
            f"{dataset.name} has {tokens:,} tokens, too few to learn from and to test on: give at least "
            f"{(LEAST + 1) * 20:,}."
        )
    if asked and shortest < asked + 1:
        raise WonderlandError(
            f"{dataset.name} has {tokens:,} tokens, and its shortest part {shortest:,}: the context can be at most "
            f"{shortest - 1:,}, not {asked:,}."
        )
    return min(usual, shortest - 1)


def samples(run: Any, plan: Any, count: int = 240) -> list[dict[str, Any]]:
    """Three generated texts, each with its prompt and temperature."""
    test, limit, write = plan.parts.files["test"], positions(run.model), run.ability("generate")
    count = count if limit is None else max(1, min(count, limit - 24))
    start = plan.encoder.tokenizer.decode(np.asarray(test.tokens[:24], np.int64)) if not plan.parts.many else ""
    # Without a prompt, greedy decoding often gives nothing but empty lines.
    asked = [(start, 0.8), ("", 0.8), (start, 0.0)] if not plan.parts.many else [("", 1.0), ("", 0.8), ("", 0.8)]
    return [
        {"prompt": prompt, "temperature": temperature, "text": write(prompt, count, temperature=temperature, seed=i)}
        for i, (prompt, temperature) in enumerate(asked)
    ]


def visible(tokenizer: Tokenizer, token: int) -> str:
    """A token with visible signs for spaces and line ends."""
    text = tokenizer.pieces()[token].decode("utf-8", "replace") or tokenizer.token(token)
    return text.replace("\n", "↵").replace("\t", "⇥").replace(" ", "·")


def neighbours(run: Any, plan: Any, most: int = 16, near: int = 5) -> list[dict[str, Any]]:
    """Frequent tokens, and those whose embeddings have the largest cosine with theirs."""
    table = dict(run.model.named_modules()).get("embedding")
    if not isinstance(table, nn.Embedding):
        return []
    tokenizer = plan.encoder.tokenizer
    counted = Counter(np.asarray(plan.parts.files["train"].tokens[:200_000], np.int64).tolist())
    pieces = tokenizer.pieces()
    frequent = [token for token, _ in counted.most_common(400) if pieces[token].strip()]
    rare = {token for token in range(tokenizer.vocab) if counted[token] < 5}
    vectors = torch.nn.functional.normalize(table.weight.detach(), dim=1)
    if tokenizer.vocab > 1000:  # whole words are more interesting than letters
        frequent = [token for token in frequent if len(pieces[token].strip()) > 3] or frequent
    rows = []
    for token in frequent[:most]:
        cosine = vectors @ vectors[token]
        order = [int(i) for i in cosine[: tokenizer.vocab].argsort(descending=True)]
        order = [i for i in order if i != token and i not in rare][:near]
        close = [{"token": visible(tokenizer, i), "cosine": float(cosine[i])} for i in order]
        rows.append({"token": visible(tokenizer, token), "count": counted[token], "near": close})
    return rows


def attention_maps(run: Any, plan: Any, length: int = 24) -> list[dict[str, Any]]:
    """The weights of the first heads of the first and of the last attention, on the beginning of the test part."""
    layers = [(name, module) for name, module in run.model.named_modules() if isinstance(module, Attention)]
    if not layers:
        return []
    tokens = np.asarray(plan.parts.files["test"].tokens[:length], np.int64)
    maps: dict[str, torch.Tensor] = {}
    chosen = layers[:1] + layers[-1:] if len(layers) > 1 else layers
    original = {name: module.whole for name, module in chosen}

    def recording(name: str, module: Attention):
        def whole(x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
            maps[name] = module.maps(x, mask)[0]
            return original[name](x, mask)

        return whole

    try:
        for name, module in chosen:
            module.whole = recording(name, module)  # pyright: ignore
        with torch.no_grad():
            run.model.eval()
            run.model(torch.from_numpy(tokens)[None])
    finally:
        for _, module in chosen:
            del module.whole
    names = [name for name, _ in layers]
    return [
        {
            "layer": names.index(name) + 1,
            "head": head + 1,
            "tokens": [visible(plan.encoder.tokenizer, int(i)) for i in tokens],
            "weights": [[round(float(v), 4) for v in row] for row in heads[head]],
        }
        for name, heads in maps.items()
        for head in range(min(2, len(heads)))
    ]


KIND = CorpusKind()
