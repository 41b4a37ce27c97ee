"""search: a study of runs with changed recipes; the winner, chosen by the validation part, becomes a run like any other."""

import json
import math
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from wonderland.core import Spec, WonderlandError, lock, nearest, need, write_text
from wonderland.data.sql import recorded_url
from wonderland.kinds.kind import Kind
from wonderland.road.fitting import fit, is_source, make_or_rebuild_plan, open_source, recorded_source, seeded
from wonderland.road.parts import is_closed_form
from wonderland.road.plan import Plan, make_plan, resolve_measured
from wonderland.road.request import Request
from wonderland.road.settings import NAMED
from wonderland.road.stages import Stages
from wonderland.road.weights_store import WeightsStore, newest_step
from wonderland.search import Job, Result, Space, Study, Trial, Tuner, best_trial, make_tuner, read_space, render, work
from wonderland.search.database import is_database, open_database
from wonderland.search.optuna_mirror import mirror
from wonderland.search.study import FILE, AnyJournal
from wonderland.ship import Run, load, read_config
from wonderland.train import seconds

TRIALS, WINNER, REPORT = "trials", "winner", "report.html"
COSTS = ("parameters", "seconds")  # second objectives


@dataclass(frozen=True)
class Searched:
    """A finished search: its study, the best trial, and the run of that trial; None where its weights are on another machine."""

    study: Study
    best: Trial
    run: Run | None


def search(
    source: Any = None,
    target: Any = None,
    *,
    study: str | Path | None = None,
    resume: str | Path | None = None,
    trials: int = 20,
    tuner: str | Tuner = "random",
    space: Space | Mapping[str, Any] | str | Path | None = None,
    budget: float | str | None = None,
    name: str | None = None,
    shared: str | Path | None = None,
    warm_start: str | Path | None = None,
    against: str | None = None,
    optuna: str | None = None,
    test: Any = None,
    progress: bool = False,
    on_progress: Callable[[Study], Any] | None = None,
    on_study: Callable[[Study], Any] | None = None,
    on_measured: Any = None,
    **options: Any,
) -> Searched:
    """Search over models and settings of the recipe; calling it again with the same arguments and folder goes on with the study.

    Args:
        source, target, test, options: as in `wonderland.fit`; they are the same in all trials, the seed and with it the split too.
        study: the folder of the study, a free one under `studies/` by default; or a database that several machines share:
            "postgresql://user@host/database", "sqlite:///file.db". Weights then lie in a folder under `studies/` of each machine.
        resume: the folder or the database of a study to go on with; everything else comes from its journal.
        trials: how many points of the space are tried.
        tuner: "random", "grid", "halving", "asha", "bo", or a `wonderland.search.Tuner`.
        space: a `Space`, its short form, or the path of a space file; by default that of the kind of data.
        budget: time after which no new work is begun, such as "30m".
        name: of a study in a database; by default that of the data.
        shared: a folder that all machines see, for the weights of paused trials; without it a trial goes on where its weights are.
        warm_start: a study whose best settings are tried first, where they lie in the space.
        against: a second objective: "parameters" or "seconds". The report shows which trials no other beats in both, and `bo` looks for them.
        optuna: a storage of Optuna, such as "sqlite:///optuna.db", where every trial is written once, for its dashboard and samplers.
        progress: show a bar while the winner is finished.
        on_progress: called with the study after each change.
        on_study: called with the study before the first trial.
        on_measured: as in `wonderland.fit`, for the winner.
    """
    asked = Asked(study, resume, trials, tuner, space, name, shared, warm_start, against, optuna)
    begun = begin(source, target, asked, test, options)
    if on_study:
        on_study(begun.study)
    deadline = None if budget is None else time.monotonic() + float(seconds(budget))
    work(begun.study, begun, deadline=deadline, on_progress=on_progress)
    return begun.finish(progress, on_measured)


def join(
    study: str | Path,
    *,
    budget: float | str | None = None,
    source: Any = None,
    test: Any = None,
    name: str | None = None,
    shared: str | Path | None = None,
) -> None:
    """Run trials of a study that another process began, as one more worker, until none is left."""
    begun = _resumed(Asked(resume=study, name=name, shared=shared), source, test)
    work(begun.study, begun, deadline=None if budget is None else time.monotonic() + float(seconds(budget)))


