"""Studies lose nothing: kills anywhere, torn lines, several workers, trials that raise."""

import errno
import json
import os
import random
import signal
import time
import traceback
import warnings
from pathlib import Path

import pytest

from wonderland import WonderlandError
from wonderland.core import write_text
from wonderland.search import (
    ASHA,
    BayesianOptimisation,
    Float,
    Journal,
    RandomSearch,
    Result,
    Space,
    Study,
    SuccessiveHalving,
    importance,
    render,
    work,
)

SPACE = Space({"x": Float(-1.0, 1.0), "y": Float(0.01, 1.0, log=True)})
STEPS = 9


class Ticks:
    """Counts places at which this process can be killed, and kills it at one of them."""

    def __init__(self, last=None):
        self.count, self.last = 0, last

    def __call__(self):
        self.count += 1
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


def objective(study, tick):
    """A training whose weights are one number in a file, which is written after every step."""

    def run(job):
        path = study.folder / "weights" / f"{job.trial}.json"
        path.parent.mkdir(exist_ok=True)
        step, weight = json.loads(path.read_text()) if path.exists() else (0, 1.0)
        while step < round(STEPS * job.share):
            tick()
            step, weight = step + 1, weight - job.settings["y"] * (weight - job.settings["x"])
            with (study.folder / "steps.txt").open("a") as file:
                file.write(f"{job.trial} {step}\n")
            write_text(path, json.dumps([step, weight]))
        return Result(weight**2, steps=step, curve=[(float(step), weight**2)])

    return run


