"""The kind pairs: two texts a row; an encoder-decoder, trained with teacher forcing, measured by what it generates."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError
from wonderland.core.recipe import Recipe
from wonderland.data.source import Glimpse
from wonderland.data.split import Split, split
from wonderland.kinds.kind import Claim, Kind, evaluation_interval, task_spec
from wonderland.kinds.pairs.encoder import LONGEST, PairsEncoder
from wonderland.kinds.pairs.options import Options as PairsOptions
from wonderland.kinds.pairs.pairs import Pairs
from wonderland.models import EncoderDecoder
from wonderland.optim import FusedAdamW
from wonderland.tasks import Task, Translation
from wonderland.train.learner import GradientDescent
from wonderland.train.start import Start


class PairsKind(Kind):
    """Two texts a row: a source that is read, and a target to write."""

    name = "pairs"
    Options = PairsOptions
    models = ("models.EncoderDecoder", "models.Seq2Seq")
    typical = {"vocab": 2000, "source_vocab": 2000, "dim": 128, "depth": 2, "heads": 4}  # noqa: RUF012

    def claims(self, glimpse: Glimpse, asked: Mapping[str, Any]) -> Claim | None:
        translation = asked.get("task") == "translation"
        if glimpse.plain_text is not None and not translation:
            return None
        if glimpse.frame is None:
            return None
        if translation:
            return Claim(1.0, "translation is asked for")
        named = any(asked.get(name) for name in ("target", "group", "time", "test", "task"))
        drop = (*(asked.get("drop") or ()), *([asked["split"]] if asked.get("split") else []))
        if named:
            return None
        roles = glimpse.roles(drop, {*(asked.get("keep") or ()), glimpse.contents.target})
        if len(roles.free_text) != 2 or roles.informative:
            return None
        return Claim(
            0.97,
            f"{roles.free_text[0]!r} and {roles.free_text[1]!r} hold sentences, and there are no other informative columns",
        )

    def open(self, glimpse: Glimpse, options: PairsOptions, test: Glimpse | None = None) -> Pairs:
        self.refuse_test(test, "pairs are split by themselves")
        contents = glimpse.contents
        if contents.frame is None:
            raise WonderlandError(f"{contents.name} holds no pairs of texts: give a table with two columns of text.")
        findings = [finding for finding in contents.findings if finding.kind != "header"]
        if options.target is None and options.column is None:
            drop = (*options.drop, *([] if options.split is None else [options.split]))
            findings += glimpse.roles(drop, {contents.target}).left_out()
        dataset = Pairs.from_frame(
            contents.frame.drop(columns=list(options.drop)), column=options.column, target=options.target, split=options.split,
            strict=options.strict, name=contents.name, origin=contents.origin, findings=findings,
        )  # fmt: skip
        dataset.start = Start.of(options)
        return dataset

    def split(self, dataset: Pairs, *, test: float, seed: int, plain: bool = False) -> Split:
        share = min(0.1, 2000 / len(dataset))
        test = min(test, 0.2, max(2000 / len(dataset), 0.01))
        return split(dataset, seed=seed, test=test, validation=share, calibration=share)

    def encoder(self, dataset: Pairs, parts: Split) -> PairsEncoder:
        start, options = dataset.start, dataset.options
        if start is None:
            return PairsEncoder.fit(dataset, parts.train, **options.token_options())
        outline = start.translator()
        assert outline.begin is not None
        longest = options.context or LONGEST
        return PairsEncoder.with_tokenizer(
            start.tokenizer, outline.begin, dataset, parts.train, context=min(longest, outline.positions or longest)
        )

    def read_encoder(self, saved: Any, tensors: dict[str, Tensor]) -> PairsEncoder:
        return PairsEncoder.from_json(saved, tensors)

    def task(self, dataset: Pairs, parts: Split, encoder: PairsEncoder) -> Task:
        vocab = encoder.tokenizer.vocab if dataset.start is None else dataset.start.outline.vocab
        return Translation(vocab=vocab, read=encoder.read, pad=encoder.pad)

    def recipe(self, dataset: Pairs, parts: Split, encoder: PairsEncoder, task: Any) -> Recipe:
        """Defaults for pairs of this number: a small transformer, a few minutes on a laptop."""
        rows = len(parts.train)
        large = rows > 20_000
        dim, depth = (192, 3) if large else (128, 2)
        batch = 64 if rows >= 2000 else 32 if rows >= 200 else 8
        epoch = max(1, rows // batch)
        steps = max(300, min(4000, epoch * (8 if large else 60)))
        vocab = encoder.tokenizer.vocab
        recipe = Recipe(
            model=EncoderDecoder.spec(vocab=vocab, dim=dim, depth=depth, heads=4, dropout=0.1, begin=1),
            task=task_spec(task, label_smoothing=0.05),
            learner=GradientDescent.spec(),
            optimizer=FusedAdamW.spec(weight_decay=0.01, betas=[0.9, 0.98]),
            schedule=Spec("optim.warmup_cosine", {"warmup": 0.1}),
            steps=steps,
            batch_size=batch,
            lr=2e-3 if not large else 1e-3,
            evaluate_every=max(1, steps // 15),
            patience=6,
        )
        start = dataset.start
        if start is None:
            return recipe
        batch, outline = 16 if rows >= 200 else 8, start.translator()
        recipe = replace(recipe, batch_size=batch, task=task_spec(task))
        return start.recipe(recipe, outline.spec, epoch=max(1, rows // batch), epochs=5)

    def initial(self, dataset: Any, task: Task) -> nn.Module | None:
        return None if dataset.start is None else dataset.start.load()

    def adjust_to_steps(self, recipe: Recipe) -> Recipe:
        return recipe.changed(evaluate_every=evaluation_interval(recipe.steps))

    def facts(self, run: Any, plan: Any) -> dict[str, Any]:
        return {"noun": "pairs", "columns_title": "The texts"}


KIND = PairsKind()
