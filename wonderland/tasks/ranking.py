"""Ranking: the next item of a user, among all those not chosen yet."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.core.batch import Batch
from wonderland.tasks.abilities.similar import Similar
from wonderland.tasks.rank_answers import RankAnswers
from wonderland.tasks.ranking_measures import ranking_measures
from wonderland.tasks.task import Task, Trust
from wonderland.tasks.view import View
from wonderland.trust.conformal import check_level
from wonderland.understand.format import number, percent

TOP, WATCHED, CHUNK = 10, 5000, 512


class RankTrust(Trust):
    """Ranks of the items that were chosen in the calibration part: how long a list must be to hold the next one."""

    def __init__(self, ranks: list[int], level: float):
        self.ranks, self.level = sorted(ranks), level

    def size(self, level: float) -> int:
        """The length of a list that holds the next item with this probability."""
        place = math.ceil((len(self.ranks) + 1) * level)
        return self.ranks[min(place, len(self.ranks)) - 1]

    def to_json(self) -> dict[str, Any]:
        return {"ranks": self.ranks, "level": self.level}


@part
class Ranking(Task):
    r"""Cross-entropy of the item that was chosen, among all items.

    .. math:: L = -\log \frac{e^{s_i}}{\sum_j e^{s_j}}

    Each event is a query: the items its user had chosen before are read and not recommended again. A model gives
    (b, items + 1), place 0 for no item. Measures are those of the first ten places, for the model, for the items that are
    chosen most, and for neighbours of the items chosen before. Book: D2L 21.

    >>> Ranking(items=5).arguments()
    {'items': 5}
    """

    name, watch, unit = "ranking", "missed", "event"
    several = True
    abilities = {"similar": Similar}  # noqa: RUF012

    def __init__(self, items: int):
        if not isinstance(items, int) or isinstance(items, bool) or items < 1:
            raise WonderlandError(f"Ranking needs at least one item, not {items!r}.")
        self.items, self.outputs = items, items + 1

    def arguments(self) -> dict[str, Any]:
        return {"items": self.items}

    def model_arguments(self) -> dict[str, Any]:
        return {"items": self.items}

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        scores = model(batch["x"])
        return F.cross_entropy(scores[:, 1:], batch["y"] - 1), len(batch)

    def check_model(self, model: nn.Module, batch: Batch) -> str | None:
        shape = tuple(model(batch["x"]).shape)
        if shape != (len(batch), self.items + 1):
            return f"gives {shape} for two rows, where this task needs ({len(batch)}, {self.items + 1})"
        return None

    def scored(self, view: View, way: str = "model", most: int | None = None) -> Iterator[tuple[np.ndarray, Tensor]]:
        """Rows and their scores (b, items + 1); what was chosen before has none (minus infinity)."""
        view.model.eval()
        examples: Any = view.examples
        part = np.asarray(view.part)
        if most is not None and len(part) > most:
            part = part[np.linspace(0, len(part) - 1, most).astype(np.int64)]
        with torch.inference_mode():
            for rows in np.array_split(part, max(1, -(-len(part) // CHUNK))):
                seen = [examples.seen(int(row)) for row in rows]
                scores = view.model(examples.inputs(rows)).clone() if way == "model" else examples.baseline(way, seen)
                scores[:, 0] = -torch.inf
                where = np.repeat(np.arange(len(rows)), [len(items) for items in seen])
                scores[torch.from_numpy(where), torch.from_numpy(np.concatenate(seen).astype(np.int64))] = -torch.inf
                yield rows, scores

    def ranked(self, view: View, way: str = "model", most: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The first places (n, k) and the rank of the item that was chosen (n,); one past the last where it cannot be found."""
        lists, ranks, y = [], [], view.examples.y  # pyright: ignore
        for rows, scores in self.scored(view, way, most):
            lists.append(scores.topk(min(TOP, self.items), -1).indices.numpy())
            target = torch.from_numpy(y[rows])
            own = scores.gather(1, target[:, None])
            ahead = (scores > own).sum(1) + ((scores == own).sum(1) - 1).clamp_min(0) // 2 + 1
            ranks.append(torch.where(own[:, 0] == -torch.inf, self.items + 1, ahead).numpy())
        return np.concatenate(lists), np.concatenate(ranks)

    def measures(self, view: View, way: str = "model", most: int | None = None) -> tuple[dict[str, float], np.ndarray]:
        """Measures of the first places, and the ranks behind them."""
        lists, ranks = self.ranked(view, way, most)
        inside = ranks <= lists.shape[1]
        gain = np.where(inside, 1 / np.log2(1 + ranks), 0.0)
        more = ranking_measures(lists, [set()] * len(lists), popularity=view.examples.popularity, items=self.items)  # pyright: ignore
        measures = {"ndcg": float(gain.mean()), "hit_rate": float(inside.mean()), "mrr": float(np.where(inside, 1 / ranks, 0.0).mean()),
                 "coverage": more["coverage"], "novelty": more["novelty"]}  # fmt: skip
        return measures, ranks

    def measure(self, view: View) -> dict[str, float]:
        measures, _ = self.measures(view, most=WATCHED)
        return {"ndcg": measures["ndcg"], "hit_rate": measures["hit_rate"], "missed": 1 - measures["ndcg"]}

    def calibrate(self, validation: View, calibration: View, level: float) -> RankTrust:
        return RankTrust(self.ranked(calibration, most=WATCHED)[1].tolist(), check_level(level))

    def trust(self, saved: Any) -> RankTrust:
        try:
            ranks, level = saved["ranks"], check_level(saved["level"])
            if not ranks or not all(isinstance(rank, int) and 1 <= rank <= self.items + 1 for rank in ranks):
                raise TypeError
            return RankTrust(list(ranks), level)
        except (KeyError, TypeError) as error:
            raise WonderlandError("trust.json does not hold ranks of items: it is damaged or not ours.") from error

    def evaluate(self, view: View, trust: RankTrust, level: float | None = None) -> dict[str, Any]:
        level = trust.level if level is None else check_level(level)
        metrics, ranks = self.measures(view)
        for way in ("popular", "neighbours"):
            metrics |= {
                f"{way}_{name}": value
                for name, value in self.measures(view, way)[0].items()
                if name in ("ndcg", "hit_rate")
            }
        size = trust.size(level)
        conformal = {"level": level, "coverage": float((ranks <= size).mean()), "mean_size": float(size), "note": ""}
        return {"rows": len(ranks), "metrics": metrics, "conformal": conformal}

    def predictions(self, view: View, trust: RankTrust, level: float | None = None) -> pd.DataFrame:
        """The best items of each user, with the probability that each is the next one."""
        examples: Any = view.examples
        top = min(getattr(view.asked, "top", TOP), self.items)
        tables = []
        for rows, scores in self.scored(view):
            share, best = scores.softmax(-1).topk(top, -1)
            real = share.numpy() > 0
            users = np.repeat(examples.user_names[rows], top).reshape(-1, top)
            rank = np.tile(np.arange(1, top + 1), (len(rows), 1))
            names = examples.item_names[best.numpy()]
            tables.append(
                pd.DataFrame(
                    {
                        "user": users[real],
                        "rank": rank[real],
                        "prediction": names[real],
                        "probability": share.numpy()[real],
                    }
                )
            )
        return pd.concat(tables, ignore_index=True)

    def answers(self, trust: RankTrust, level: float) -> nn.Module | str:
        return RankAnswers(self.items, TOP)

    def expected(self, run: Any, source: Any, level: float) -> np.ndarray:
        """The probabilities of all items (n, items + 1)."""
        view = run.view(run.encoder.open(source))
        return np.concatenate([scores.softmax(-1).numpy() for _, scores in self.scored(view)])

    def difference(self, table: Any, exported: Mapping[str, Any]) -> float:
        """Of probabilities; the best items may change places only where they are equally probable."""
        largest = float(np.abs(table - exported["probabilities"]).max(initial=0.0))
        chosen = np.take_along_axis(table, exported["best"], 1)
        best = -np.sort(-table, 1)[:, : chosen.shape[1]]
        return max(largest, float(np.abs(best - chosen).max(initial=0.0)))

    def check_run(self, model: Any, encoder: Any, trust: Any, folds: int) -> str | None:
        if len(encoder.item_names) != self.items or getattr(model, "items", None) != self.items:
            return "preprocess.json has other items than config.json: the two do not belong together."
        if len(encoder.user_names) != model.users or model.goal != "ranking":
            return "preprocess.json has other users than the model: the two do not belong together."
        return None

    def facts(self, view: View, trust: RankTrust, record: Mapping[str, Any], dataset: Any) -> dict[str, Any]:
        metrics, n = record["metrics"], record["rows"]
        verdict = (
            f"The next item of a user is among the first {TOP} in {percent(metrics['hit_rate'])} of {n:,} later events (NDCG {number(metrics['ndcg'], 3)}); "
            f"the items chosen most reach {percent(metrics['popular_hit_rate'])} ({number(metrics['popular_ndcg'], 3)}), neighbours of earlier items "
            f"{percent(metrics['neighbours_hit_rate'])} ({number(metrics['neighbours_ndcg'], 3)})."
        )
        return {"verdict": verdict, "conformal": None, "answers": f"{self.items:,} items"}

    def curves(self) -> list[tuple[str, str, bool]]:
        return [("loss", "loss", True), ("ndcg", "NDCG", False)]

    def next_commands(self, folder: str) -> list[tuple[str, str]]:
        return [
            ("Recommend", f"wonderland predict {folder} USERS.csv --top 10 -o recommended.csv"),
            ("Measure on later events", f"wonderland evaluate {folder} EVENTS.csv"),
        ]
