"""Studies in databases: workers that come and die, servers that crash, machines that are lost."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.search.servers import free_port, postgresql
from tests.search.test_study import SPACE, Ticks, in_a_child
from wonderland import WonderlandError
from wonderland.search import ASHA, RandomSearch, Result, Study, open_database, work
from wonderland.search.database import LostDatabase

TRIALS = 200


def toy(study, tick):
    """A training of a trial whose steps are written to a file of its place; killed at one of them."""

    def run(job):
        for step in range(3):
            tick()
            time.sleep(0.001)
            with (study.folder / "steps.txt").open("a") as file:
                file.write(f"{job.trial} {step}\n")
        return Result(job.settings["x"] ** 2, steps=3)

    return run


def driver(url, folder, last, tuner=None):
    def call():
        while True:  # a server that is away when a worker begins is a sentence: the same command again
            try:
                journal = open_database(url, "toy")
                study = Study.create(folder, SPACE, tuner or RandomSearch(), trials=TRIALS, journal=journal)
                break
            except LostDatabase:
                time.sleep(0.1)
        work(study, toy(study, Ticks(last)))

    return call


def with_kills(url, folder, crash=lambda kills: None):
    """Two workers at a time, killed at random, until one says that the study is done. Returns the study and the kills."""
    draw, workers, kills = random.Random(3), [], 0
    while True:
        while len(workers) < 2:
            last = draw.randint(6, 36) if kills < 25 else None
            workers.append(in_a_child(driver(url, folder, last)))
        ended = [(child, status) for child, status in (os.waitpid(child, os.WNOHANG) for child in workers) if child]
        for child, status in ended:
            workers.remove(child)
            assert status == 0 or os.WIFSIGNALED(status), status
            kills += status != 0
            if status:
                crash(kills)
        if any(status == 0 for _, status in ended):
            break
        time.sleep(0.02)
    for child in workers:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return Study.open(folder, open_database(url, "toy")), kills


def assert_whole(study):
    """Every trial was measured once, with the settings of its number."""
    assert study.finished
    measured = [entry["trial"] for entry in study.journal.entries if entry["entry"] == "measured"]
    assert sorted(measured) == list(range(TRIALS))
    assert [trial.settings for trial in study.trials] == [SPACE.sample(0, number) for number in range(TRIALS)]


@pytest.mark.slow
def test_two_workers_on_postgresql_lose_and_double_nothing(tmp_path):
    pytest.importorskip("psycopg", reason="needs the extra search")
    with postgresql() as server:
        study, kills = with_kills(server.url(), tmp_path / "weights")
        assert_whole(study)
        assert kills >= 20


@pytest.mark.slow
def test_a_server_that_crashes_loses_nothing(tmp_path):
    pytest.importorskip("psycopg", reason="needs the extra search")
    with postgresql() as server:

        def crash(kills):
            if kills % 7 == 0:
                server.kill()
                server.start()

        study, kills = with_kills(server.url(), tmp_path / "weights", crash)
        assert_whole(study)
        assert kills >= 20


@pytest.mark.slow
def test_two_workers_on_sqlite_lose_and_double_nothing(tmp_path):
    study, kills = with_kills(f"sqlite:///{tmp_path}/studies.db", tmp_path / "weights")
    assert_whole(study)
    assert kills >= 20


def test_databases_that_cannot_be_used_are_told_to_the_word(tmp_path):
    url = f"sqlite:///{tmp_path}/studies.db"
    made = {"trials": 3, "journal": open_database(url, "one")}
    Study.create(tmp_path / "a", SPACE, RandomSearch(), **made)
    Study.create(tmp_path / "a", SPACE, RandomSearch(), **made)
    with pytest.raises(WonderlandError) as caught:
        Study.create(tmp_path / "a", SPACE, RandomSearch(), trials=4, journal=open_database(url, "one"))
    assert str(caught.value) == (
        f"the study one in {tmp_path}/studies.db holds a study with other options. Choose another name with --name."
    )
    with pytest.raises(WonderlandError, match=r"a holds the weights of another study: work in another folder\.$"):
        Study.create(tmp_path / "a", SPACE, RandomSearch(), trials=4, journal=open_database(url, "two"))
    (tmp_path / "text.db").write_text("not a database, but long enough to be read as one" * 20)
    with pytest.raises(
        WonderlandError, match=r"text\.db cannot be used as a SQLite database \(file is not a database\)"
    ):
        Study.create(
            tmp_path / "b",
            SPACE,
            RandomSearch(),
            trials=3,
            journal=open_database(f"sqlite:///{tmp_path}/text.db", "one"),
        )
    with pytest.raises(WonderlandError, match=r"A study lies in a folder, in postgresql://.*, not in mysql://\.$"):
        open_database("mysql://host/db", "one")
    assert open_database(url, "x").names() == ["one", "two"]


def test_a_server_that_is_not_there_is_a_sentence(tmp_path):
    pytest.importorskip("psycopg", reason="needs the extra search")
    port = free_port()
    journal = open_database(f"postgresql://ann:secret@127.0.0.1:{port}/postgres", "one")
    with pytest.raises(WonderlandError) as caught:
        Study.create(tmp_path, SPACE, RandomSearch(), trials=3, journal=journal)
    text = str(caught.value)
    assert text.startswith(f"The database postgresql://ann@127.0.0.1:{port}/postgres cannot be reached: ")
    assert text.endswith("Check address, user and server.")
    assert "secret" not in text


def places(tmp_path, tuner, trials):
    url = f"sqlite:///{tmp_path}/studies.db"
    made = {"trials": trials, "about": {}}
    return [
        Study.create(tmp_path / name, SPACE, tuner, journal=open_database(url, "one"), **made)
        for name in ("here", "there")
    ]


def measure(study, worker, job):
    study.report(worker, job, Result(job.settings["x"] ** 2, steps=job.rung + 1))


def test_a_trial_is_promoted_only_where_its_weights_are(tmp_path):
    here, there = places(tmp_path, ASHA(eta=2, rungs=2), 4)
    with here.worker() as one, there.worker() as two:
        for _ in range(2):
            measure(here, one, here.claim(one))
        best = here.best.number
        job = there.claim(two)
        assert (job.trial, job.rung) == (2, 0)  # the promotion is left to the place of the weights
        promoted = here.claim(one)
        assert (promoted.trial, promoted.rung) == (best, 1)
        measure(here, one, promoted)
        measure(there, two, job)
    assert [trial.place for trial in here.trials] == [here.place, here.place, None] or here.trials[
        2
    ].place != here.place


def test_trials_of_a_lost_machine_begin_again_and_are_counted(tmp_path):
    here, there = places(tmp_path, ASHA(eta=2, rungs=2), 2)
    with here.worker() as one:
        for _ in range(2):
            measure(here, one, here.claim(one))
        best = here.best.number
        with there.worker() as two:
            assert there.claim(two) is None  # the other machine is alive, and has the weights
            assert not there.finished
    with there.worker() as two:
        job = there.claim(two)
        assert (job.trial, job.rung, job.weights) == (best, 1, None)
        measure(there, two, job)
        assert there.claim(two) is None
    assert there.finished
    assert [trial.restarts for trial in there.trials] == [int(n == best) for n in range(2)]


def test_a_job_left_by_another_machine_is_taken_where_its_weights_can_be_had(tmp_path):
    here, there = places(tmp_path, ASHA(eta=2, rungs=2), 2)
    with here.worker() as one:
        for _ in range(2):
            job = here.claim(one)
            here.report(one, job, Result(job.settings["x"] ** 2, steps=1, weights=f"{job.trial:04d}-0-00000000"))
        best = here.best.number
        assert here.claim(one).rung == 1
    with there.worker() as two:
        job = there.claim(two)
        assert (job.trial, job.rung, job.weights, job.steps) == (best, 1, f"{best:04d}-0-00000000", 1)


def test_first_settings_are_tried_first(tmp_path):
    first = [{"x": 0.25, "y": 0.5}]
    study = Study.create(tmp_path, SPACE, RandomSearch(), trials=2, first=first)
    work(study, lambda job: Result(job.settings["x"]))
    assert [trial.settings for trial in study.trials] == [first[0], SPACE.sample(0, 1)]
    assert Study.open(Path(tmp_path)).first == first


def damaged(journal, texts):
    """The sentences about a study whose last entry is replaced by each of these texts."""
    with journal.locked():
        journal.append({"kind": "first"})
    said = []
    for text in texts:
        with journal.locked():
            journal._insert(1, text)
        with pytest.raises(WonderlandError) as error:
            journal.read()
        said.append(str(error.value))
        journal.close()
        with journal._guarded() as session:
            session.execute("DELETE FROM wonderland_journal WHERE number = 1")
    return said


def test_a_damaged_entry_of_sqlite_is_a_sentence(tmp_path):
    journal = open_database(f"sqlite:///{tmp_path / 'studies.db'}", "toy")
    text = f"the study toy in {tmp_path / 'studies.db'} is damaged at entry 1: restore the file."
    assert damaged(journal, ["{", "[]", "[" * 100_000]) == [text] * 3
    assert journal.read() == [{"kind": "first"}]


@pytest.mark.slow
def test_a_damaged_entry_of_postgresql_is_a_sentence():
    pytest.importorskip("psycopg", reason="needs the extra search")
    with postgresql() as server:
        journal = open_database(server.url(), "toy")
        said = damaged(journal, ["{", "[]"])
        assert all(text.endswith("is damaged at entry 1: restore the table wonderland_journal.") for text in said)
        journal.close()
