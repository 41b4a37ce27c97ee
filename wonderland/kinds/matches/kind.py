"""The kind matches: texts that belong together; an encoder whose vectors begin as TF-IDF and learn from the pairs."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.core.recipe import Recipe
from wonderland.data.source import Glimpse
from wonderland.data.split import Split
from wonderland.kinds.kind import Claim, Kind, model_space, simple_recipe
from wonderland.kinds.matches.encoder import MatchEncoding, MatchExamples
from wonderland.kinds.matches.matches import Matches
from wonderland.kinds.matches.options import Options as MatchOptions
from wonderland.models import MatchEncoder
from wonderland.tasks import Matching, Task
from wonderland.tasks.leaderboard import Baseline
from wonderland.tasks.matching import ranks_of


class MatchesKind(Kind):
    """Two texts a row that belong together."""

    name = "matches"
    Options = MatchOptions
    models = ("models.MatchEncoder",)
    typical = {"features": 30_000}  # noqa: RUF012

    def claims(self, glimpse: Glimpse, asked: Mapping[str, Any]) -> Claim | None:
        return (
            Claim(1.0, "matching is asked for")
            if asked.get("task") == "matching" and glimpse.frame is not None
            else None
        )

    def open(self, glimpse: Glimpse, options: MatchOptions, test: Glimpse | None = None) -> Matches:
        self.refuse_test(test, "pairs are split by themselves")
        contents = glimpse.contents
        if contents.frame is None:
            raise WonderlandError(f"{contents.name} holds no pairs of texts: give a table with two columns of text.")
        return Matches.from_frame(
            contents.frame,
            options.column,
            options.target,
            name=contents.name,
            origin=contents.origin,
            findings=contents.findings,
        )

    def split(self, dataset: Matches, *, test: float, seed: int, plain: bool = False) -> Split:
        return super().split(dataset, test=test, seed=seed, plain=True)  # pyright: ignore

    def encoder(self, dataset: Matches, parts: Any) -> MatchEncoding:
        return MatchEncoding.fit(dataset, parts.train)

    def read_encoder(self, saved: Any, tensors: dict[str, Tensor]) -> MatchEncoding:
        return MatchEncoding.from_json(saved, tensors)

    def task(self, dataset: Matches, parts: Any, encoder: MatchEncoding) -> Task:
        return Matching()

    def recipe(self, dataset: Matches, parts: Any, encoder: MatchEncoding, task: Any) -> Recipe:
        """Defaults for pairs of this number: about 40,000 pairs seen, no more than 20 times each, in batches as large as they allow."""
        rows = len(parts.train)
        batch = next(size for least, size in ((2000, 128), (400, 64), (100, 32), (0, 8)) if rows >= least)
        epoch, epochs = max(1, rows // batch), max(2, min(20, round(40_000 / rows)))
        recipe = simple_recipe(MatchEncoder.spec(features=len(encoder.grams)), task, rows, epochs=epochs, lr=1e-3)
        return recipe.changed(
            batch_size=batch,
            steps=epoch * epochs,
            evaluate_every=max(1, epoch * epochs // 15),
            average=0.95,
            patience=5,
        )

    def baselines(self, plan: Any) -> list[Baseline]:
        """The cosine of the features themselves."""
        return [Baseline("cosine of TF-IDF", lambda: tfidf_ranks(plan.examples, plan.parts.test))]

    def space(self, recipe: Recipe) -> dict[str, Any]:
        return super().space(recipe) | model_space(recipe, {"model.dim": ("choice", [256, 384, 512])})

    def facts(self, run: Any, plan: Any) -> dict[str, Any]:
        return {"noun": "pairs", "columns_title": "The texts"}


def tfidf_ranks(examples: MatchExamples, rows: np.ndarray) -> np.ndarray:
    """Ranks of the right texts by the cosine of sparse features: (n,)."""
    rows = np.asarray(rows)
    return ranks_of(examples.word_cosines(rows), examples.documents[rows])


KIND = MatchesKind()
