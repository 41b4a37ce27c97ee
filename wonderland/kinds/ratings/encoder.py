"""Events as rows of codes: the user, the item, and the items before it."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.data.dataset import Dataset
from wonderland.data.encoder import Field, RowEncoder
from wonderland.data.examples import RowExamples
from wonderland.data.ports import Preprocessing, Trial
from wonderland.data.source import Glimpse
from wonderland.kinds.ratings.events import Events, Past, Queries, without_header
from wonderland.kinds.ratings.program import CodeProgram, rating_trials


class EventExamples(RowExamples):
    """Rows with what their users had chosen before, and scores of items that need no training."""

    def __init__(self, x: Tensor, dataset: Any, encoder: "RatingsEncoder", past: list[np.ndarray]):
        super().__init__(x, dataset.y, len(dataset))
        self.past, self.popularity = past, encoder.saved["popularity"].numpy()
        self.near, self.how = encoder.saved["near"], encoder.saved["how"]
        self.user_names = np.asarray(
            dataset.names if isinstance(dataset, Queries) else dataset.frame["user"].astype(str)
        )
        self.item_names = np.array(["", *encoder.item_names], dtype=object)

    def seen(self, row: int) -> np.ndarray:
        """Items that the user of a row had chosen before."""
        return self.past[row]

    def baseline(self, way: str, seen: list[np.ndarray]) -> Tensor:
        """Scores (b, items + 1): how often an item was chosen, or how alike it is to those chosen before."""
        popular = torch.from_numpy(self.popularity).float()
        scores = (popular / (popular.max() + 1) * (1e-6 if way == "neighbours" else 1.0)).repeat(len(seen), 1)
        if way == "neighbours":
            for row, items in enumerate(seen):
                rows = torch.from_numpy(np.asarray(items, np.int64))
                scores[row].index_add_(0, self.near[rows].flatten(), self.how[rows].flatten())
        return scores


class RatingsEncoder(RowEncoder):
    """Codes of users and items, and all that was chosen, so that nothing is recommended twice."""

    kind = "ratings"
    classes = None

    def __init__(
        self,
        users: list[str],
        items: list[str],
        roles: dict[str, str],
        goal: str,
        length: int,
        saved: dict[str, Tensor],
    ):
        self.user_names, self.item_names, self.roles, self.goal, self.length = users, items, roles, goal, length
        self.saved, self.noticed = saved, []

    @property
    def known(self) -> tuple[np.ndarray, np.ndarray]:
        """What each user chose, oldest first."""
        return self.saved["begins"].numpy(), self.saved["items"].numpy()

    def past(self, dataset: Any) -> list[np.ndarray]:
        """What the user of each row had chosen before it."""
        if isinstance(dataset, Queries):
            return dataset.past
        past = Past(dataset, self.known if getattr(dataset, "later", False) else None)
        return [past.before(row) for row in range(len(dataset))]

    def encode(self, dataset: Any, rows: np.ndarray | None = None) -> Tensor:
        past = self.past(dataset)
        chosen = np.arange(len(dataset)) if rows is None else rows
        x = np.zeros((len(chosen), 2 + self.length), np.int64)
        x[:, 0] = dataset.users[chosen]
        if self.goal == "rating":
            x[:, 1] = dataset.items[chosen]
        for place, row in enumerate(chosen):
            items = past[row][-self.length :] if self.length else past[row][:0]
            if len(items):
                x[place, -len(items) :] = items
        return torch.from_numpy(x)

    def examples(self, dataset: Any) -> RowExamples:
        if self.goal == "rating":
            return RowExamples(self.encode(dataset), dataset.y, len(dataset))
        return EventExamples(self.encode(dataset), dataset, self, self.past(dataset))

    def open(self, source: Any, *, need_target: bool = False) -> Dataset:
        contents = Glimpse(source).contents
        if contents.frame is None:
            raise WonderlandError(f"{contents.name} is no table of users.")
        frame = without_header(contents.frame)
        asked: dict[str, str | None] = {role: column for role, column in self.roles.items() if column in frame.columns}
        need = ("user", "item") if need_target or self.goal == "rating" else ("user",)
        known = (self.user_names, self.item_names)
        goal = self.goal if need_target else "ranking"
        events = Events(frame, asked, name=contents.name, origin=contents.origin, goal=goal, known=known, need=need)
        events.later = True  # pyright: ignore
        if not need_target:
            events.y = None
        return events if need_target or self.goal == "rating" else Queries(events, self.known)

    def schema(self) -> list[Field]:
        return [Field(self.roles["user"], "category"), Field(self.roles["item"], "category")]

    trial_words = "users and items, known and new ones, in batches of 1, 7 and 100"

    def module(self, *, double: bool = False) -> Preprocessing | str:
        return CodeProgram(self.length, self.goal == "ranking")

    def trials(self, *, double: bool = False) -> Iterator[Trial]:
        return rating_trials(self)

    def beside(self) -> dict[str, bytes]:
        """The names of users and items, and the codes of what each user chose."""
        begins, items = self.known
        chosen = {
            name: items[begins[i] : begins[i + 1]].tolist()
            for i, name in enumerate(self.user_names, 1)
            if i + 1 < len(begins)
        }
        names = {"users": self.user_names, "items": self.item_names, "chosen": chosen}
        return {"names.json": json.dumps(names, ensure_ascii=False).encode("utf-8", "surrogatepass")}

    def arguments(self) -> dict[str, Any]:
        return {"users": len(self.user_names), "items": len(self.item_names), "goal": self.goal}

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "users": self.user_names,
            "items": self.item_names,
            "roles": self.roles,
            "goal": self.goal,
            "history": self.length,
        }

    def tensors(self) -> dict[str, Tensor]:
        return self.saved
