"""Ratings and clicks: factors of users and items with the items chosen before, split by time."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.core.recipe import Recipe
from wonderland.data.dataset import counted
from wonderland.data.source import Glimpse
from wonderland.data.split import Parts, Split
from wonderland.kinds.kind import Claim, Kind, row_task, simple_recipe
from wonderland.kinds.ratings.encoder import RatingsEncoder
from wonderland.kinds.ratings.events import FEWEST, Events, columns_of, without_header
from wonderland.kinds.ratings.options import Options as RatingsOptions
from wonderland.models.recommend import MatrixFactorisation, item_neighbours
from wonderland.tasks import Ranking, Task

HISTORY = 50


class RatingsKind(Kind):
    """Who chose what, when, and how it was rated."""

    name = "ratings"
    Options = RatingsOptions
    models = ("models.MatrixFactorisation", "models.SequenceRecommender", "models.NeuMF", "models.AutoRec", "models.FactorisationMachine",
              "models.DeepFM", "models.Caser")  # fmt: skip
    typical = {"users": 100, "items": 100}  # noqa: RUF012

    def claims(self, glimpse: Glimpse, asked: Mapping[str, Any]) -> Claim | None:
        named = {role: asked.get(role) for role in ("user", "item", "rating", "when")}
        if (
            asked.get("target")
            or asked.get("task")
            or glimpse.plain_text
            or glimpse.frame is None
            or len(glimpse.frame.columns) > 12
        ):
            return None
        frame: Any = glimpse.frame
        roles = columns_of(frame, {role: column for role, column in named.items() if column in frame.columns})
        if "user" not in roles or "item" not in roles:
            return None
        if not (named["user"] and named["item"]) and not len(frame) > max(
            frame[roles[role]].nunique() for role in ("user", "item")
        ):
            return None
        return Claim(0.97, f"columns {roles['user']!r} and {roles['item']!r} say who chose what")

    def open(self, glimpse: Glimpse, options: RatingsOptions, test: Glimpse | None = None) -> Events:
        self.refuse_test(test, "the latest events are kept for the test")
        contents = glimpse.contents
        if contents.frame is None:
            raise WonderlandError(f"{contents.name} is no table of users and items.")
        asked = {role: vars(options)[role] for role in ("user", "item", "rating", "when")}
        return Events(
            without_header(contents.frame), asked, name=contents.name, origin=contents.origin, goal=options.goal
        )

    def split(self, dataset: Events, *, test: float, seed: int, plain: bool = False) -> Parts:
        """In order of time: the model learns from the past and is measured on what came after."""
        if len(dataset) < FEWEST:
            raise WonderlandError(
                f"{dataset.name} holds {counted(len(dataset), 'event', 'events')}; at least {FEWEST} are needed to learn from some and measure on others."
            )
        return super().split(dataset, test=test, seed=seed, plain=True)

    def encoder(self, dataset: Events, parts: Split) -> RatingsEncoder:
        options: RatingsOptions = dataset.options or RatingsOptions()
        length = HISTORY if options.history is None else options.history
        users, items = torch.from_numpy(dataset.users[parts.train]), torch.from_numpy(dataset.items[parts.train])
        count = len(dataset.item_names)
        near, how = item_neighbours(users, items, count)
        order = np.lexsort((np.asarray(dataset.times), dataset.users))
        begins = np.searchsorted(dataset.users[order], np.arange(len(dataset.user_names) + 2))
        saved = {
            "popularity": torch.bincount(items, minlength=count + 1),
            "near": near,
            "how": how,
            "begins": torch.from_numpy(begins),
            "items": torch.from_numpy(dataset.items[order]),
        }
        return RatingsEncoder(dataset.user_names, dataset.item_names, dataset.roles, dataset.goal, length, saved)

    def task(self, dataset: Events, parts: Split, encoder: RatingsEncoder) -> Task:
        return row_task(dataset, parts) if dataset.goal == "rating" else Ranking(items=len(dataset.item_names))

    def recipe(self, dataset: Events, parts: Split, encoder: RatingsEncoder, task: Any) -> Recipe:
        model = MatrixFactorisation.spec(**encoder.arguments(), dim=64, dropout=0.5)
        return simple_recipe(model, task, len(parts.train), epochs=20, lr=2e-3)

    def read_encoder(self, saved: Any, tensors: dict[str, Tensor]) -> RatingsEncoder:
        refusal = WonderlandError("The preprocessing of this run is not for ratings: it is damaged or not ours.")
        try:
            users, items, roles, goal, length = (saved[name] for name in ("users", "items", "roles", "goal", "history"))
            texts = [*users, *items, *roles, *roles.values()]
            fine = (
                all(isinstance(text, str) for text in texts)
                and goal in ("ranking", "rating")
                and {"user", "item"} <= set(roles)
            )
            fine = fine and isinstance(length, int) and not isinstance(length, bool) and 0 <= length <= 10_000
            shapes = {
                "popularity": (len(items) + 1,),
                "begins": (len(users) + 2,),
                "near": tensors["how"].shape,
                "how": tensors["near"].shape,
            }
            fine = fine and all(tuple(tensors[name].shape) == tuple(shape) for name, shape in shapes.items())
            fine = (
                fine
                and len(tensors["near"]) == len(items) + 1
                and not any(tensors[name].is_floating_point() for name in ("near", "items", "begins"))
            )
            for name, most in (("near", len(items)), ("items", len(items)), ("begins", len(tensors["items"]))):
                fine = fine and (
                    not tensors[name].numel() or (int(tensors[name].min()) >= 0 and int(tensors[name].max()) <= most)
                )
            fine = (
                fine
                and bool((tensors["begins"].diff() >= 0).all())
                and isinstance(users, list)
                and isinstance(items, list)
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise refusal from error
        if not fine:
            raise refusal
        return RatingsEncoder(users, items, roles, goal, length, tensors)

    def facts(self, run: Any, plan: Any) -> dict[str, Any]:
        return {"columns_title": "Who and what"}


KIND = RatingsKind()
