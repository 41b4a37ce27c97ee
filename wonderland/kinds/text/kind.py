"""The kind text: texts with classes or a number; a linear model beside a TextCNN, or a checkpoint with a head."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError
from wonderland.core.recipe import Ensemble, Recipe
from wonderland.data.dataset import TASKS, Finding
from wonderland.data.source import Contents, Glimpse
from wonderland.data.text.layouts import TextTable
from wonderland.data.text.sentence_pairs import SentencePairs, pairs_of_frame, pairs_of_json, pairs_of_names
from wonderland.data.text.vectors import read_vectors
from wonderland.kinds.kind import Claim, Kind, model_space, task_spec
from wonderland.kinds.table.test_set import join_test
from wonderland.kinds.text.encoder import SEPARATOR, TextEncoder
from wonderland.kinds.text.importance import baselines, clusters, explained_mistakes, neighbours, word_importance
from wonderland.kinds.text.learner import LinearFirst
from wonderland.kinds.text.options import Options as TextOptions
from wonderland.kinds.text.texts import Texts, text_columns
from wonderland.models import DecomposableAttention, PairTexts, TextBlend, TextCNN, TextLinear
from wonderland.optim import FusedAdamW
from wonderland.tasks import Task
from wonderland.train.start import Start

NETWORK = TextCNN.spec(vocab=10_000, classes=5, dim=96, channels=64, widths=[2, 3, 4], max_norm=3.0)
PAIR_NETWORK = DecomposableAttention.spec(vocab=10_000, classes=3, dim=96, hidden=96, dropout=0.3)
TOKENS = 1_500_000  # tokens that the network of the default model learns from, counted once an epoch
OTHER_COLUMNS = ("column", "split", "keep", "drop", "group", "time")  # options that say what columns of a table mean
LEAST_EPOCHS, MOST_EPOCHS = 4, 50  # with fewer epochs within that number of tokens there is no network


class TextKind(Kind):
    """Texts with a class or a number each: a table of texts and a target, labelled lines, or class folders of text files."""

    name = "text"
    Options = TextOptions
    models = ("models.TextBlend", "models.TextLinear", "models.TextCNN", "models.BiRNN")
    typical = {"vocab": 10_000, "classes": 5, "features": 30_000, "length": 24, "network": NETWORK}  # noqa: RUF012

    def claims(self, glimpse: Glimpse, asked: Mapping[str, Any]) -> Claim | None:
        if glimpse.plain_text == "folders":
            return Claim(0.95, "each text has a label")
        if self._pairs(glimpse, asked) is not None:
            return Claim(0.985, "each row holds two sentences and an answer")
        if not any(asked.get(name) for name in OTHER_COLUMNS):
            try:
                if (table := glimpse.text_table(asked.get("target"))) is not None:
                    return Claim(0.975, f"each row holds text and {table.target!r} an answer")
            except WonderlandError:  # two layouts, or a broken line: opening it says which option decides
                return Claim(0.975, "each line holds text and an answer")
        if glimpse.plain_text == "labelled":
            return Claim(0.95, "each text has a label")
        if (glimpse.plain_text is not None and not asked.get("column")) or glimpse.frame is None:
            return None
        if asked.get("group") or asked.get("time"):
            return None
        if asked.get("target") is not None and asked["target"] not in glimpse.frame.columns:
            return None  # another kind may read it as several columns, or says that there is none
        columns = self._columns(glimpse, asked, chosen=False)
        if columns is None:
            return None
        names, holds = ", ".join(map(repr, columns[0])), "holds" if len(columns[0]) == 1 else "hold"
        return Claim(0.9, f"column {names} {holds} free text and {columns[1]!r} the target")

    def _pairs(self, glimpse: Glimpse, asked: Mapping[str, Any]) -> SentencePairs | None:
        """Two sentences a row, known by the names of their columns, unless options say what the columns mean."""
        target = asked.get("target")
        if any(asked.get(name) for name in OTHER_COLUMNS) or not isinstance(target, str | None):
            return None
        if asked.get("task") not in (None, *TASKS, "classification"):
            return None
        pairs = None if glimpse.path is None else pairs_of_json(glimpse.path, target)
        if (
            pairs is None
            and glimpse.plain_text is None
            and glimpse.frame is not None
            and pairs_of_names(list(glimpse.frame.columns), target)
        ):
            pairs = pairs_of_frame(glimpse.frame, glimpse.name, target)
        return pairs

    def _columns(self, glimpse: Glimpse, asked: Mapping[str, Any], *, chosen: bool) -> tuple[list[str], str] | None:
        """The text columns and the target."""
        assert glimpse.frame is not None
        target = asked.get("target") or glimpse.contents.target
        left_out = [*_names(asked.get("drop")), *_names(asked.get("split"))]
        roles = glimpse.roles(left_out, {*_names(asked.get("keep")), target})
        task, column = asked.get("task"), asked.get("column")
        return text_columns(glimpse.frame, target, roles, task=task, column=column, asked=chosen)

    def open(self, glimpse: Glimpse, options: TextOptions, test: Glimpse | None = None) -> Texts:
        if glimpse.plain_text == "folders":
            assert glimpse.path is not None
            self.refuse_test(test, "texts from files are split by themselves")
            return self._with_start(Texts.from_folder(glimpse.path, strict=options.strict), options)
        if (pairs := self._pairs(glimpse, vars(options))) is not None:
            return self._with_start(self._from_pairs(glimpse, pairs, options, test), options)
        if not any(vars(options).get(name) for name in OTHER_COLUMNS):
            table = glimpse.text_table(options.target) or glimpse.text_table(options.target, any_label=True)
            if table is not None:
                return self._with_start(self._from_table(glimpse, table, options, test), options)
        if glimpse.plain_text == "labelled":
            assert glimpse.path is not None
            other = None if test is None else test.path
            return self._with_start(
                Texts.from_lines(glimpse.path, strict=options.strict, task=options.task, test=other), options
            )
        if glimpse.plain_text == "plain" and options.column is None:
            raise WonderlandError(
                f"{glimpse.path} has no classes: begin each line with a label, or sort texts into class folders."
            )
        contents = glimpse.contents
        if contents.frame is None:
            raise WonderlandError(f"{contents.name} holds no texts.")
        asked = vars(options)
        # The user named this kind, so the longest text column is used even if other columns are informative.
        columns = self._columns(glimpse, asked, chosen=False) or self._columns(glimpse, asked, chosen=True)
        if columns is None:
            raise WonderlandError(
                f"{contents.name} has no text column beside a target: name them with the options column and target."
            )
        roles = glimpse.roles(
            [*options.drop, *_names(options.split)], {*options.keep, options.target or contents.target}
        )
        findings = contents.findings + ([] if options.column else roles.left_out())
        test_rows = None if test is None else join_test(contents, test.contents)
        dataset = Texts.from_frame(
            contents.frame, *columns, task=options.task, strict=options.strict, name=contents.name, origin=contents.origin,
            findings=findings, test_rows=test_rows, split=options.split,
        )  # fmt: skip
        return self._with_start(dataset, options)

    def _from_table(self, glimpse: Glimpse, table: TextTable, options: TextOptions, test: Glimpse | None) -> Texts:
        """Texts from a file whose layout was found out; a test file has the same columns."""
        assert glimpse.path is not None
        frame, origin, test_rows = table.frame, {"path": str(glimpse.path.absolute())}, None
        if test is not None:
            contents = Contents(glimpse.name, origin, frame=frame)
            test_rows = join_test(contents, _as_like(table, test))
            frame, origin = contents.frame, contents.origin
        assert frame is not None
        findings = [Finding("text", glimpse.name, len(frame), table.sentence), *table.findings]
        return Texts.from_frame(
            frame, table.texts, table.target, task=options.task, strict=options.strict, name=glimpse.name, origin=origin,
            findings=findings, test_rows=test_rows, note_text=False,
        )  # fmt: skip

    def _from_pairs(self, glimpse: Glimpse, pairs: SentencePairs, options: TextOptions, test: Glimpse | None) -> Texts:
        """Pairs of sentences; a test file has the same columns."""
        origin = {"path": str(glimpse.path.absolute())} if glimpse.path is not None else glimpse.contents.origin
        frame, test_rows = pairs.frame, None
        if test is not None:
            other = self._pairs(test, vars(options))
            contents = Contents(glimpse.name, origin, frame=frame)
            where = {} if test.path is None else {"path": str(test.path.absolute())}
            test_rows = join_test(
                contents, test.contents if other is None else Contents(test.name, where, frame=other.frame)
            )
            frame, origin = contents.frame, contents.origin
        assert frame is not None
        return Texts.from_frame(
            frame, pairs.texts, pairs.target, task=options.task, strict=options.strict, name=glimpse.name, origin=origin,
            findings=pairs.findings, test_rows=test_rows, note_text=False,
        )  # fmt: skip

    def _with_start(self, dataset: Texts, options: TextOptions) -> Texts:
        dataset.start = Start.of(options)
        if dataset.start is not None and options.vectors is not None:
            raise WonderlandError("A checkpoint has an embedding of its own: vectors is for a fit without one.")
        return dataset

    def encoder(self, dataset: Texts, parts: Any) -> TextEncoder:
        start, options = dataset.start, dataset.options
        if start is None:
            return TextEncoder.fit(dataset, parts.train, **options.token_options())
        outline = start.classifier(max(1, len(dataset.classes or ())))
        limit = {"most": outline.positions, "context": options.context}
        return TextEncoder.with_tokenizer(start.tokenizer, outline.pad, dataset, parts.train, **limit)

    def read_encoder(self, saved: Any, tensors: dict[str, Tensor]) -> TextEncoder:
        return TextEncoder.from_json(saved, tensors)

    def recipe(self, dataset: Texts, parts: Any, encoder: TextEncoder, task: Any) -> Recipe:
        """Defaults for texts of this number: TextCNN with much dropout, about 100,000 examples seen; or few epochs of tuning."""
        rows, features, outputs = len(parts.train), encoder.arguments().get("features", 0), task.outputs
        batch = next(batch for least, batch in ((1000, 64), (200, 32), (0, 16)) if rows >= least)
        epoch = max(1, rows // batch)
        epochs = min(MOST_EPOCHS, TOKENS // (rows * encoder.length))
        network = NETWORK.changed(vocab=encoder.tokenizer.vocab, classes=outputs, pad=encoder.pad)
        if len(dataset.names) == 2 and dataset.start is None and outputs > 1:
            network = PAIR_NETWORK.changed(vocab=encoder.tokenizer.vocab, classes=outputs, pad=encoder.pad)
            network = PairTexts.spec(separator=encoder.tokenizer.id(SEPARATOR), network=network, pad=encoder.pad)
        if dataset.options is not None and dataset.options.vectors is not None:
            network = NETWORK.changed(vocab=encoder.tokenizer.vocab, classes=outputs, pad=encoder.pad)
            table, _ = read_vectors(dataset.options.vectors, {}, 1)
            network, epochs = network.changed(dim=table.shape[1], fixed=True), max(epochs, LEAST_EPOCHS)
        recipe = Recipe(
            model=TextBlend.spec(features=features, classes=outputs, length=encoder.length, network=network),
            task=task_spec(task, **({} if task.classes is None else {"label_smoothing": 0.05})),
            learner=LinearFirst.spec(),
            optimizer=FusedAdamW.spec(weight_decay=0.01, betas=[0.9, 0.99]),
            schedule=Spec("optim.warmup_cosine", {"warmup": 0.05}),
            steps=1 + epoch * max(LEAST_EPOCHS, epochs),
            batch_size=batch,
            lr=4e-3,
            average=0.99,
            evaluate_every=epoch * max(1, epochs // 12),
            patience=6,
            ensemble=Ensemble(2, None, 2),
            augment=Spec(
                "data.WordDropout",
                {"length": encoder.length, "unknown": encoder.tokenizer.unknown or 0, "pad": encoder.pad},
            ),
        )
        if epochs < LEAST_EPOCHS and dataset.start is None:
            recipe = replace(
                recipe, model=TextLinear.spec(features=features, classes=outputs), ensemble=None, average=None
            )
        start = dataset.start
        if start is None:
            return recipe
        batch = 16 if rows >= 200 else 8
        epoch, epochs = max(1, rows // batch), max(2, min(10, round(20_000 / rows)))
        recipe = replace(recipe, batch_size=batch, task=task_spec(task), augment=None)
        network = start.classifier(task.outputs).spec
        model = TextBlend.spec(features=features, classes=outputs, length=encoder.length, network=network)
        tuned = start.recipe(recipe, model, epoch=epoch, epochs=epochs)
        # A linear layer on a frozen trunk is fitted in the first step, to the vectors of all texts.
        return replace(tuned, steps=1, evaluate_every=1) if self._has_closed_form(start, network) else tuned

    def prepare(self, model: nn.Module, plan: Any) -> nn.Module:
        """With `vectors`, the embedding begins with them, and stays beside itself as it began: the two channels of Kim, 2014."""
        path = plan.dataset.options.vectors
        network: Any = getattr(model, "network", model)
        if path is None or getattr(network, "known", None) is None:
            return model
        tokenizer = plan.encoder.tokenizer
        words = {tokenizer.token(i): i for i in range(tokenizer.vocab)}
        table, has = read_vectors(path, words, tokenizer.vocab)
        if not has.any():
            raise WonderlandError(
                f"{path} has no vector of any word of {plan.dataset.name}: is it of another language?"
            )
        known = torch.as_tensor(has)
        with torch.no_grad():
            network.known.copy_(table)
            network.embedding.weight[known] = table[known] * (0.15 / table[known].std().clamp_min(1e-6))
        return model

    def _has_closed_form(self, start: Start, network: Spec) -> bool:
        arguments = network.arguments
        return (
            start.method == "head"
            and arguments.get("pool", "mean") != "summary"
            and arguments.get("bias", True) is True
        )

    def around(self, initial: nn.Module, recipe: Recipe) -> nn.Module:
        """The network of a checkpoint beside the linear model."""
        if not isinstance(recipe.model, Spec) or recipe.model.name != "models.TextBlend":
            return initial
        blend: Any = recipe.model.build()
        blend.network = initial
        return blend

    def adjust_to_steps(self, recipe: Recipe) -> Recipe:
        """A linear model alone is fitted in one step, and nothing is dropped from the features that it reads."""
        alone = isinstance(recipe.model, Spec) and recipe.model.name == "models.TextLinear"
        return replace(recipe, steps=1, evaluate_every=1, augment=None) if alone else recipe

    def space(self, recipe: Recipe) -> dict[str, Any]:
        return super().space(recipe) | model_space(
            recipe, {"model.dim": ("choice", [64, 128, 256]), "model.channels": ("choice", [50, 100, 200])}
        )

    def initial(self, dataset: Any, task: Task) -> nn.Module | None:
        start = dataset.start
        return None if start is None else start.load_classifier(task.outputs)

    def facts(self, run: Any, plan: Any) -> dict[str, Any]:
        """Importance of words, measured by leaving them out, words with similar embeddings, and what each part of the model is worth."""
        items = word_importance(run, plan)
        near = neighbours(run, plan.encoder, [str(item["name"]) for item in items])
        words = {
            "importance": items,
            "importance_score": run.task.score_name,
            "importance_of": "word",
            "neighbours": near,
        }
        return {
            "columns_title": "The texts",
            "long_rows": True,
            "baselines": baselines(run, plan),
            "clusters": clusters(run, plan),
        } | words

    def explain(self, run: Any, plan: Any, facts: dict[str, Any]) -> dict[str, Any]:
        """The words that mattered for each mistake that the report shows."""
        return {"mistakes": explained_mistakes(run, plan, facts.get("mistakes") or [])}


def _as_like(table: TextTable, test: Glimpse) -> Contents:
    """The contents of a test file, its columns named as those of the training file where both have no names."""
    other = test.text_table() or test.text_table(any_label=True)
    if other is None:
        return test.contents
    frame = other.frame
    if len(other.texts) == len(table.texts):
        names = dict(
            zip((*other.texts, *other.target.split(",")), (*table.texts, *table.target.split(",")), strict=False)
        )
        frame = frame.rename(columns=names)
    origin = {} if test.path is None else {"path": str(test.path.absolute())}
    return Contents(test.name, origin, frame=frame)


def _names(value: Any) -> list[str]:
    """A list of names from one, several or none; other values are refused later, when the options are checked."""
    if isinstance(value, list | tuple | set):
        return [name for name in value if isinstance(name, str)]
    return [value] if isinstance(value, str) else []


KIND = TextKind()
