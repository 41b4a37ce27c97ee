"""A study: trials that one or several workers run, with a journal as the only truth."""

import fcntl
import itertools
import math
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wonderland.core import WonderlandError, disk_trouble
from wonderland.search.journal import FILE, Journal
from wonderland.search.space import Space
from wonderland.search.space_file import parse_space
from wonderland.search.trial import Trial, best_trial
from wonderland.search.tuner import Tuner
from wonderland.search.tuners import make_tuner, tuner_json

FORMAT = 1
HOPELESS = 5  # trials that failed, with none that did not, after which a study stops
MOST_TRIALS, MOST_POINTS = 100_000, 60
_counter = itertools.count()


@dataclass(frozen=True)
class Job:
    """A trial to bring to the end of a rung: a `share` of its whole training."""

    trial: int
    rung: int
    share: float
    settings: dict[str, Any]


@dataclass(frozen=True)
class Result:
    """What was measured at the end of a rung: the score (smaller is better), steps done so far, seconds of this rung."""

    score: float
    steps: int = 0
    seconds: float = 0.0
    curve: list[tuple[float, float]] = field(default_factory=list)


class Study:
    """Trials over a space, decided by a tuner, in a folder that any number of processes of one machine may share.

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

    def __init__(self, folder: str | Path, space: Space, tuner: Tuner, limit: int, seed: int, about: dict[str, Any]):
        self.folder, self.space, self.tuner = Path(folder), space, tuner
        self.limit, self.seed, self.about = limit, seed, about
        self.journal = Journal(folder)
        self.trials: list[Trial] = []
        self._replayed = 0

    @staticmethod
    def create(
        folder: str | Path,
        space: Space | Mapping[str, Any],
        tuner: Tuner,
        *,
        trials: int,
        seed: int = 0,
        about: Any = None,
    ) -> "Study":
        """A new study, or the one that was begun in this folder with the same arguments. `about` is what else has to be the same."""
        space = Space.of(space)
        if isinstance(trials, bool) or not isinstance(trials, int) or not 1 <= trials <= MOST_TRIALS:
            raise WonderlandError(f"A study has between 1 and {MOST_TRIALS:,} trials, not {trials}.")
        folder = Path(folder)
        first = {"entry": "study", "format": FORMAT, "space": space.to_json(), "tuner": tuner_json(tuner),
                 "trials": trials, "seed": seed, "about": about or {}}  # fmt: skip
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise disk_trouble(error, folder) from error
        if not (folder / FILE).exists() and any(
            not path.name.startswith(".") for path in folder.iterdir() if path.name != "journal.lock"
        ):
            raise WonderlandError(f"{folder} is not empty and holds no study: choose another folder with --study.")
        journal = Journal(folder)
        with journal.locked():
            if not journal.entries:
                journal.append(first)
            elif journal.entries[0] != first:
                raise WonderlandError(
                    f"{folder} holds a study with other options. Choose another folder with --study, or go on with it: --resume {folder}"
                )
        return Study.open(folder)

    @staticmethod
    def open(folder: str | Path) -> "Study":
        """The study that was begun in a folder."""
        folder = Path(folder)
        if not (folder / FILE).is_file():
            raise WonderlandError(f"{folder} holds no study: there is no {FILE} in it.")
        entries = Journal(folder).read()
        if not entries:
            raise WonderlandError(f"The study in {folder} was not begun yet: start it again with the same options.")
        try:
            first = entries[0]
            if first["entry"] != "study" or first["format"] != FORMAT or not isinstance(first["about"], dict):
                raise ValueError("no study")
            tuner = make_tuner(first["tuner"]["name"], first["tuner"]["options"])
            space, trials, seed = parse_space(first["space"]), int(first["trials"]), int(first["seed"])
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise WonderlandError(
                f"The journal of {folder} does not begin with a study: it is damaged or not ours."
            ) from error
        study = Study(folder, space, tuner, tuner.limit(space, trials), seed, first["about"])
        study.refresh()
        return study

    def refresh(self) -> None:
        """Read what other workers have written."""
        self.journal.read()
        self._replay()

    def _replay(self) -> None:
        for entry in self.journal.entries[self._replayed :]:
            try:
                self._apply(entry)
            except (LookupError, TypeError, ValueError, AssertionError) as error:
                raise WonderlandError(
                    f"The journal of {self.folder} has an entry that cannot be: it is damaged or not ours."
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

    @contextmanager
    def worker(self) -> Iterator[str]:
        """Register a worker: its lock says that it is alive, until this block ends or the process dies."""
        name = f"{os.getpid()}-{time.time_ns():x}-{next(_counter)}"
        path = self.folder / "workers" / f"{name}.lock"
        try:
            path.parent.mkdir(exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise disk_trouble(error, path) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield name
        finally:
            path.unlink(missing_ok=True)
            os.close(handle)

    def is_alive(self, worker: str | None) -> bool:
        """Whether a worker still holds its lock."""
        if not re.fullmatch(r"[0-9a-f-]{1,80}", worker or ""):
            return False
        try:
            handle = os.open(self.folder / "workers" / f"{worker}.lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(handle)
        return False

    def claim(self, worker: str) -> Job | None:
        """The next job for a worker: one that a dead worker left, or what the tuner decides. None if there is none now."""
        with self.journal.locked():
            self._replay()
            self._refuse_hopeless()
            left = [trial for trial in self.trials if trial.running is not None and not self.is_alive(trial.worker)]
            if left:
                number, rung = left[0].number, left[0].running
                assert rung is not None
            else:
                chosen = self.tuner.next(self.trials, self.limit)
                if chosen is None:
                    return None
                number, rung = chosen
            if number == len(self.trials):
                settings = self.tuner.settings(self.space, self.trials, number, self.seed)
            else:
                settings = self.trials[number].settings
            self.journal.append({"entry": "run", "trial": number, "rung": rung, "worker": worker, "settings": settings})
            self._replay()
        return Job(number, rung, self.tuner.shares[rung], dict(self.trials[number].settings))

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
        self._close(worker, job, entry, result.seconds)

    def fail(self, worker: str, job: Job, text: str, seconds: float = 0.0) -> None:
        """Write down that a trial failed, and why."""
        self._close(worker, job, {"entry": "failed", "text": " ".join(text.split())[:500]}, seconds)

    def _close(self, worker: str, job: Job, entry: dict[str, Any], seconds: float) -> None:
        with self.journal.locked():
            self._replay()
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
        found = best_trial(self.trials)
        if found is None:
            failed = [trial for trial in self.trials if trial.failed is not None]
            why = f": {failed[-1].failed}" if failed else "."
            raise WonderlandError(f"No trial of the study in {self.folder} was measured{why}")
        return found