@dataclass(frozen=True)
class Asked:
    """What was asked of a study: the arguments of `search` that are not those of a fit."""

    study: str | Path | None = None
    resume: str | Path | None = None
    trials: int = 20
    tuner: str | Tuner = "random"
    space: Any = None
    name: str | None = None
    shared: str | Path | None = None
    warm_start: str | Path | None = None
    against: str | None = None
    optuna: str | None = None

    def __post_init__(self):
        database = is_database(self.study) or is_database(self.resume)
        if not database and (self.name is not None or self.shared is not None):
            raise WonderlandError(
                "A name and a shared folder belong to a study in a database: give it as --study postgresql://... or sqlite:///FILE."
            )
        if self.optuna is not None:
            need("optuna", extra="search", why="to write trials for it")  # told before anything is trained
        if self.against not in (None, *COSTS):
            raise WonderlandError(
                f"There is no second objective {self.against!r}.{nearest(str(self.against), COSTS)} Known are {', '.join(COSTS)}."
            )


@dataclass(frozen=True)
class Begun:
    """A study of runs on a dataset. Called with a job it brings a trial to the end of its rung: an objective for `work`."""

    study: Study
    kind: Kind
    dataset: Any
    request: Request
    source: Any  # None if the journal's record leads to it
    store: WeightsStore | None = None
    optuna: str | None = None

    def folder(self, trial: int) -> Path:
        """The run folder of a trial."""
        return self.study.folder / TRIALS / f"{trial:04d}"

    def __call__(self, job: Job) -> Result:
        began, folder = time.monotonic(), self.folder(job.trial)
        request = trial_request(self.request, job.settings)
        with _lock_of(folder), seeded(request):
            if self.store and job.weights and newest_step(folder) < job.steps:
                self.store.fetch(job.weights, folder)
            there = (folder / "config.json").exists()
            self.kind.remember(self.dataset, folder, read_config(folder) if there else None)
            plan, config = make_or_rebuild_plan(folder, self.kind, self.dataset, request, None, False)
            torch.set_num_threads(config["threads"])
            stages = Stages(folder, plan, config)
            stages.preprocessing()
            outcome = stages.train_to(rung_steps(plan, job.share))
            weights = self.store.publish(folder, job.trial, job.rung) if self.store else None
        value = math.nan if outcome.best_value is None else outcome.best_value
        curve = [(row["step"], row[plan.watch]) for row in outcome.rows if plan.watch in row]
        self._free(job)
        spent = time.monotonic() - began
        return Result(value, outcome.rows[-1]["step"], spent, curve, weights, self._cost(plan, job, spent))

    def _cost(self, plan: Plan, job: Job, spent: float) -> float | None:
        """The second objective of a trial."""
        against = self.study.about.get("against")
        if against is None:
            return None
        if against == "parameters":
            with torch.device("meta"):
                return float(sum(p.numel() for p in plan.model().parameters()))
        return self.study.trials[job.trial].seconds + spent

    def _free(self, job: Job) -> None:
        """Remove the checkpoints of whole trainings that are not the best: nothing goes on from them."""
        shares = self.study.tuner.shares
        best = best_trial(self.study.trials)
        for trial in self.study.trials:
            if (
                trial.rung == len(shares) - 1
                and trial is not best
                and trial.number != job.trial
                and trial.running is None
            ):
                shutil.rmtree(self.folder(trial.number) / "checkpoint", ignore_errors=True)
        if self.store:
            self.store.sweep(self.study.trials, [best.number] if best else [])

    def _have(self, best: Trial) -> bool:
        """Bring the weights of the winner here, if they can be had: they may be on another machine, or lost with it."""
        study, folder = self.study, self.folder(best.number)
        if study.place is None or best.place == study.place or newest_step(folder) >= best.steps[-1]:
            return True
        if best.weights is None and study.journal.is_inhabited(best.place):
            return False
        self(Job(best.number, best.rung, study.tuner.shares[best.rung], best.settings, best.weights, best.steps[-1]))
        return True

    def finish(self, progress: bool = False, on_measured: Any = None) -> Searched:
        """Make the best trial a run with calibration and report, copy it to `winner`, and write the report of the study."""
        study = self.study
        study.refresh()
        best = study.best
        folder = self.folder(best.number)
        if self.optuna is not None:
            mirror(study, self.optuna, study_name=self.dataset.name)
        if not self._have(best):
            facts = {"title": self.dataset.name, "kind": self.kind.name, "watch": "validation loss"}
            write_text(study.folder / REPORT, render(study, facts))
            return Searched(study, best, None)
        run = fit(self.source, resume=folder, progress=progress, on_measured=on_measured)
        with lock(study.folder):
            target = study.folder / WINNER
            same = target.is_dir() and (target / "config.json").read_bytes() == (folder / "config.json").read_bytes()
            if not same:
                part = study.folder / f".{WINNER}.part"
                shutil.rmtree(part, ignore_errors=True)
                shutil.copytree(folder, part, ignore=shutil.ignore_patterns("checkpoint", ".lock"))
                shutil.rmtree(target, ignore_errors=True)
                part.rename(target)
            if study.finished:
                for trial in study.trials:
                    if trial.number != best.number:
                        shutil.rmtree(self.folder(trial.number) / "checkpoint", ignore_errors=True)
            facts = {
                "title": self.dataset.name,
                "kind": self.kind.name,
                "watch": "validation loss",
                "metrics": run.metrics,
                "disk": disk_use(study.folder),
            }
            write_text(study.folder / REPORT, render(study, facts))
        return Searched(study, best, load(target))


