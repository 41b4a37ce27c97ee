"""Matching: the text that belongs to another, found among many."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy import ndarray
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.core.batch import Batch
from wonderland.tasks.losses import contrastive
from wonderland.tasks.ranking import RankTrust
from wonderland.tasks.task import Task
from wonderland.tasks.vector_answers import VectorAnswers
from wonderland.tasks.view import View
from wonderland.trust import check_level
from wonderland.trust.paired import paired_difference
from wonderland.understand.format import number, percent

TOP, SIZE = 10, 256
SHARES = tuple(step / 10 for step in range(11))


class MatchTrust(RankTrust):
    """Ranks of the right texts in the calibration part, and the share of the cosine of words (TF-IDF) in the score of a text."""

    def __init__(self, ranks: list[int], level: float, share: float):
        super().__init__(ranks, level)
        self.share = share

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"share": self.share}


@part
class Matching(Task):
    r"""Two texts that belong together are nearer to each other than to the others of a batch.

    .. math:: L = -\tfrac12 \log \frac{e^{\cos(u_i, v_i) / \tau}}{\sum_j e^{\cos(u_i, v_j) / \tau}} -
              \tfrac12 \log \frac{e^{\cos(u_i, v_i) / \tau}}{\sum_j e^{\cos(u_j, v_i) / \tau}}

    A model maps each side of x (b, 2, k) to vectors. Texts are found by a score

    .. math:: s_{ij} = (1 - a) \cos(u_i, v_j) + a \cos(f_i, g_j)

    of the vectors and the sparse features of words; the validation part chooses a. Measured is how often the right text is among the
    nearest one and ten of all texts of the part. Papers: van den Oord et al., 2018; Henderson et al., 2017.

    >>> Matching().arguments()
    {'temperature': 0.05}
    """

    name, watch, unit = "matching", "missed", "pair"
    several = True

    def __init__(self, temperature: float | int = 0.05):
        if isinstance(temperature, bool) or not isinstance(temperature, int | float) or not 0 < temperature < 100:
            raise WonderlandError(f"Matching needs a temperature above 0, not {temperature!r}.")
        self.temperature, self.outputs = temperature, 1

    def arguments(self) -> dict[str, Any]:
        return {"temperature": self.temperature}

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        x = batch["x"]
        return contrastive(model(x[:, 0]), model(x[:, 1]), temperature=self.temperature, symmetric=True), float(len(x))

    def check_model(self, model: nn.Module, batch: Batch) -> str | None:
        output = model(batch["x"][:, 0])
        return (
            None
            if output.dim() == 2 and len(output) == len(batch)
            else "gives no vector for each text: take MatchEncoder"
        )

    def sides(self, view: View) -> tuple[Tensor, Tensor]:
        """Vectors of both sides of a part: (n, d), (n, d)."""
        with torch.inference_mode():
            pieces = [(view.model(batch["x"][:, 0]), view.model(batch["x"][:, 1])) for batch in view.batches(SIZE)]
        first, second = zip(*pieces, strict=True)
        return torch.cat(first).cpu(), torch.cat(second).cpu()

    def ranks(self, view: View, share: float = 0.0) -> ndarray:
        """The rank of the right text of each query among all different texts of the part: (n,), from 1."""
        first, second = self.sides(view)
        examples: Any = view.examples
        words = examples.word_cosines(np.asarray(view.part)) if share else 0.0
        return ranks_of((1 - share) * (first @ second.T) + share * words, self._documents(view))

    def best_share(self, view: View) -> float:
        """The share of the cosine of words with the best mean reciprocal rank on this part; the smallest of equal ones."""
        first, second = self.sides(view)
        examples: Any = view.examples
        learned, words = first @ second.T, examples.word_cosines(np.asarray(view.part))
        documents = self._documents(view)
        quality = [rank_measures(ranks_of((1 - a) * learned + a * words, documents))["mrr"] for a in SHARES]
        return SHARES[int(np.argmax(quality))]

    def _documents(self, view: View) -> ndarray:
        examples: Any = view.examples
        return examples.documents[np.asarray(view.part)]

    def measure(self, view: View) -> dict[str, float]:
        measures = rank_measures(self.ranks(view))
        return measures | {"missed": 1 - measures["mrr"]}

    def calibrate(self, validation: View, calibration: View, level: float) -> MatchTrust:
        share = self.best_share(validation)
        return MatchTrust([int(rank) for rank in self.ranks(calibration, share)], check_level(level), share)

    def trust(self, saved: Any) -> MatchTrust:
        try:
            ranks, level, share = saved["ranks"], check_level(saved["level"]), saved.get("share", 0.0)
            if share not in SHARES or isinstance(share, bool):
                raise TypeError
            if not ranks or not all(
                isinstance(rank, int) and not isinstance(rank, bool) and 1 <= rank < 1 << 40 for rank in ranks
            ):
                raise TypeError
            return MatchTrust(list(ranks), level, share)
        except (AttributeError, KeyError, TypeError) as error:
            raise WonderlandError("trust.json does not hold ranks of texts: it is damaged or not ours.") from error

    def evaluate(self, view: View, trust: MatchTrust, level: float | None = None) -> dict[str, Any]:
        level = trust.level if level is None else check_level(level)
        ranks, size = self.ranks(view, trust.share), trust.size(level)
        conformal = {
            "level": level,
            "coverage": float((ranks <= size).mean()),
            "mean_size": float(size),
            "note": "",
            "of": "texts",
        }
        return {"rows": len(ranks), "metrics": rank_measures(ranks), "conformal": conformal}

    def predictions(self, view: View, trust: MatchTrust, level: float | None = None) -> pd.DataFrame:
        """The nearest of the known texts to each query."""
        examples: Any = view.examples
        known, top = examples.encoder.candidates, min(getattr(view.asked, "top", TOP), len(examples.encoder.candidates))
        with torch.inference_mode():
            queries = torch.cat([view.model(batch["x"][:, 0]) for batch in view.batches(SIZE)]).cpu()
            held = torch.cat([view.model(piece) for piece in examples.encoder.packed_candidates(SIZE)]).cpu()
            scores = (1 - trust.share) * (queries @ held.T)
            if trust.share:
                scores += trust.share * examples.word_cosines_of_candidates(np.asarray(view.part))
            scores, places = scores.topk(top, 1)
        rows = np.repeat(np.arange(len(queries)), top)
        return pd.DataFrame(
            {
                view.dataset.names[0]: [view.dataset.queries[i] for i in rows],
                "rank": np.tile(np.arange(1, top + 1), len(queries)),
                "prediction": [known[place] for place in places.flatten().tolist()],
                "score": scores.flatten().numpy(),
            }
        )

    def answers(self, trust: MatchTrust, level: float) -> nn.Module | str:
        return VectorAnswers()

    def expected(self, run: Any, source: Any, level: float) -> ndarray:
        """The vectors of queries."""
        return self.sides(run.view(run.encoder.open(source)))[0].numpy()

    def difference(self, table: Any, exported: Mapping[str, Any]) -> float:
        """Of the vectors."""
        return float(np.abs(table - exported["vector"]).max(initial=0.0))

    def check_run(self, model: nn.Module, encoder: Any, trust: Any, folds: int) -> str | None:
        if getattr(model, "features", None) != encoder.arguments()["features"]:
            return "preprocess.json has other features than the model: the two do not belong together."
        return None

    def point(self, view: View, trust: MatchTrust) -> ndarray:
        """The ranks of the right texts."""
        return self.ranks(view, trust.share)

    def truth(self, view: View) -> None:
        """Ranks need nothing to be compared with."""
        return

    def leaderboard_row(self, name: str, predicted: Any, ours: Any, y: Any) -> dict[str, Any]:
        row: dict[str, Any] = {"name": name, "metrics": rank_measures(predicted)}
        if ours is not None:
            hits = [(ranks <= TOP).astype(np.float64) for ranks in (ours, predicted)]
            row["differences"] = {"recall_at_10": vars(paired_difference(*hits))}
        return row

    def leaderboard_sentence(self, rows: list[dict[str, Any]], count: int) -> str:
        behind = [
            row["name"] for row in rows if row.get("differences") and row["differences"]["recall_at_10"]["low"] <= 0
        ]
        if not behind:
            return ""
        return (
            f"On these {count:,} test pairs this model is not clearly better than {' and '.join(behind)} (95 % interval of the paired difference "
            "of recall at 10): more pairs would help, or a checkpoint of sentence-transformers (wonderland embed)."
        )

    def curves(self) -> list[tuple[str, str, bool]]:
        return [("loss", "loss", True), ("recall_at_10", "recall at 10", False)]

    def facts(self, view: View, trust: MatchTrust, record: Mapping[str, Any], dataset: Any) -> dict[str, Any]:
        metrics, n = record["metrics"], record["rows"]
        verdict = (
            f"The right text is the nearest for {percent(metrics['recall_at_1'])} of {n:,} unseen queries, and among the nearest {TOP} for "
            f"{percent(metrics['recall_at_10'])} (mean reciprocal rank {number(metrics['mrr'], 3)}); lists of {trust.size(trust.level):,} hold it for "
            f"{percent(record['conformal']['coverage'])}. The cosine of words counts {percent(trust.share, 0)} in the score of a text."
        )
        return {"verdict": verdict, "conformal": None, "answers": "texts that belong together"}

    def next_commands(self, folder: str) -> list[tuple[str, str]]:
        return [
            ("Find texts", f"wonderland predict {folder} QUERIES.csv --top 10 -o found.csv"),
            ("Vectors for a search of your own", f"wonderland embed {folder} TEXTS -o vectors.npy"),
        ]


def ranks_of(scores: Tensor, documents: ndarray) -> ndarray:
    """Ranks of the diagonal among different documents: scores (n, n), numbers of documents (n,) -> (n,), from 1.

    >>> ranks_of(torch.tensor([[0.1, 0.9], [0.2, 0.8]]), np.array([0, 1])).tolist()
    [2, 1]
    """
    _, first = np.unique(documents, return_index=True)
    own = scores.diagonal()[:, None]
    others = scores[:, torch.from_numpy(first)]
    different = torch.from_numpy(documents[first][None] != documents[:, None])
    ahead = ((others > own) & different).sum(1) + ((others == own) & different).sum(1) // 2
    return (1 + ahead).numpy()


def rank_measures(ranks: Sequence[int] | ndarray) -> dict[str, float]:
    """Recall at 1 and 10, and the mean reciprocal rank.

    >>> rank_measures([1, 2, 20])["recall_at_10"].__round__(3)
    0.667
    """
    array = np.asarray(ranks)
    return {
        "recall_at_1": float((array <= 1).mean()),
        "recall_at_10": float((array <= TOP).mean()),
        "mrr": float((1 / array).mean()),
    }
