"""Tuners choose what they should, as functions of the trials so far."""

import math
from collections import Counter

import pytest
import torch

from wonderland import WonderlandError
from wonderland.search import (
    ASHA,
    BayesianOptimisation,
    Choice,
    Float,
    GridSearch,
    Integer,
    Job,
    RandomSearch,
    Result,
    Space,
    Study,
    SuccessiveHalving,
    Trial,
    confidence_bound,
    expected_improvement,
    make_tuner,
    work,
)

SPACE = Space({"x": Float(-5.0, 10.0), "y": Float(0.0, 15.0)})


def branin(settings):
    x, y = settings["x"], settings["y"]
    return (
        (y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6) ** 2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10
    )


def studied(tuner, folder, *, trials, space=SPACE, objective=branin):
    study = Study.create(folder, space, tuner, trials=trials)
    work(study, lambda job: Result(objective(job.settings) + 1 - job.share, steps=round(27 * job.share)))
    return study


def test_random_search_is_a_function_of_seed_and_number(tmp_path):
    study = studied(RandomSearch(), tmp_path, trials=12)
    assert [trial.settings for trial in study.trials] == [SPACE.sample(0, number) for number in range(12)]
    assert study.best.score == min(trial.score for trial in study.trials)


def test_grid_search_stops_at_the_end_of_the_grid(tmp_path):
    study = studied(GridSearch(points=3), tmp_path, trials=100)
    assert [trial.settings for trial in study.trials] == SPACE.grid(3)


def test_successive_halving_keeps_the_best_third(tmp_path):
    study = studied(SuccessiveHalving(eta=3, rungs=3), tmp_path, trials=27)
    assert Counter(trial.rung for trial in study.trials) == {0: 18, 1: 6, 2: 3}
    order = sorted(study.trials, key=lambda trial: trial.scores[0])
    assert {trial.number for trial in order[:3]} == {trial.number for trial in study.trials if trial.rung == 2}


def test_halving_waits_for_its_rung():
    halving = SuccessiveHalving(eta=2, rungs=2)
    trials = [Trial(0, {}, [0.3]), Trial(1, {}, [], running=0)]
    assert halving.next(trials, 2) is None
    trials[1] = Trial(1, {}, failed="no")
    assert halving.next(trials, 2) == (0, 1)


def test_asha_promotes_without_waiting_and_goes_on_with_the_same_trial(tmp_path):
    asha = ASHA(eta=3, rungs=3)
    trials = [Trial(0, {}, [0.3]), Trial(1, {}, [0.1]), Trial(2, {}, [0.2])]
    assert asha.next(trials[:2], 9) == (2, 0)
    assert asha.next([*trials, Trial(3, {}, [], running=0)], 9) == (1, 1)
    trials[1] = Trial(1, {}, [0.1], running=1)
    assert asha.next(trials, 9) == (3, 0)
    study = studied(asha, tmp_path, trials=27)
    promoted = [entry for entry in study.journal.entries if entry["entry"] == "run" and entry["rung"] > 0]
    assert promoted
    assert all(entry["settings"] == study.trials[entry["trial"]].settings for entry in promoted)
    # A promotion comes before the last new trial: nothing waits for a complete rung.
    last = max(i for i, entry in enumerate(study.journal.entries) if entry["entry"] == "run" and entry["rung"] == 0)
    assert study.journal.entries.index(promoted[0]) < last
    assert study.trials[study.best.number].rung == 2


def test_expected_improvement_is_the_integral_it_stands_for():
    draws = torch.randn(400_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    mean, deviation = torch.tensor([0.3, -0.5], dtype=torch.float64), torch.tensor([1.0, 0.2], dtype=torch.float64)
    sampled = (0.1 - (mean + deviation * draws[:, None])).clamp(min=0).mean(0)
    torch.testing.assert_close(expected_improvement(mean, deviation, 0.1), sampled, atol=3e-3, rtol=0)
    assert confidence_bound(mean, deviation, kappa=1.0).tolist() == pytest.approx([0.7, 0.7])


@pytest.mark.parametrize("acquisition", ["ei", "ucb"])
def test_bayesian_optimisation_beats_random_search(acquisition, tmp_path):
    tuner = BayesianOptimisation(acquisition=acquisition, start=6)
    found = studied(tuner, tmp_path / "bo", trials=22).best.score
    assert found < 1.0 < studied(RandomSearch(), tmp_path / "random", trials=22).best.score


def test_workers_of_bayesian_optimisation_look_at_different_places():
    tuner = BayesianOptimisation(start=2)
    trials = [Trial(n, s := SPACE.sample(0, n), [branin(s)]) for n in range(6)]
    first = tuner.settings(SPACE, trials, 6, 0)
    second = tuner.settings(SPACE, [*trials, Trial(6, first, running=0)], 7, 0)
    distance = math.dist(SPACE.place(first), SPACE.place(second))
    assert distance > 0.05
    assert tuner.settings(SPACE, trials, 6, 0) == first


def test_bayesian_optimisation_ends_a_small_space_without_repeating_itself(tmp_path):
    space = Space({"kind": Choice(("a", "b")), "n": Integer(1, 4)})
    score = {"a": 0.0, "b": 1.0}
    study = studied(
        BayesianOptimisation(start=2),
        tmp_path,
        trials=8,
        space=space,
        objective=lambda s: score[s["kind"]] + abs(s["n"] - 3),
    )
    first = [repr(trial.settings) for trial in study.trials]
    assert len(set(first)) >= 7  # the two random ones may be equal
    assert study.best.settings == {"kind": "a", "n": 3}


def test_wrong_tuners_are_told_to_the_word():
    for name, options, message in (
        (
            "ahsa",
            {},
            "There is no tuner 'ahsa'. Did you mean 'asha'? Known are random, grid, halving, asha, hyperband, bo, bohb.",
        ),
        ("asha", {"etta": 3}, "The tuner asha has no option 'etta'. Did you mean 'eta'?"),
        ("asha", {"eta": 1}, "eta is the factor between rungs, from 2 to 100, not 1."),
        ("halving", {"rungs": 0}, "There are between 1 and 10 rungs, not 0."),
        ("grid", {"points": 0}, "A grid takes at least 1 point of each number, not 0."),
        ("bo", {"acquisition": "pi"}, "There is no acquisition 'pi'. Known are ei, ucb."),
    ):
        with pytest.raises(WonderlandError) as caught:
            make_tuner(name, options)
        assert str(caught.value) == message


def test_a_job_names_its_share():
    assert [ASHA(eta=3, rungs=3).shares[rung] for rung in range(3)] == pytest.approx([1 / 9, 1 / 3, 1])
    assert Job(0, 0, 1.0, {}).share == RandomSearch().shares[0]
