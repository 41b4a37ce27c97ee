"""Trials in Optuna: each once, paused ones as pruned, with the scores of their rungs."""

import pytest

from tests.search.test_study import SPACE
from wonderland import WonderlandError
from wonderland.search import ASHA, Result, Study, mirror, work


def toy(job):
    if job.trial == 3:
        raise WonderlandError("The data has no rows.")
    return Result(job.settings["x"] ** 2 / job.share, steps=round(9 * job.share))


def test_every_trial_is_written_once(tmp_path):
    optuna = pytest.importorskip("optuna", reason="needs the extra search")
    study = Study.create(tmp_path, SPACE, ASHA(eta=3, rungs=2, spend=0), trials=9)
    work(study, toy)
    for _ in range(2):
        found = mirror(study, str(tmp_path / "optuna.log"), study_name="toy")
    states = [trial.state.name for trial in found.trials]
    assert len(states) == 9
    assert states.count("FAIL") == 1
    assert states.count("COMPLETE") == sum(trial.rung == 1 for trial in study.trials)
    assert found.best_trial.user_attrs["wonderland_trial"] == study.best.number
    assert found.best_trial.params == study.best.settings
    assert list(found.best_trial.intermediate_values) == study.best.steps
    sampled = optuna.samplers.TPESampler(seed=0)
    again = optuna.load_study(study_name="toy", storage=found._storage, sampler=sampled)
    assert set(again.ask({"x": optuna.distributions.FloatDistribution(-1, 1)}).params) == {"x"}


def test_a_storage_that_cannot_be_used_is_a_sentence(tmp_path):
    pytest.importorskip("optuna", reason="needs the extra search")
    study = Study.create(tmp_path / "study", SPACE, ASHA(eta=3, rungs=2), trials=1)
    with pytest.raises(
        WonderlandError, match=r"^The trials could not be written to Optuna's storage sqlite:////none/o\.db: "
    ):
        mirror(study, "sqlite:////none/o.db", study_name="toy")
