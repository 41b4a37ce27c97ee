"""Conformal risk control: the threshold at which a loss that falls with it stays below a level on average."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from wonderland.core import WonderlandError
from wonderland.trust.arrays import finite


@dataclass(frozen=True)
class ControlledRisk:
    """A threshold, the mean loss on the calibration rows, and whether the level can be promised at all."""

    threshold: float
    risk: float
    reached: bool


def control_risk(losses: Any, thresholds: Any, level: float) -> ControlledRisk:
    r"""The largest threshold whose expected loss on a new row is at most `level`.

    .. math:: \hat\lambda = \sup \Bigl\{ \lambda : \frac{n}{n+1} \hat R_n(\lambda) + \frac{1}{n+1} \le \alpha \Bigr\}

    Losses lie in 0..1 and do not fall as the threshold rises: the share of boxes that are missed when boxes below the threshold
    are dropped. Where no threshold is low enough, the lowest is given with `reached` False. The promise is for rows drawn as the
    calibration rows were, on average over both.

    Shapes: losses (n, k), thresholds (k,) rising. Paper: Angelopoulos et al., 2022.

    >>> control_risk([[0.0, 0.0, 1.0]] * 9, [0.1, 0.5, 0.9], 0.2)
    ControlledRisk(threshold=0.5, risk=0.0, reached=True)
    """
    array, places = finite("losses", losses, 2), finite("thresholds", thresholds, 1)
    if array.shape[1] != len(places) or not len(places) or (np.diff(places) < 0).any():
        raise WonderlandError("`losses` needs one column for each of `thresholds`, which rise.")
    if array.size and (array.min() < 0 or array.max() > 1 or (np.diff(array, axis=1) < -1e-9).any()):
        raise WonderlandError("`losses` lie between 0 and 1 and do not fall as thresholds rise.")
    return controlled(array.mean(0) if len(array) else np.ones(len(places)), len(array), places, level)


def controlled(risk: np.ndarray, rows: int, thresholds: np.ndarray, level: float) -> ControlledRisk:
    """`control_risk` from the mean losses (k,) of so many rows."""
    fine = np.flatnonzero((rows * risk + 1) / (rows + 1) <= level + 1e-12)
    place = int(fine[-1]) if len(fine) else 0
    return ControlledRisk(float(thresholds[place]), float(risk[place]), bool(len(fine)))
