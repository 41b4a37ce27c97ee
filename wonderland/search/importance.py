"""How much each setting matters: the share of the spread of scores that it explains by itself."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wonderland.search.space import Choice, Setting, Space
from wonderland.search.trial import Trial

LEAST, GROUPS = 6, 4


def importance(space: Space, trials: Sequence[Trial]) -> list[dict[str, Any]]:
    r"""The share of the variance of ranks of scores between groups of a setting's values, what chance would give taken off.

    .. math:: \epsilon^2 = \frac{SS_{between} - (g - 1) MS_{within}}{SS_{total}}

    Numbers are grouped by quartiles, choices by value. Scores are those of the first rung, at which all trials can be compared;
    ranks, because a few diverged trials would decide it otherwise. Interactions are not seen. Empty below six trials.

    >>> from wonderland.search.space import Float
    >>> space = Space({"a": Float(0, 1), "b": Float(0, 1)})
    >>> trials = [Trial(i, {"a": i / 20, "b": (i * 7 % 20) / 20}, [i / 20]) for i in range(20)]
    >>> [row["name"] for row in importance(space, trials)]
    ['a', 'b']
    """
    known = [trial for trial in trials if trial.at(0) is not None]
    sound = [trial for trial in known if math.isfinite(trial.at(0) or 0.0)]
    if len(sound) < LEAST:
        return []
    ranks = np.empty(len(sound))
    ranks[np.argsort([trial.scores[0] for trial in sound], kind="stable")] = np.arange(len(sound))
    shares = [
        {"name": name, "value": _share(_groups(setting, name, sound), ranks)}
        for name, setting in space.settings.items()
    ]
    return sorted(shares, key=lambda row: -row["value"])


def _groups(setting: Setting, name: str, trials: Sequence[Trial]) -> np.ndarray:
    """The group of each trial; -1 where the setting does not exist."""
    groups = np.full(len(trials), -1)
    there = [i for i, trial in enumerate(trials) if name in trial.settings]
    if not there:
        return groups
    places = np.array([setting.place(trials[i].settings[name]) for i in there])
    if isinstance(setting, Choice):
        groups[there] = np.round(places * len(setting.choices) - 0.5).astype(int)
    else:
        groups[there] = np.searchsorted(np.quantile(places, np.arange(1, GROUPS) / GROUPS), places, side="left")
    return groups


def _share(groups: np.ndarray, ranks: np.ndarray) -> float:
    total = float(np.square(ranks - ranks.mean()).sum())
    members = [ranks[groups == group] for group in np.unique(groups)]
    within = sum(float(np.square(part - part.mean()).sum()) for part in members)
    free = len(ranks) - len(members)
    if not total or len(members) < 2 or free < 1:
        return 0.0
    return max(0.0, min(1.0, (total - within - (len(members) - 1) * within / free) / total))
