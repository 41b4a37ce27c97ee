"""The kind tags: words with a tag each; features of words and a bidirectional network under a CRF."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.core.recipe import Recipe
from wonderland.data.source import Glimpse
from wonderland.data.split import Split
from wonderland.data.text.tagged import Tagged, read_tagged
from wonderland.kinds.kind import Claim, Kind, model_space, simple_recipe
from wonderland.kinds.tags.encoder import TagEncoder
from wonderland.kinds.tags.options import Options as TagOptions
from wonderland.kinds.tags.sentences import Sentences
from wonderland.models import Tagger
from wonderland.nn import CRF
from wonderland.tasks import Tagging, Task
from wonderland.tasks.leaderboard import Baseline

UNSEEN = -4.0  # the score of a step that training never shows, before it
MANY_TAGS = 20  # with more of them, the linear part reads one word at either side


class TagsKind(Kind):
    """Sentences whose words have tags: names, parts of speech, chunks."""

    name = "tags"
    Options = TagOptions
    models = ("models.Tagger",)
    typical = {"features": 1000, "tags": 9}  # noqa: RUF012

    def claims(self, glimpse: Glimpse, asked: Mapping[str, Any]) -> Claim | None:
        if asked.get("task") not in (None, "tagging"):
            return None
        try:
            tagged = self._tagged(glimpse, asked.get("column"), asked.get("target"))
        except WonderlandError:
            return None if asked.get("target") or asked.get("column") else Claim(0.96, "words have tags")
        return None if tagged is None else Claim(0.999, "each word has a tag")

    def _tagged(self, glimpse: Glimpse, column: Any, target: Any) -> Tagged | None:
        if glimpse.path is None or not all(isinstance(name, str | None) for name in (column, target)):
            return None
        return read_tagged(glimpse.path, glimpse.reading, column=column, target=target)

    def open(self, glimpse: Glimpse, options: TagOptions, test: Glimpse | None = None) -> Sentences:
        tagged = self._tagged(glimpse, options.column, options.target)
        if tagged is None:
            raise WonderlandError(
                f"{glimpse.name} holds no tagged words: give columns with an empty line after each sentence, or JSON lines with "
                "a text and its spans. The options column and target name other columns."
            )
        assert glimpse.path is not None
        origin: dict[str, Any] = {"path": str(glimpse.path.absolute())}
        if test is None:
            return Sentences.learned(glimpse.name, tagged, origin, options.strict)
        other = self._tagged(test, options.column, options.target)
        if other is None or test.path is None:
            raise WonderlandError(f"{test.name} holds no tagged words, so it cannot be the test set of {glimpse.name}.")
        origin["test"] = {"path": str(test.path.absolute())}
        return joined(Sentences.learned, glimpse.name, tagged, other, origin, options.strict)

    def split(self, dataset: Sentences, *, test: float, seed: int, plain: bool = False) -> Split:
        return super().split(dataset, test=test, seed=seed, plain=True)  # pyright: ignore

    def encoder(self, dataset: Sentences, parts: Any) -> TagEncoder:
        return TagEncoder.fit(dataset, parts.train)

    def read_encoder(self, saved: Any, tensors: dict[str, Tensor]) -> TagEncoder:
        return TagEncoder.from_json(saved, tensors)

    def task(self, dataset: Sentences, parts: Any, encoder: TagEncoder) -> Task:
        return Tagging(list(encoder.classes))

    def recipe(self, dataset: Sentences, parts: Any, encoder: TagEncoder, task: Any) -> Recipe:
        """Defaults for sentences of this number: about 60,000 sentences seen, no more than 60 times each."""
        rows = len(parts.train)
        batch = next(size for least, size in ((4000, 32), (400, 16), (0, 8)) if rows >= least)
        epochs = max(4, min(40, round(60_000 / rows)))
        window = 1 if task.outputs > MANY_TAGS else 2
        model = Tagger.spec(features=len(encoder.features), tags=task.outputs, window=window)
        recipe = simple_recipe(model, task, rows, epochs=epochs, lr=4e-3)
        epoch = max(1, rows // batch)
        return recipe.changed(
            batch_size=batch,
            steps=epoch * epochs,
            evaluate_every=max(epoch * max(1, epochs // 15), 20),
            average=0.99,
            patience=5,
        )

    def prepare(self, model: nn.Module, plan: Any) -> nn.Module:
        """The chain begins with a low score for tags that never follow each other in the training sentences, such as I-PER after O."""
        chain: Any = getattr(model, "chain", None)
        if not isinstance(chain, CRF):
            return model
        rows = [plan.dataset.tags[row] for row in plan.parts.train]
        follows = np.zeros(chain.transitions.shape, bool)
        begins, ends = np.zeros(len(follows), bool), np.zeros(len(follows), bool)
        for tags in rows:
            follows[tags[:-1], tags[1:]] = True
            begins[tags[0]] = ends[tags[-1]] = True
        with torch.no_grad():
            for weights, seen in ((chain.transitions, follows), (chain.first, begins), (chain.last, ends)):
                weights[torch.from_numpy(~seen)] = UNSEEN
        return model

    def baselines(self, plan: Any) -> list[Baseline]:
        """The most frequent tag of each word in the training sentences, and of words that are not among them the most frequent of all."""
        dataset, parts = plan.dataset, plan.parts.parts

        def majority() -> Any:
            counts: dict[str, Counter[str]] = {}
            for name in ("train", "validation", "calibration"):
                for row in parts[name]:
                    for word, tag in zip(dataset.words[row], dataset.tagged.tags[row], strict=True):
                        counts.setdefault(word, Counter())[tag] += 1
            usual = sum(counts.values(), Counter()).most_common(1)[0][0]
            best = {word: count.most_common(1)[0][0] for word, count in counts.items()}
            return [[best.get(word, usual) for word in dataset.words[row]] for row in parts["test"]]

        return [Baseline("most frequent tag of each word", majority)]

    def space(self, recipe: Recipe) -> dict[str, Any]:
        wished = {
            "model.dim": ("choice", [32, 64, 128]),
            "model.state_size": ("choice", [32, 64, 128]),
            "model.window": ("choice", [1, 2]),
        }
        return super().space(recipe) | model_space(recipe, wished)

    def facts(self, run: Any, plan: Any) -> dict[str, Any]:
        return {"noun": "sentences", "columns_title": "The tags"}


def joined(learned: Any, name: str, train: Tagged, test: Tagged, origin: dict[str, Any], strict: bool) -> Sentences:
    """The sentences of two files; those of the second are kept for the test."""
    assert train.tags is not None
    assert test.tags is not None
    places = train.texts is not None and test.texts is not None
    first = max(train.documents, default=-1) + 1
    both = Tagged(
        train.words + test.words, train.tags + test.tags, train.documents + [first + document for document in test.documents],
        train.sentence, (train.texts or []) + (test.texts or []) if places else None,
        (train.places or []) + (test.places or []) if places else None, [*train.findings, *test.findings],
    )  # fmt: skip
    dataset = learned(name, both, origin, strict)
    dataset.test_rows = np.arange(len(both.words)) >= len(train.words)
    if dataset.groups is not None and not places:
        dataset.groups = dataset.group = None
    return dataset


KIND = TagsKind()