def in_a_child(call):
    """Run a call in a forked process; returns its number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of the parent: the child uses none of them
        child = os.fork()
    if child == 0:
        try:
            call()
            os._exit(0)
        except BaseException:
            traceback.print_exc()  # an assertion about the status says nothing of the cause
            os._exit(1)
    return child


def driver(folder, tuner, trials, last):
    """Take part in a study, and be killed at a tick: a step, or before, within or after a line of the journal."""

    def call():
        tick, write, sync = Ticks(last), os.write, os.fsync

        def torn(handle, line):
            tick()
            done = write(handle, line[: len(line) // 2])
            tick()
            return done + write(handle, line[len(line) // 2 :])

        def synced(handle):
            tick()
            sync(handle)
            tick()

        os.write, os.fsync = torn, synced
        study = Study.create(folder, SPACE, tuner, trials=trials)
        work(study, objective(study, tick))

    return call


def history(folder):
    return [(t.number, t.settings, t.scores, t.steps, t.failed) for t in Study.open(folder).trials]


@pytest.mark.parametrize(
    ("tuner", "trials"),
    [(ASHA(eta=3, rungs=3), 9), (SuccessiveHalving(eta=3, rungs=3), 9), (BayesianOptimisation(start=3), 6)],
)
def test_a_study_that_is_killed_again_and_again_is_the_straight_one(tuner, trials, tmp_path):
    straight = Study.create(tmp_path / "straight", SPACE, tuner, trials=trials)
    work(straight, objective(straight, Ticks()))
    draw, kills = random.Random(0), 0
    for _ in range(200):
        _, status = os.waitpid(in_a_child(driver(tmp_path / "killed", tuner, trials, draw.randint(2, 40))), 0)
        if status == 0:
            break
        assert os.WIFSIGNALED(status)
        assert os.WTERMSIG(status) == signal.SIGKILL
        kills += 1
    assert status == 0
    assert kills >= 5
    assert history(tmp_path / "killed") == history(tmp_path / "straight")
    assert Study.open(tmp_path / "killed").best.number == straight.best.number
    done = (tmp_path / "killed" / "steps.txt").read_text().splitlines()
    assert len(done) - len(set(done)) <= kills  # at most one checkpoint interval is done again after a kill
    assert set(done) == set((tmp_path / "straight" / "steps.txt").read_text().splitlines())


def test_workers_that_come_and_die_lose_and_double_nothing(tmp_path):
    draw, trials, workers, kills = random.Random(1), 200, {}, 0
    Study.create(tmp_path, SPACE, RandomSearch(), trials=trials)
    while True:
        while len(workers) < 3:
            last = draw.randint(60, 900)
            workers[in_a_child(driver(tmp_path, RandomSearch(), trials, last))] = last
        ended = [(child, status) for child, status in (os.waitpid(child, os.WNOHANG) for child in workers) if child]
        for child, status in ended:
            del workers[child]
            assert status == 0 or os.WIFSIGNALED(status)
            kills += status != 0
        if any(status == 0 for _, status in ended):
            break
        time.sleep(0.01)
    for child in workers:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    study = Study.open(tmp_path)
    assert study.finished
    assert kills >= 3
    measured = [entry["trial"] for entry in study.journal.entries if entry["entry"] == "measured"]
    assert sorted(measured) == list(range(trials))
    assert [trial.settings for trial in study.trials] == [SPACE.sample(0, number) for number in range(trials)]


def test_a_damaged_journal_is_told_and_a_torn_line_is_cut(tmp_path):
    study = Study.create(tmp_path, SPACE, RandomSearch(), trials=3)
    work(study, lambda job: Result(job.settings["x"]))
    path = tmp_path / "journal.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    assert len(Study.open(tmp_path).trials) == 3
    assert Study.open(tmp_path).trials[2].scores == []
    again = Study.open(tmp_path)
    work(again, lambda job: Result(job.settings["x"]))
    assert history(tmp_path)[2][2] == study.trials[2].scores
    path.write_bytes(whole.replace(b'"seed": 0', b'"seed": 1'))
    with pytest.raises(WonderlandError) as caught:
        Study.open(tmp_path)
    assert str(caught.value) == (
        f"{path} is damaged after 0 bytes: a line does not have its checksum. Restore it, or start another study."
    )


def test_two_studies_of_one_name_and_folders_of_others_are_refused(tmp_path):
    Study.create(tmp_path / "one", SPACE, RandomSearch(), trials=3)
    assert Study.create(tmp_path / "one", SPACE, RandomSearch(), trials=3).limit == 3
    with pytest.raises(WonderlandError) as caught:
        Study.create(tmp_path / "one", SPACE, RandomSearch(), trials=4)
    assert str(caught.value) == (
        f"{tmp_path / 'one'} holds a study with other options. Choose another folder with --study, or go on with it: "
        f"--resume {tmp_path / 'one'}"
    )
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("mine")
    with pytest.raises(
        WonderlandError, match=r"other is not empty and holds no study: choose another folder with --study\."
    ):
        Study.create(tmp_path / "other", SPACE, RandomSearch(), trials=3)
    with pytest.raises(WonderlandError, match=r"other holds no study: there is no journal.jsonl in it\."):
        Study.open(tmp_path / "other")
    with pytest.raises(WonderlandError, match=r"A study has between 1 and 100,000 trials, not 0\."):
        Study.create(tmp_path / "none", SPACE, RandomSearch(), trials=0)


def test_a_trial_that_raises_is_a_sentence_and_the_study_goes_on(tmp_path):
    def fails(job):
        if job.trial == 1:
            raise RuntimeError("a tensor\nhas no name")
        return Result(float("nan") if job.trial == 2 else job.settings["x"])

    study = Study.create(tmp_path, SPACE, RandomSearch(), trials=5)
    work(study, fails)
    assert [trial.failed for trial in study.trials] == [
        None,
        "RuntimeError: a tensor has no name",
        "the score is nan",
        None,
        None,
    ]
    assert study.best.score == min(trial.scores[0] for trial in study.trials if trial.scores)
    page = render(study, {"title": "<script>alert(1)</script>"})
    assert "failed: RuntimeError: a tensor has no name" in page
    assert "<script>" not in page


def test_a_study_of_failures_stops_early_and_says_why(tmp_path):
    def fails(job):
        raise WonderlandError("The data has no rows.")

    study = Study.create(tmp_path, SPACE, RandomSearch(), trials=50)
    with pytest.raises(WonderlandError) as caught:
        work(study, fails)
    assert str(caught.value) == (
        "All of the first 5 trials failed, the last of them: The data has no rows. Correct the space, and start another study."
    )


def test_a_full_disk_stops_the_worker_and_loses_nothing(tmp_path, monkeypatch):
    study = Study.create(tmp_path, SPACE, RandomSearch(), trials=4)
    real, left = os.write, [3]

    def full(handle, line):
        left[0] -= 1
        if left[0] < 0:
            real(handle, line[:7])
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(handle, line)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(WonderlandError, match=r"No room left to write .*journal.jsonl\. Free some space and try again"):
        work(study, lambda job: Result(job.settings["x"]))
    monkeypatch.undo()
    again = Study.open(tmp_path)
    work(again, lambda job: Result(job.settings["x"]))
    assert [trial.scores for trial in again.trials] == [[SPACE.sample(0, n)["x"]] for n in range(4)]


def test_the_job_of_a_living_worker_is_not_taken(tmp_path):
    study = Study.create(tmp_path, SPACE, RandomSearch(), trials=2)
    with study.worker() as first, study.worker() as second:
        job = study.claim(first)
        assert study.is_alive(first)
        assert not study.is_alive("../journal")
        assert study.claim(second).trial == 1
        assert study.claim(second) is None
        assert not study.finished
        study.report(second, job, Result(0.0))  # not its job
        assert study.trials[0].scores == []
        study.report(first, job, Result(0.5))
        assert study.trials[0].scores == [0.5]
    with study.worker() as third:
        assert study.claim(third).trial == 1  # left by the second


def test_importance_finds_the_setting_that_matters_and_the_report_shows_it(tmp_path):
    study = Study.create(tmp_path, SPACE, ASHA(eta=3, rungs=2), trials=30)
    work(
        study,
        lambda job: Result(job.settings["x"] ** 2 - job.share, 5, 0.1, [(1.0, 2.0), (5.0, job.settings["x"] ** 2)]),
    )
    rows = importance(SPACE, study.trials)
    assert rows[0]["name"] == "x"
    assert rows[0]["value"] > 0.3 > rows[1]["value"]
    assert importance(SPACE, study.trials[:5]) == []
    page = render(study, {"title": "toy", "kind": "test", "metrics": {"accuracy": 0.9}, "disk": 10_000})
    for text in ("The winner", "Settings and scores", "Learning curves", "What it took", "All trials", "of a training"):
        assert text in page
    assert page.count("<svg") == 4


def test_a_journal_is_shared_between_two_readers(tmp_path):
    one, two = Journal(tmp_path), Journal(tmp_path)
    with one.locked():
        one.append({"a": 1})
    with two.locked():
        two.append({"b": 2})
    assert one.read() == two.read() == [{"a": 1}, {"b": 2}]
    assert Path(one.path).read_bytes().count(b"\n") == 2
