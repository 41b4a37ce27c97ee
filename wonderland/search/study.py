"""A study: trials that one or several workers run, with a journal as the only truth."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wonderland.core import WonderlandError, disk_trouble, sha256
from wonderland.core.strict_json import dump_json
from wonderland.search.database import folder_of, place_in
from wonderland.search.journal import FILE, Journal
from wonderland.search.postgresql import PostgreSQL
from wonderland.search.presence import PLACE, worker_name
from wonderland.search.space import Space
from wonderland.search.space_file import parse_space
from wonderland.search.sqlite import SQLite
from wonderland.search.trial import Trial, best_trial
from wonderland.search.tuner import Tuner
from wonderland.search.tuners import make_tuner, tuner_json

FORMAT = 1
HOPELESS = 5  # trials that failed, with none that did not, after which a study stops
MOST_TRIALS, MOST_POINTS = 100_000, 60
PLACE_FILE = f"{PLACE}.json"
AnyJournal = Journal | SQLite | PostgreSQL


@dataclass(frozen=True)
class Job:
    """A trial to bring to the end of a rung: a `share` of its whole training."""

    trial: int
    rung: int
    share: float
    settings: dict[str, Any]
    weights: str | None = None  # what the shared folder holds of it
    steps: int = 0  # done before, at the end of the last rung


@dataclass(frozen=True)
class Result:
    """What was measured at the end of a rung: the score (smaller is better), steps done so far, seconds of this rung."""

    score: float
    steps: int = 0
    seconds: float = 0.0
    curve: list[tuple[float, float]] = field(default_factory=list)
    weights: str | None = None
    cost: float | None = None


class Study:
    """Trials over a space, decided by a tuner, in a folder that any number of processes of one machine may share, or in a database that
    several machines share.

    A worker claims a job in the journal, runs it, and reports. Each worker holds a lock for as long as it lives; the job of a
    worker that died is claimed by the next one, before anything new is started. What is tried next depends on the trials so far,
    the seed and the number of the trial: with one worker a study that was killed anywhere gives the same trials, rungs and winner.

    >>> import tempfile
    >>> from wonderland.search import Float, RandomSearch, work
    >>> study = Study.create(tempfile.mkdtemp(), Space({"x": Float(-1.0, 1.0)}), RandomSearch(), trials=20)
    >>> work(study, lambda job: Result(job.settings["x"] ** 2))
    >>> len(study.trials), study.best.score < 0.1
    (20, True)
    """

    def __init__(
        self,
        folder: str | Path,
        space: Space,
        tuner: Tuner,
        limit: int,
        seed: int,
        about: dict[str, Any],
        journal: AnyJournal | None = None,
        first: Sequence[dict[str, Any]] = (),
        place: str | None = None,
    ):
        self.folder, self.space, self.tuner = Path(folder), space, tuner
        self.limit, self.seed, self.about, self.first = limit, seed, about, list(first)
        self.journal = Journal(folder) if journal is None else journal
        self.place = place
        self.trials: list[Trial] = []
        self._replayed, self._unsure = 0, False

    @staticmethod
    def create(
        folder: str | Path | None,
        space: Space | Mapping[str, Any],
        tuner: Tuner,
        *,
        trials: int,
        seed: int = 0,
        about: Any = None,
        journal: AnyJournal | None = None,
        first: Sequence[Mapping[str, Any]] = (),
    ) -> "Study":
        """A new study, or the one that was begun here with the same arguments.

        `about` is what else has to be the same, but for its key "origin" where there are several machines; `first` are settings that are
        tried before others (a warm start); `journal` is where a study in a database is kept, whose `folder` is for weights.
        """
        space = Space.of(space)
        if isinstance(trials, bool) or not isinstance(trials, int) or not 1 <= trials <= MOST_TRIALS:
            raise WonderlandError(f"A study has between 1 and {MOST_TRIALS:,} trials, not {trials}.")
        entry = {"entry": "study", "format": FORMAT, "space": space.to_json(), "tuner": tuner_json(tuner),
                 "trials": trials, "seed": seed, "about": about or {}}  # fmt: skip
        if first:
            entry["first"] = [dict(settings) for settings in first]
        if journal is None:
            assert folder is not None, "a study in files has a folder"
            journal = _journal_in(Path(folder))
            hint = f"Choose another folder with --study, or go on with it: --resume {folder}"
        else:
            hint = "Choose another name with --name."
        with journal.locked():
            if not journal.entries:
                journal.append(entry)
            elif _same(journal.entries[0], journal) != _same(entry, journal):
                raise WonderlandError(f"{journal.about} holds a study with other options. {hint}")
        return Study.open(folder, journal)

    @staticmethod
    def open(folder: str | Path | None, journal: AnyJournal | None = None) -> "Study":
        """The study that was begun in a folder, or in the journal of a database."""
        if journal is None:
            assert folder is not None, "a study in files has a folder"
            journal = Journal(folder)
            if (Path(folder) / PLACE_FILE).is_file() and not journal.exists():
                raise WonderlandError(
                    f"{folder} holds weights of a study in a database: go on with --resume and the address of the database."
                )
            if not journal.exists():
                raise WonderlandError(f"{folder} holds no study: there is no {FILE} in it.")
        entries = journal.read()
        if not entries:
            where = folder if journal.one_place else journal.about
            raise WonderlandError(f"The study in {where} was not begun yet: start it again with the same options.")
        try:
            entry = entries[0]
            if entry["entry"] != "study" or entry["format"] != FORMAT or not isinstance(entry["about"], dict):
                raise ValueError("no study")
            tuner = make_tuner(entry["tuner"]["name"], entry["tuner"]["options"])
            space, trials, seed = parse_space(entry["space"]), int(entry["trials"]), int(entry["seed"])
            first = [dict(settings) for settings in entry.get("first", [])]
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise WonderlandError(
                f"The journal of {journal.about} does not begin with a study: it is damaged or not ours."
            ) from error
        place = None
        if not isinstance(journal, Journal):
            identity = sha256(dump_json([journal.study, entry]).encode())
            folder = folder_of(journal.study, identity) if folder is None else Path(folder)
            place = place_in(Path(folder), identity)
        assert folder is not None
        study = Study(folder, space, tuner, tuner.limit(space, trials), seed, entry["about"], journal, first, place)
        study.refresh()
        return study

    def follow(self) -> "Study":
        """The same study, read by itself: for a display in another thread."""
        journal = self.journal
        if isinstance(journal, Journal):
            return Study.open(self.folder)
        other = (
            SQLite(journal.path, journal.study)
            if isinstance(journal, SQLite)
            else PostgreSQL(journal.url, journal.study)
        )
        return Study.open(self.folder, other)

    def refresh(self) -> None:
        """Read what other workers have written."""
        try:
            self.journal.read()
        except WonderlandError:
            self._forget()
            raise
        self._replay()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Write while no other worker does; what is not on disk at the end did not happen."""
        try:
            with self.journal.locked():
                self._replay()
                yield
        except BaseException:
            self._forget()
            raise

    def _forget(self) -> None:
        self.trials, self._replayed, self._unsure = [], 0, True

    def _replay(self) -> None:
        for entry in self.journal.entries[self._replayed :]:
            try:
                self._apply(entry)
            except (LookupError, TypeError, ValueError, AssertionError) as error:
                raise WonderlandError(
                    f"The journal of {self.journal.about} has an entry that cannot be: it is damaged or not ours."
                ) from error
            self._replayed += 1

    def _apply(self, entry: dict[str, Any]) -> None:
        kind = entry["entry"]
        if kind == "study":
            return
        if kind == "run":
            number = entry["trial"]
            if number == len(self.trials):
                self.trials.append(Trial(number, dict(entry["settings"])))
            trial = self.trials[number]
            assert trial.rung + 1 == entry["rung"]
            trial.running, trial.worker = entry["rung"], entry["worker"]
            trial.place = entry.get("place")
            trial.restarts += entry.get("again") is True
            return
        trial = self.trials[entry["trial"]]
        assert trial.running == entry["rung"]
        trial.seconds += float(entry["seconds"])
        trial.running = trial.worker = None
        if kind == "failed":
            trial.failed = str(entry["text"])
        else:
            assert kind == "measured"
            trial.scores.append(float(entry["score"]))
            trial.steps.append(int(entry["steps"]))
            trial.curve = [(float(x), float(y)) for x, y in entry["curve"]] or trial.curve
            trial.weights = entry.get("weights", trial.weights)
            trial.cost = entry.get("cost", trial.cost)

    @contextmanager
    def worker(self) -> Iterator[str]:
        """Register a worker: its lock says that it is alive, until this block ends or the process dies."""
        name = worker_name()
        with self.journal.present(name, self.place):
            yield name

    def is_alive(self, worker: str | None) -> bool:
        """Whether a worker still holds its lock."""
        return self.journal.is_alive(worker)

    def reachable(self, trial: Trial) -> bool:
        """Whether the weights that a trial goes on from are here, or where every machine can fetch them."""
        lost_little = trial.rung < 0  # at most a part of its first rung
        return lost_little or trial.place == self.place or trial.weights is not None

    def claim(self, worker: str) -> Job | None:
        """The next job for a worker: one that a dead worker left, or what the tuner decides. None if there is none now.

        Trials whose weights lie on another machine are left to its workers; if none of them is alive and nothing else is left to do,
        they begin again here, which is counted.
        """
        with self._turn():
            self._refuse_hopeless()
            left = [
                trial  # of a dead worker, or of this one, where it lost the connection while it claimed a job
                for trial in self.trials
                if trial.running is not None
                and ((self._unsure and trial.worker == worker) or not self.is_alive(trial.worker))
            ]
            chosen = next(((t.number, t.running) for t in left if self.reachable(t)), None)
            elsewhere: list[Trial] = [trial for trial in left if not self.reachable(trial)]
            if chosen is None:
                chosen, paused = self._next_here()
                elsewhere += paused
            again = False
            if chosen is None:
                lost = next((trial for trial in elsewhere if not self.journal.is_inhabited(trial.place)), None)
                if lost is None:
                    return None
                again, chosen = True, (lost.number, lost.rung + 1)
            number, rung = chosen
            assert rung is not None
            entry = {
                "entry": "run",
                "trial": number,
                "rung": rung,
                "worker": worker,
                "settings": self._settings(number),
            }
            if self.place is not None:
                before = self.trials[number] if number < len(self.trials) else None
                again |= before is not None and before.running == 0 and before.place != self.place
                entry |= {"place": self.place} | ({"again": True} if again else {})
            self.journal.append(entry)
            self._replay()
            trial = self.trials[number]
        self._unsure = False
        steps = trial.steps[-1] if trial.steps else 0
        return Job(number, rung, self.tuner.shares[rung], dict(trial.settings), trial.weights, steps)

    def _next_here(self) -> tuple[tuple[int, int] | None, list[Trial]]:
        """What the tuner decides of the trials whose weights can be had here, and the trials that it would rather promote."""
        view, passed = list(self.trials), []
        while True:
            chosen = self.tuner.next(view, self.limit)
            if chosen is None or chosen[0] == len(view) or self.reachable(self.trials[chosen[0]]):
                return chosen, passed
            passed.append(self.trials[chosen[0]])
            view[chosen[0]] = replace(view[chosen[0]], running=chosen[1])  # as if its own machine had taken it

    def _settings(self, number: int) -> dict[str, Any]:
        if number < len(self.trials):
            return self.trials[number].settings
        if number < len(self.first):
            return self.first[number]
        return self.tuner.settings(self.space, self.trials, number, self.seed)

    def report(self, worker: str, job: Job, result: Result) -> None:
        """Write down what was measured. A score that is not finite is a failed trial."""
        if not math.isfinite(result.score):
            self.fail(worker, job, f"the score is {result.score}", result.seconds)
            return
        curve = [(float(x), float(y)) for x, y in result.curve if math.isfinite(y)]
        stride = max(1, math.ceil(len(curve) / MOST_POINTS))
        entry = {
            "entry": "measured",
            "score": float(result.score),
            "steps": int(result.steps),
            "curve": curve[::-1][::stride][::-1],
        }
        if result.weights is not None:
            entry["weights"] = result.weights
        if result.cost is not None:
            entry["cost"] = float(result.cost)
        self._close(worker, job, entry, result.seconds)

    def fail(self, worker: str, job: Job, text: str, seconds: float = 0.0) -> None:
        """Write down that a trial failed, and why."""
        self._close(worker, job, {"entry": "failed", "text": " ".join(text.split())[:500]}, seconds)

    def _close(self, worker: str, job: Job, entry: dict[str, Any], seconds: float) -> None:
        with self._turn():
            trial = self.trials[job.trial]
            if trial.running != job.rung or trial.worker != worker:
                return  # another worker was given the job, because the lock of this one was removed
            self.journal.append({**entry, "trial": job.trial, "rung": job.rung, "seconds": round(seconds, 3)})
            self._replay()

    def _refuse_hopeless(self) -> None:
        failed = [trial for trial in self.trials if trial.failed is not None]
        if len(failed) >= HOPELESS and len(failed) == len([t for t in self.trials if t.running is None]):
            raise WonderlandError(
                f"All of the first {len(failed)} trials failed, the last of them: {failed[-1].failed} "
                "Correct the space, and start another study."
            )

    @property
    def finished(self) -> bool:
        """Whether nothing runs and nothing is left to start, as far as the journal was read."""
        return all(t.running is None for t in self.trials) and self.tuner.next(self.trials, self.limit) is None

    @property
    def best(self) -> Trial:
        """The best trial at the highest rung that any has reached."""
        winner = best_trial(self.trials)
        if winner is None:
            failed = [trial for trial in self.trials if trial.failed is not None]
            why = f": {failed[-1].failed}" if failed else "."
            raise WonderlandError(f"No trial of the study in {self.folder} was measured{why}")
        return winner


def _journal_in(folder: Path) -> Journal:
    """The journal of a folder that is free, or holds a study."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_trouble(error, folder) from error
    others = [path for path in folder.iterdir() if not path.name.startswith(".") and path.name != "journal.lock"]
    if others and not (folder / FILE).exists():
        raise WonderlandError(f"{folder} is not empty and holds no study: choose another folder with --study.")
    return Journal(folder)


def _same(entry: dict[str, Any], journal: AnyJournal) -> dict[str, Any]:
    """What has to be the same where a study is begun twice: on several machines the data may lie in different folders."""
    if journal.one_place or not isinstance(entry.get("about"), dict):
        return entry
    return {**entry, "about": {key: value for key, value in entry["about"].items() if key != "origin"}}
