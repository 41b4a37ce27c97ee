"""Importance weighting: rows get the density ratio between given unlabelled rows and the training part, in training and in calibration."""

import hashlib
from typing import Any

import numpy as np

from wonderland.core import WonderlandError, permutation
from wonderland.data.dataset import Finding
from wonderland.data.examples import RowExamples
from wonderland.tasks.class_trust import BY_CELLS
from wonderland.trust.shift import comparable
from wonderland.trust.two_sample import density_ratio

MOST = 20_000  # rows of each side that the ratio is learned from
FEWEST = 20


def weigh_towards(
    dataset: Any, train: np.ndarray, encoder: Any, source: str | None, conformal: str | None
) -> str | None:
    r"""Give rows the weight :math:`p_{new}(x) / p_{old}(x)`, estimated by a classifier that tells the two apart.

    Weights multiply those the rows have; their mean over the training part is 1. Calibration scores are weighted alike, but for
    sets by classes or groups (`conformal`). Returns a digest of the weights; None, and no weights, without a source.
    """
    if source is None:
        return None
    new = encoder.open(source, need_target=False)
    if len(new) < FEWEST or len(train) < FEWEST:
        raise WonderlandError(
            f"weight_to needs {FEWEST} rows or more on each side, and there are {len(train):,} to learn from and {len(new):,} "
            f"in {new.name}."
        )
    everything = np.arange(len(dataset))
    old_traits = encoder.traits(dataset, everything)
    new_traits = encoder.traits(new, np.sort(permutation(0, 1, len(new))[:MOST]))
    if not old_traits or not isinstance(encoder.examples(dataset), RowExamples):
        raise WonderlandError("weight_to compares columns of rows, and this kind of data has none to compare.")
    old, fresh = comparable(old_traits, new_traits, train)
    sample = train[permutation(0, 2, len(train))[:MOST]]
    ratio = density_ratio(old[sample], fresh, old)
    plain_sets = dataset.classes is not None and conformal in BY_CELLS
    dataset.ratios = None if plain_sets else np.maximum(ratio / ratio[train].mean(), 1e-6)
    weights = ratio if dataset.weights is None else ratio * dataset.weights
    weights = np.maximum(weights / weights[train].mean(), 1e-6)
    dataset.weights = weights
    own = weights[train]
    effective = own.sum() ** 2 / np.square(own).sum()
    text = (
        f"Training rows are weighted towards {new.name}: the effective sample size is {effective:,.0f} of {len(train):,} rows. "
        + (
            "Metrics and sets hold for rows like those of the test part, which is not weighted."
            if plain_sets
            else "Metrics hold for rows like those of the test part. Sets and intervals are calibrated for the new rows, and their "
            "coverage is that of test rows weighted alike."
        )
    )
    if effective < 0.1 * len(train):
        text += " With so few, the result may be worse than without weights."
    dataset.findings.append(Finding("weights", new.name, len(train), text))
    return hashlib.sha256(np.round(weights, 9).tobytes()).hexdigest()
