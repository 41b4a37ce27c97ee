"""The kind text: texts with classes; a TextCNN, or a checkpoint with a classification head."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError
from wonderland.core.recipe import Recipe
from wonderland.data.source import Glimpse
from wonderland.kinds.kind import Claim, Kind, model_space, task_spec
from wonderland.kinds.table.kind import join_test
from wonderland.kinds.text.encoder import TextEncoder
from wonderland.kinds.text.options import Options as TextOptions
from wonderland.kinds.text.texts import Texts, text_column
from wonderland.models import TextCNN
from wonderland.optim import FusedAdamW
from wonderland.tasks import Classification, Task
from wonderland.tasks.view import outputs
from wonderland.train.learner import GradientDescent
from wonderland.train.start import Start


class TextKind(Kind):
    """One text a row with its class: a table of text and label, labelled lines, or class folders of text files."""

    name = "text"
    Options = TextOptions
    models = ("models.TextCNN", "models.BiRNN")
    typical = {"vocab": 10_000, "classes": 5}  # noqa: RUF012

    def claims(self, glimpse: Glimpse, asked: Mapping[str, Any]) -> Claim | None:
        if glimpse.plain_text in ("folders", "labelled"):
            return Claim(0.95, "each text has a label")
        if (glimpse.plain_text is not None and not asked.get("column")) or glimpse.frame is None:
            return None
        if asked.get("group") or asked.get("time") or asked.get("task") == "regression":
            return None
        if asked.get("target") is not None and asked["target"] not in glimpse.frame.columns:
            return None  # another kind may read it as several columns, or says that there is none
        columns = self._columns(glimpse, asked, chosen=False)
        return (
            None if columns is None else Claim(0.9, f"column {columns[0]!r} holds free text and {columns[1]!r} classes")
        )

    def _columns(self, glimpse: Glimpse, asked: Mapping[str, Any], *, chosen: bool) -> tuple[str, str] | None:
        """The text column and the target."""
        assert glimpse.frame is not None
        target = asked.get("target") or glimpse.contents.target
        left_out = [*_names(asked.get("drop")), *_names(asked.get("split"))]
        roles = glimpse.roles(left_out, {*_names(asked.get("keep")), target})
        task, column = asked.get("task"), asked.get("column")
        return text_column(glimpse.frame, target, roles, task=task, column=column, asked=chosen)

    def open(self, glimpse: Glimpse, options: TextOptions, test: Glimpse | None = None) -> Texts:
        if glimpse.plain_text == "folders":
            assert glimpse.path is not None
            self.refuse_test(test, "texts from files are split by themselves")
            return self._with_start(Texts.from_folder(glimpse.path, strict=options.strict), options)
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

    def _with_start(self, dataset: Texts, options: TextOptions) -> Texts:
        dataset.start = Start.of(options)
        return dataset

    def encoder(self, dataset: Texts, parts: Any) -> TextEncoder:
        start, options = dataset.start, dataset.options
        if start is None:
            return TextEncoder.fit(dataset, parts.train, **options.token_options())
        outline = start.classifier(len(dataset.classes or ()))
        limit = {"most": outline.positions, "context": options.context}
        return TextEncoder.with_tokenizer(start.tokenizer, outline.pad, dataset, parts.train, **limit)

    def read_encoder(self, saved: Any, tensors: dict[str, Tensor]) -> TextEncoder:
        return TextEncoder.from_json(saved, tensors)

    def recipe(self, dataset: Texts, parts: Any, encoder: TextEncoder, task: Any) -> Recipe:
        """Defaults for texts of this number: TextCNN with much dropout, about 100,000 examples seen; or few epochs of tuning."""
        rows = len(parts.train)
        batch = next(batch for least, batch in ((8000, 64), (1000, 48), (200, 16), (0, 8)) if rows >= least)
        epoch = max(1, rows // batch)
        epochs = max(3, min(60, round(100_000 / rows)))
        recipe = Recipe(
            model=TextCNN.spec(
                vocab=encoder.tokenizer.vocab, classes=task.outputs, dim=128, channels=100, pad=0, max_norm=3.0
            ),
            task=task_spec(task, label_smoothing=0.05),
            learner=GradientDescent.spec(),
            optimizer=FusedAdamW.spec(weight_decay=0.01, betas=[0.9, 0.99]),
            schedule=Spec("optim.warmup_cosine", {"warmup": 0.05}),
            steps=epoch * epochs,
            batch_size=batch,
            lr=1e-3,
            average=0.99,
            evaluate_every=epoch,
            patience=8,
        )
        start = dataset.start
        if start is None:
            return recipe
        batch = 16 if rows >= 200 else 8
        epoch, epochs = max(1, rows // batch), max(2, min(10, round(30_000 / rows)))
        recipe = replace(recipe, batch_size=batch, task=task_spec(task))
        return start.recipe(recipe, start.classifier(task.outputs).spec, epoch=epoch, epochs=epochs)

    def space(self, recipe: Recipe) -> dict[str, Any]:
        return super().space(recipe) | model_space(
            recipe, {"model.dim": ("choice", [64, 128, 256]), "model.channels": ("choice", [50, 100, 200])}
        )

    def initial(self, dataset: Any, task: Task) -> nn.Module | None:
        start = dataset.start
        return None if start is None else start.load_classifier(task.outputs)

    def facts(self, run: Any, plan: Any) -> dict[str, Any]:
        """Importance of words, measured by masking them, and words with similar embeddings."""
        items, tokens = word_importance(run, plan)
        near = neighbours(run, plan.encoder, tokens)
        words = {"importance": items, "importance_score": "log loss", "importance_of": "word", "neighbours": near}
        return {"columns_title": "The texts", "long_rows": True} | words


def word_importance(run: Any, plan: Any, *, most: int = 400) -> tuple[list[dict[str, Any]], list[int]]:
    """The most important words, by how much masking them lowers the log-probability of the true class, in nats; and their tokens."""
    batch = plan.examples.take(plan.parts.test[:most])
    x, y = batch["x"], torch.as_tensor(batch["y"])
    task: Classification = run.task

    def score(tokens: Tensor) -> Tensor:
        return task.row_scores(outputs(run.model, tokens), y, run.trust)

    base, drops = score(x), defaultdict(list)
    encoder = plan.encoder
    tokenizer = encoder.tokenizer
    mask_token = next(token for token in (tokenizer.mask, tokenizer.unknown, encoder.pad) if token is not None)
    special = torch.tensor(
        [encoder.pad, *(token for side in tokenizer.surrounding_tokens if encoder.add_special_tokens for token in side)]
    )
    words = ~torch.isin(x, special)
    for place in range(min(x.shape[1], 32)):
        real, masked = words[:, place], x.clone()
        masked[real, place] = mask_token
        for token, drop in zip(x[real, place].tolist(), (base - score(masked))[real].tolist(), strict=True):
            drops[token].append(drop)
    frequent = {token: values for token, values in drops.items() if len(values) >= 3 and token != tokenizer.unknown}
    means = {
        token: (float(np.mean(values)), float(np.std(values) / len(values) ** 0.5))
        for token, values in frequent.items()
    }
    best = sorted(means, key=lambda token: -means[token][0])[:20]
    return [{"name": word(encoder, t), "value": means[t][0], "spread": means[t][1]} for t in best], best


def word(encoder: TextEncoder, token: int) -> str:
    """A token as readable text: decoded if it is from the vocabulary of a checkpoint."""
    written = encoder.tokenizer.pieces()[token].decode("utf-8", "replace").strip() if encoder.add_special_tokens else ""
    return written or encoder.tokenizer.token(token)


def neighbours(run: Any, encoder: TextEncoder, tokens: list[int]) -> list[dict[str, Any]]:
    """For a few tokens, those whose embeddings have the largest cosine with theirs."""
    modules = dict(run.model.named_modules())
    table = modules.get("trunk.embedding") or modules.get("embedding")
    if not isinstance(table, nn.Embedding):
        return []
    vectors = torch.nn.functional.normalize(table.weight.detach(), dim=1)[: encoder.tokenizer.vocab]
    rows = []
    for token in tokens[:12]:
        cosine = vectors @ vectors[token]
        order = [int(i) for i in cosine.argsort(descending=True)[:8] if int(i) not in (token, 0, 1)][:5]
        near = [{"token": word(encoder, i), "cosine": float(cosine[i])} for i in order]
        rows.append({"token": word(encoder, token), "near": near})
    return rows


def _names(value: Any) -> list[str]:
    """A list of names from one, several or none; other values are refused later, when the options are checked."""
    if isinstance(value, list | tuple | set):
        return [name for name in value if isinstance(name, str)]
    return [value] if isinstance(value, str) else []


KIND = TextKind()
