"""search: a study of runs with changed recipes; the winner, chosen by the validation part, becomes a run like any other."""

import json
import math
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from wonderland.core import Spec, WonderlandError, lock, write_text
from wonderland.kinds.kind import Kind
from wonderland.road.fitting import fit, is_source, make_or_rebuild_plan, open_source, recorded_source, seeded
from wonderland.road.parts import is_closed_form
from wonderland.road.plan import Plan, make_plan, resolve_measured
from wonderland.road.request import Request
from wonderland.road.settings import NAMED
from wonderland.road.stages import Stages
from wonderland.search import Job, Result, Space, Study, Trial, Tuner, best_trial, make_tuner, read_space, render, work
from wonderland.search.study import FILE
from wonderland.ship import Run, load, read_config
from wonderland.train import seconds

TRIALS, WINNER, REPORT = "trials", "winner", "report.html"


@dataclass(frozen=True)
class Searched:
    """A finished search: its study, the best trial, and the run of that trial."""

    study: Study
    best: Trial
    run: Run


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
    test: Any = None,
    progress: bool = False,
    told: Callable[[Study], Any] | None = None,
    on_study: Callable[[Study], Any] | None = None,
    on_measured: Any = None,
    **options: Any,
) -> Searched:
    """Search over models and settings of the recipe; calling it again with the same arguments and folder goes on with the study.

    Args:
        source, target, test, options: as in `wonderland.fit`; they are the same in all trials, the seed and with it the split too.
        study: the folder of the study; a free one under `studies/` by default.
        resume: the folder of a study to go on with; everything else comes from its journal.
        trials: how many points of the space are tried.
        tuner: "random", "grid", "halving", "asha", "bo", or a `wonderland.search.Tuner`.
        space: a `Space`, its short form, or the path of a space file; by default that of the kind of data.
        budget: time after which no new work is begun, such as "30m".
        progress: show a bar while the winner is finished.
        told: called with the study after each change.
        on_study: called with the study before the first trial.
        on_measured: as in `wonderland.fit`, for the winner.
    """
    begun = begin(source, target, study, resume, trials, tuner, space, test, options)
    if on_study:
        on_study(begun.study)
    deadline = None if budget is None else time.monotonic() + float(seconds(budget))
    work(begun.study, begun, deadline=deadline, told=told)
    return begun.finish(progress, on_measured)


def join(folder: str | Path, *, budget: float | str | None = None, source: Any = None, test: Any = None) -> None:
    """Run trials of a study that another process began, as one more worker, until none is left."""
    begun = _resumed(Path(folder), source, test)
    work(begun.study, begun, deadline=None if budget is None else time.monotonic() + float(seconds(budget)))


@dataclass(frozen=True)
class Begun:
    """A study of runs on a dataset. Called with a job it brings a trial to the end of its rung: an objective for `work`."""

    study: Study
    kind: Kind
    dataset: Any
    request: Request
    source: Any  # None if the journal's record leads to it

    def folder(self, trial: int) -> Path:
        """The run folder of a trial."""
        return self.study.folder / TRIALS / f"{trial:04d}"

    def __call__(self, job: Job) -> Result:
        began, folder = time.monotonic(), self.folder(job.trial)
        request = trial_request(self.request, job.settings)
        with lock(folder), seeded(request):
            there = (folder / "config.json").exists()
            self.kind.remember(self.dataset, folder, read_config(folder) if there else None)
            plan, config = make_or_rebuild_plan(folder, self.kind, self.dataset, request, None, False)
            torch.set_num_threads(config["threads"])
            stages = Stages(folder, plan, config)
            stages.preprocessing()
            outcome = stages.train_to(rung_steps(plan, job.share))
        value = math.nan if outcome.best_value is None else outcome.best_value
        curve = [(row["step"], row[plan.watch]) for row in outcome.rows if plan.watch in row]
        self._free(job)
        return Result(value, outcome.rows[-1]["step"], time.monotonic() - began, curve)

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

    def finish(self, progress: bool = False, on_measured: Any = None) -> Searched:
        """Make the best trial a run with calibration and report, copy it to `winner`, and write the report of the study."""
        study = self.study
        study.refresh()
        best = study.best
        folder = self.folder(best.number)
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


def begin(
    source: Any,
    target: Any,
    folder: str | Path | None,
    resume: str | Path | None,
    trials: int,
    tuner: str | Tuner,
    space: Any,
    test: Any,
    options: dict[str, Any],
) -> Begun:
    """Open the data and the study; a new study is begun, and its space tried, before anything is trained."""
    if target is not None and not isinstance(target, str) and source is not None:
        source, target = (source, target), None
    if resume is not None:
        return _resumed(Path(resume), source, test)
    if source is None:
        raise WonderlandError("Nothing to search on: name a file, a folder or a bundled set, or a study to resume.")
    if options.get("budget") is not None or options.get("lr") == "auto":
        raise WonderlandError("Trials have a length and a rate that need no measurement: leave out budget and lr auto.")
    if test is not None:
        options["test"] = (str(test) if isinstance(test, str | Path) else "in memory") if is_source(test) else test
    request = Request.of(target=target, **options)
    with seeded(request):
        kind, dataset = open_source(source, test, request, request.kind, recorded=False)
        plan = make_plan(kind, dataset, request, None)
        resolve_measured(plan, request)
    found = (
        default_space(plan)
        if space is None
        else read_space(space)
        if isinstance(space, str | Path)
        else Space.of(space)
    )
    made = make_tuner(tuner) if isinstance(tuner, str) else tuner
    with seeded(request):  # a misspelt setting is told at once
        tried = trial_request(request, made.settings(found, [], 0, request.training.seed))
        make_plan(kind, dataset, tried, None)
    about = {
        "request": request.to_json(),
        "kind": kind.name,
        "origin": dataset.origin,
        "fingerprint": dataset.fingerprint,
    }
    about = json.loads(json.dumps(about, default=str))
    path = Path(folder) if folder is not None else free_folder(dataset.name)
    study = Study.create(path, found, made, trials=trials, seed=request.training.seed, about=about)
    return Begun(study, kind, dataset, request, source)


def _resumed(folder: Path, source: Any, test: Any) -> Begun:
    study = Study.open(folder)
    try:
        about = study.about
        request, named, origin, print_ = (
            Request.from_json(about["request"]),
            about["kind"],
            about["origin"],
            about["fingerprint"],
        )
    except (LookupError, TypeError) as error:
        raise WonderlandError(
            f"The study in {folder} is not of runs on data: go on with it where it was begun."
        ) from error
    recorded = source is None
    data = recorded_source(origin, folder) if recorded else source
    if isinstance(request.training.test, str) and not is_source(test):
        test = recorded_source(origin.get("test", {}), folder)
    with seeded(request):
        kind, dataset = open_source(data, test, request, named, recorded=recorded)
    if dataset.fingerprint != print_:
        raise WonderlandError(
            f"The data of {folder} changed since the study began, so it cannot go on. Restore the data, or start another study."
        )
    return Begun(study, kind, dataset, request, None if recorded else source)


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
