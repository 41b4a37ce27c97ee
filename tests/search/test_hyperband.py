"""Hyperband compares as many trials at each rung as its paper says, and BOHB looks where good trials are dense."""

from collections import Counter

import numpy as np
import pytest

from tests.search.test_tuners import SPACE, branin, studied
from wonderland import WonderlandError
from wonderland.search import BOHB, Float, Hyperband, RandomSearch, Space, Trial
from wonderland.search.hyperband import bandwidth, log_density


def test_brackets_are_those_of_the_paper(tmp_path):
    """eta 3 and three rungs: 9, 3, 1 trials; 5, 1; 3, by the rung at which they end."""
    study = studied(Hyperband(eta=3, rungs=3), tmp_path, trials=17)
    ends = [Counter(trial.rung for trial in study.trials[a:b]) for a, b in ((0, 9), (9, 14), (14, 17))]
    assert ends == [{0: 6, 1: 2, 2: 1}, {1: 4, 2: 1}, {2: 3}]
    first = sorted(study.trials[:9], key=lambda trial: trial.scores[0])
    assert {trial.number for trial in first[:3]} == {trial.number for trial in study.trials[:9] if trial.rung > 0}


def test_a_bracket_that_waits_does_not_keep_the_next_one_waiting():
    tuner = Hyperband(eta=2, rungs=2)
    running = [Trial(0, {}, [0.1]), Trial(1, {}, running=0, worker="a")]
    assert tuner.next(running, 4) == (2, 0)
    assert tuner.next([Trial(0, {}, [0.1]), Trial(1, {}, failed="no")], 2) == (0, 1)


def test_densities_are_high_where_points_are():
    points = np.array([[0.2, 0.5], [0.25, 0.5], [0.3, 0.5]])
    near, far = log_density(np.array([[0.25, 0.5], [0.9, 0.5]]), points)
    assert near > far + 3
    assert (bandwidth(points) >= 0.03).all()


def test_bohb_finds_better_settings_than_chance(tmp_path):
    wins = 0
    for seed in range(3):
        scores = []
        for name, tuner in (("bohb", BOHB(eta=3, rungs=2, random=0.2)), ("random", RandomSearch())):
            space = Space({name: SPACE.settings[name] for name in SPACE.names} | {f"z{seed}": Float(0.0, 1.0)})
            study = studied(tuner, tmp_path / f"{name}{seed}", trials=60, space=space)
            scores.append(np.mean(sorted(branin(trial.settings) for trial in study.trials)[:10]))
        wins += scores[0] < scores[1]
    assert wins >= 2
    with pytest.raises(WonderlandError) as told:
        BOHB(good=2.0)
    assert str(told.value) == "BOHB takes shares of good trials and of random settings from 0 to 1."