def begin(source: Any, target: Any, asked: Asked, test: Any, options: dict[str, Any]) -> Begun:
    """Open the data and the study; a new study is begun, and its space tried, before anything is trained."""
    if target is not None and not isinstance(target, str) and source is not None:
        source, target = (source, target), None
    if asked.resume is not None:
        return _resumed(asked, source, test)
    if source is None:
        raise WonderlandError("Nothing to search on: name a file, a folder or a bundled set, or a study to resume.")
    if options.get("budget") is not None or options.get("lr") == "auto":
        raise WonderlandError("Trials have a length and a rate that need no measurement: leave out budget and lr auto.")
    if test is not None:
        options["test"] = (str(test) if isinstance(test, str | Path) else "in memory") if is_source(test) else test
    request = Request.of(target=target, **options)
    chosen_tuner = make_tuner(asked.tuner) if isinstance(asked.tuner, str) else asked.tuner
    with tempfile.TemporaryDirectory() as scratch, seeded(request):
        kind, dataset = open_source(source, test, request, request.kind, recorded=False)
        kind.remember(dataset, Path(scratch), None)  # encoded text of this first look; trials keep their own
        plan = make_plan(kind, dataset, request, None)
        resolve_measured(plan, request)
        space = _space_of(asked.space, plan)
        tried = trial_request(request, chosen_tuner.settings(space, [], 0, request.training.seed))
        make_plan(kind, dataset, tried, None)  # a misspelt setting is told at once
    about = {
        "request": request.to_json(),
        "kind": kind.name,
        "origin": dataset.origin,
        "fingerprint": dataset.fingerprint,
    }
    if asked.against is not None:
        about["against"] = asked.against
    about = json.loads(json.dumps(about, default=str))
    first = [] if asked.warm_start is None else best_settings(Study.open(asked.warm_start), space)
    journal, path = _journal_of(asked.study, asked.name or dataset.name), None
    if journal is None:
        path = Path(asked.study) if asked.study is not None else free_folder(dataset.name)
    study = Study.create(
        path,
        space,
        chosen_tuner,
        trials=asked.trials,
        seed=request.training.seed,
        about=about,
        journal=journal,
        first=first,
    )
    return _begun(study, kind, dataset, request, source, asked)


def _space_of(space: Any, plan: Plan) -> Space:
    if space is None:
        return default_space(plan)
    return read_space(space) if isinstance(space, str | Path) else Space.of(space)


def _begun(study: Study, kind: Kind, dataset: Any, request: Request, source: Any, asked: Asked) -> Begun:
    store = None if asked.shared is None else WeightsStore.of(asked.shared, study)
    return Begun(study, kind, dataset, request, source, store, asked.optuna)


