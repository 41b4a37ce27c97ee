"""Generation: the distribution of the data is learned, new examples are drawn, and unusual ones are recognised."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.core.batch import Batch
from wonderland.models.generative import GenerativeModel, frechet_distance, mmd, precision_recall
from wonderland.tasks.abilities.drawing import Drawing
from wonderland.tasks.task import Task, Trust
from wonderland.tasks.view import View
from wonderland.trust.conformal import check_level
from wonderland.trust.two_sample import classifier_test
from wonderland.understand.format import percent
from wonderland.understand.sections import Section
from wonderland.understand.sections.generated import generated_sections

MEASURED = 1000  # samples that are compared with held-out rows
DIRECTIONS = 64  # of the projection in which wide samples are compared
FEWEST = 20  # rows for tests of two samples


class SampleTrust(Trust):
    r"""Scores of calibration rows: how unusual a row of the same data may be.

    .. math:: p(x) = \frac{1 + \#\{i : s_i \ge s(x)\}}{n + 1}, \qquad P(p(x) \le \alpha) \le \alpha
    """

    def __init__(self, scores: list[float], level: float):
        self.scores, self.level = sorted(scores), level

    def p_values(self, scores: np.ndarray) -> np.ndarray:
        """The conformal p-value of each score."""
        above = len(self.scores) - np.searchsorted(np.asarray(self.scores), scores, "left")
        return (1 + above) / (len(self.scores) + 1)

    def to_json(self) -> dict[str, Any]:
        return {"scores": self.scores, "level": self.level}


@part
class Generation(Task):
    r"""Learn the distribution of examples, to draw new ones and to recognise unusual ones.

    The loss is the model's own (`GenerativeModel.objective`). `labels` are names of classes that samples can be asked of. Predictions
    say of each new row how unusual it is, with a p-value that is right for rows of the same distribution. Measures compare samples with
    held-out rows: distances, precision and recall, and how well a classifier tells them apart.

    >>> Generation(labels=["cat", "dog"]).model_arguments()
    {'classes': 2}
    """

    name, watch = "generation", "held_out"
    keeps_best = False  # samples go on getting better after the held-out loss has begun to rise
    abilities = {"generate": Drawing}  # noqa: RUF012

    def __init__(self, labels: list[str] | None = None):
        fine = labels is None or (isinstance(labels, list) and all(isinstance(name, str) for name in labels))
        if not fine:
            raise WonderlandError("Generation is given the names of its classes, or none.")
        self.labels, self.outputs = labels, len(labels or ())

    def arguments(self) -> dict[str, Any]:
        return {"labels": self.labels}

    def model_arguments(self) -> dict[str, Any]:
        return {"classes": len(self.labels or ())}

    def given(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """What the model is given: rows, with pixels in -1..1, and codes of labels from 1."""
        x = batch["x"]
        x = x.float() / 127.5 - 1 if x.dtype == torch.uint8 else x
        known = self.labels is not None and "y" in batch.fields
        return x, batch["y"].long() + 1 if known else None

    def inputs(self, batch: Batch) -> tuple[Any, ...]:
        return self.given(batch)

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        return model.objective(*self.given(batch)).mean(), len(batch)  # pyright: ignore[reportCallIssue]

    def check_model(self, model: nn.Module, batch: Batch) -> str | None:
        if not isinstance(model, GenerativeModel):
            return (
                "is no generative model: it needs objective and sample (wonderland.models.generative.GenerativeModel)"
            )
        shape = tuple(batch["x"].shape[1:])
        if math.prod(shape) != math.prod(model.shape):
            return f"is for rows of {model.shape}, and these have {shape}"
        return None

    def measure(self, view: View) -> dict[str, float]:
        x, labels = self.rows(view, MEASURED)
        return {"held_out": view.model.held_out(x, labels)}  # pyright: ignore[reportCallIssue]

    def rows(self, view: View, most: int | None = None) -> tuple[Tensor, Tensor | None]:
        """The first rows of a part, as the model is given them."""
        pieces = [self.given(batch) for batch in view.batches(most=most)]
        labels = [piece[1] for piece in pieces]
        return torch.cat([piece[0] for piece in pieces]), torch.cat(labels) if labels[0] is not None else None  # pyright: ignore

    def scores(self, view: View) -> np.ndarray:
        """How unusual each row of a part is; labels are not used, so that rows without them get the same score."""
        model: Any = view.model
        return torch.cat([model.score(self.given(batch)[0]) for batch in view.batches()]).double().cpu().numpy()

    def calibrate(self, validation: View, calibration: View, level: float) -> SampleTrust:
        return SampleTrust(self.scores(calibration).tolist(), check_level(level))

    def trust(self, saved: Any) -> SampleTrust:
        try:
            scores, level = saved["scores"], check_level(saved["level"])
            if not scores or not all(isinstance(value, int | float) and math.isfinite(value) for value in scores):
                raise TypeError
            return SampleTrust([float(value) for value in scores], level)
        except (KeyError, TypeError, OverflowError) as error:
            raise WonderlandError("trust.json does not hold scores of rows: it is damaged or not ours.") from error

    def evaluate(self, view: View, trust: SampleTrust, level: float | None = None) -> dict[str, Any]:
        level = trust.level if level is None else check_level(level)
        usual = trust.p_values(self.scores(view)) > 1 - level
        x, labels = self.rows(view, MEASURED)
        metrics = {"held_out": view.model.held_out(x, labels)} | compared(x, drawn(view.model, len(x), labels))  # pyright: ignore
        coverage = {"level": level, "coverage": float(usual.mean()), "note": ""}
        return {"rows": view.count, "metrics": metrics, "conformal": coverage}

    def predictions(self, view: View, trust: SampleTrust, level: float | None = None) -> pd.DataFrame:
        """For each row whether it is usual or unusual, its score, and its p-value."""
        level, scores = trust.level if level is None else level, self.scores(view)
        p = trust.p_values(scores)
        return pd.DataFrame({"prediction": np.where(p > 1 - level, "usual", "unusual"), "score": scores, "p": p})

    def check_run(self, model: Any, encoder: Any, trust: Any, folds: int) -> str | None:
        if not isinstance(model, GenerativeModel) or model.classes != len(self.labels or ()):
            return "the model and the task in config.json do not belong together."
        if math.prod(model.shape) != encoder.arguments().get("features"):
            return "preprocess.json is for other rows than the model: the two do not belong together."
        return None

    def facts(self, view: View, trust: SampleTrust, record: Mapping[str, Any], dataset: Any) -> dict[str, Any]:
        measured = record["metrics"]
        auc = measured.get("two_sample")
        told_apart = (
            ""
            if auc is None
            else f"A classifier tells samples from unseen rows with an AUC of {auc:.2f} (0.5 is chance). "
        )
        verdict = (
            f"{told_apart}Of unseen rows, {percent(record['conformal']['coverage'])} are called usual at the level "
            f"{percent(trust.level)}."
        )
        return {"verdict": verdict, "conformal": None, "answers": "samples"}

    def curves(self) -> list[tuple[str, str, bool]]:
        return [("loss", "loss", False), ("held_out", "held-out loss", False)]

    def sections(self, record: Mapping[str, Any]) -> tuple[Section, ...]:
        return generated_sections()

    def next_commands(self, folder: str) -> list[tuple[str, str]]:
        return [
            ("Draw new examples", f"wonderland generate {folder} -n 64"),
            ("Find unusual examples", f"wonderland predict {folder} NEWDATA -o unusual.csv"),
        ]


def drawn(model: Any, count: int, labels: Tensor | None) -> Tensor:
    """Samples that are the same at every call: (count, *shape)."""
    model.eval()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return model.sample(count, labels)


def compared(real: Tensor, fake: Tensor) -> dict[str, float]:
    """How samples differ from held-out rows: distances, precision and recall, and the AUC of a classifier; none for few rows."""
    a, b = projected(real.flatten(1)), projected(fake.flatten(1))
    if len(a) < FEWEST:
        return {}
    precision, recall = precision_recall(a, b)
    auc = classifier_test(a.numpy(), b.numpy(), draws=1).statistic
    return {
        "frechet": frechet_distance(a, b),
        "mmd": mmd(a, b),
        "precision": precision,
        "recall": recall,
        "two_sample": float(max(auc, 1 - auc)),
    }


def projected(x: Tensor) -> Tensor:
    """Wide rows in random directions, the same at every call."""
    if x.shape[1] <= DIRECTIONS:
        return x
    generator = torch.Generator().manual_seed(0)
    return x @ torch.randn(x.shape[1], DIRECTIONS, generator=generator) / x.shape[1] ** 0.5
