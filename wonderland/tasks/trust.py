"""Calibration of row predictions: ensemble weights, a temperature, and conformal scores."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.tasks.task import Trust
from wonderland.tasks.view import Holdout
from wonderland.trust.conformal import Scores, check_level
from wonderland.trust.label_shift import LabelScores
from wonderland.trust.weights import member_shares, spread


@dataclass(frozen=True)
class RowTrust(Trust):
    """Ensemble weights (`shares`, one for each variant of members), a temperature, conformal scores, and the default level.

    `label_weights` (c,) are the shares of classes among new rows by those before, and `label_scores` the calibration scores
    weighted by them, of corrected probabilities; they are not stored.
    `options` is what was fitted for options of trust (`ClassOptions`, `NumberOptions`), None for the default.

    Members form `groups` of equal size: the members of a group were trained on the same rows, and variants alternate in it.
    """

    temperature: float
    scores: Scores
    level: float
    shares: ndarray
    options: Any = None
    label_weights: ndarray | None = None
    label_scores: LabelScores | None = None

    @property
    def groups(self) -> int:
        """The number of groups of members."""
        return len(self.scores.groups)

    def to_json(self) -> dict[str, Any]:
        return {
            "temperature": self.temperature,
            "level": self.level,
            "shares": self.shares.tolist(),
            "scores": self.scores.to_json(),
        } | ({} if self.options is None else {"options": self.options.to_json()})

    @staticmethod
    def from_json(value: Any, read_options: Callable[[Any], Any]) -> "RowTrust":
        """Read back from `to_json`; damaged content is refused."""
        try:
            temperature, level = float(value["temperature"]), check_level(float(value["level"]))
            scores, shares = value["scores"], np.asarray(value["shares"], np.float64)
            if (
                not 1e-3 < temperature < 1e6
                or shares.ndim != 1
                or not (shares >= 0).all()
                or not 0.99 < shares.sum() < 1.01
            ):
                raise ValueError
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise WonderlandError(
                "trust.json lacks its temperature, level, shares or scores: it is damaged."
            ) from error
        options = None if value.get("options") is None else read_options(value["options"])
        return RowTrust(temperature, Scores.from_json(scores), level, shares, options)


def variant_weights(
    task: Any, holdout: Holdout, groups: int, variants: int, linear: Sequence[bool] | None = None
) -> ndarray:
    """The weight of each variant, fitted on rows that the members were not trained on: (variants,). `linear` marks linear models."""
    if variants == 1:
        return np.ones(1)
    errors = task.errors(_held_out_group(holdout, groups), holdout.y)
    errors = errors.reshape(-1, variants, *errors.shape[1:]).mean(0).swapaxes(0, 1)
    return member_shares(
        errors if holdout.weights is None else errors * np.sqrt(holdout.weights)[:, None, None], linear
    )


def holdout_prediction(task: Any, holdout: Holdout, groups: int, shares: ndarray) -> ndarray:
    """For each row, the prediction of the group that was not trained on it: (n, c)."""
    outputs = _held_out_group(holdout, groups)
    return task.combine(outputs, spread(shares, len(outputs))).numpy()


def group_predictions(task: Any, outputs: Tensor, groups: int, shares: ndarray) -> list[ndarray]:
    """One prediction (n, c) for each group, from the outputs of members (m, n, c)."""
    grouped = outputs.unflatten(0, (groups, -1))
    return [task.combine(members, spread(shares, len(members))).numpy() for members in grouped]


def _held_out_group(holdout: Holdout, groups: int) -> Tensor:
    """For each row, the outputs of the members that were not trained on it: (members of a group, n, c)."""
    outputs = holdout.outputs.unflatten(0, (groups, -1))
    return outputs[torch.as_tensor(holdout.fold), :, torch.arange(len(holdout.fold))].transpose(0, 1)