def _journal_of(study: Any, name: str | None) -> AnyJournal | None:
    """The journal in a database; None for a folder. Without a name, that of the only study there."""
    if not is_database(study):
        return None
    if name is None:
        names = open_database(study, "any").names()
        if len(names) != 1:
            shown = ", ".join(names[:20]) if names else "none"
            raise WonderlandError(f"Name the study with --name: in {recorded_url(study)} there are {shown}.")
        name = names[0]
    return open_database(study, name)


def best_settings(earlier: Study, space: Space, most: int = 5) -> list[dict[str, Any]]:
    """The settings of the best trials of an earlier study that lie in a space, the best first."""
    order = sorted((t for t in earlier.trials if math.isfinite(t.score)), key=lambda t: (-t.rung, t.score, t.number))
    return [settings for trial in order if (settings := space.narrowed(trial.settings)) is not None][:most]


def _resumed(asked: Asked, source: Any, test: Any) -> Begun:
    named = asked.resume
    assert named is not None, "a study to go on with"
    journal = _journal_of(named, asked.name)
    study = Study.open(None if journal else Path(named), journal)
    try:
        about = study.about
        request, kind_name, origin, print_ = (
            Request.from_json(about["request"]),
            about["kind"],
            about["origin"],
            about["fingerprint"],
        )
    except (LookupError, TypeError) as error:
        raise WonderlandError(
            f"The study in {study.journal.about} is not of runs on data: go on with it where it was begun."
        ) from error
    recorded = source is None
    data = recorded_source(origin, study.folder) if recorded else source
    if isinstance(request.training.test, str) and not is_source(test):
        test = recorded_source(origin.get("test", {}), study.folder)
    with seeded(request):
        kind, dataset = open_source(data, test, request, kind_name, recorded=recorded)
    if dataset.fingerprint != print_:
        raise WonderlandError(
            f"The data of {study.journal.about} changed since the study began, so it cannot go on. Restore the data, or start another study."
        )
    return _begun(study, kind, dataset, request, None if recorded else source, asked)


@contextmanager
def _lock_of(folder: Path) -> Iterator[None]:
    """Lock the folder of a trial; wait while a worker that lost its place in the study still writes there."""
    while True:
        try:
            with lock(folder):
                yield
            return
        except WonderlandError as error:
            if not isinstance(error.__cause__, BlockingIOError):
                raise
        time.sleep(1)


def default_space(plan: Plan) -> Space:
    """The space that the kind of data brings for the recipe of a plan."""
    if is_closed_form(plan.recipe.model):
        name = plan.recipe.model.name if isinstance(plan.recipe.model, Spec) else plan.recipe.model
        raise WonderlandError(
            f"{name} is fitted in one step and has no settings of its own to search: name some with --space."
        )
    return Space.of(plan.kind.space(plan.recipe))


def trial_request(request: Request, settings: Mapping[str, Any]) -> Request:
    """The request of a trial: models, optimizers and schedules replace those of the search, other settings are set in the recipe."""
    named = {name: str(value) for name, value in settings.items() if name in NAMED}
    texts = [f"{path}={_text(value)}" for path, value in settings.items() if path not in NAMED]
    set_before = [text for text in request.training.settings if text.partition("=")[0].strip() not in settings]
    return replace(request, training=replace(request.training, **named, settings=(*set_before, *texts)))


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value.endswith(")") else json.dumps(value)


def rung_steps(plan: Plan, share: float) -> int:
    """The step at which a rung ends: the evaluation nearest to its share, so that a pause changes nothing in the training.

    Rungs of one trial may coincide where a training has few evaluations.
    """
    steps, every = plan.recipe.steps, plan.recipe.evaluate_every
    return steps if share >= 1 else min(steps, max(1, round(share * steps / every)) * every)


def free_folder(name: str) -> Path:
    """A folder under `studies/` that is not taken yet, named after the data."""
    stem = Path(name).stem or "study"
    for number in range(1, 10_000):
        folder = Path("studies") / (stem if number == 1 else f"{stem}-{number}")
        if not (folder / FILE).exists():
            return folder
    raise WonderlandError(f"There are ten thousand studies called {stem}: name a folder with --study.")


def disk_use(folder: Path) -> int:
    """Bytes of all files of a study."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
