"""Users and items as inputs of an exported model: their codes, with what a user chose before; and what exports are tried on."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from wonderland.data.ports import BATCHES, ODD_ROWS, Feed, Port, Preprocessing, Trial


class CodeProgram(Preprocessing):
    """Codes of users and items, 0 for a new one: the user and the item asked about (0 for all), then items chosen before, oldest first."""

    model_inputs = 1

    def __init__(self, history: int, ranking: bool):
        about = (
            "the user, the item"
            + (" (0: scores of all)" if ranking else "")
            + (f", and the last {history} items chosen before, the latest last, 0 in front" if history else "")
            + "; numbers count the names in names.json from 1, 0 is a new one"
        )
        ports = [Port("codes", "int64", ("rows", 2 + history), about=about)]
        if ranking:
            ports.append(
                Port("seen", "int64", ("rows", "seen"), about="items that are not to be recommended, 0 for none")
            )
        super().__init__(tuple(ports))

    def forward(self, *values: Tensor) -> Any:
        return values


def rating_trials(encoder: Any) -> Iterator[Trial]:
    """Known users, new ones, and where items are rated every kind of pair with known and new items."""
    generator = np.random.default_rng(0)
    users = [*encoder.user_names, "somebody new", "☃"]
    items = [*encoder.item_names, "something new"]
    frame = pd.DataFrame({encoder.roles["user"]: generator.choice(np.array(users, object), ODD_ROWS)})
    if encoder.goal == "rating":
        frame[encoder.roles["item"]] = generator.choice(np.array(items, object), ODD_ROWS)
    dataset = encoder.open(frame)
    rows = np.arange(len(dataset))
    yield Trial(
        frame,
        [[code_feed(encoder, dataset, rows[i : i + size]) for i in range(0, len(rows), size)] for size in BATCHES],
    )


def code_feed(encoder: Any, dataset: Any, rows: np.ndarray) -> Feed:
    """The arrays of some rows."""
    feed = {"codes": encoder.encode(dataset, rows).numpy()}
    if encoder.goal == "rating":
        return feed
    past = [encoder.past(dataset)[row] for row in rows]
    seen = np.zeros((len(rows), max(1, *map(len, past), 1)), np.int64)
    for row, items in zip(seen, past, strict=True):
        row[: len(items)] = items
    return feed | {"seen": seen}
