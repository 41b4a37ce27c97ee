"""fit: from a source to a finished run. Each stage is skipped if its output exists and was made from the same inputs."""

import functools
import random
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch
from torch import nn

from wonderland.core import (
    INPUTS,
    Spec,
    WonderlandError,
    check_inputs,
    keep_freed_memory,
    load_tensors,
    lock,
    read_json,
    save_tensors,
    sha256,
    write_json,
    write_text,
)
from wonderland.core.damage import refuse_damaged
from wonderland.core.schema import require
from wonderland.data.reading import Reading
from wonderland.data.source import Glimpse
from wonderland.data.sql import is_url
from wonderland.kinds import KINDS
from wonderland.kinds.choose import choose as choose_kind
from wonderland.kinds.choose import make_options, open_as
from wonderland.road.facts import facts
from wonderland.road.leaderboard import FILE as LEADERBOARD
from wonderland.road.leaderboard import leaderboard
from wonderland.road.parts import check_memory
from wonderland.road.plan import Plan, make_config, make_plan, rebuild, resolve_measured, threads_for, try_model
from wonderland.road.request import Request
from wonderland.road.typed import FitOptions
from wonderland.ship import Run, load_model, read_config, save_model
from wonderland.ship.context import CONTEXT, is_current, reference_of, save_context
from wonderland.ship.run import check_run
from wonderland.ship.schema import TRUST
from wonderland.ship.store import check_model
from wonderland.train import Outcome
from wonderland.train import run as train
from wonderland.train.checkpoint import Checkpoints
from wonderland.train.progress import Watching
from wonderland.train.start import merge_adapters
from wonderland.train.state import random_state, set_random_state
from wonderland.understand import render


def fit(
    source: Any = None,
    target: Any = None,
    *,
    out: str | Path | None = None,
    resume: str | Path | None = None,
    test: Any = None,
    model: Spec | str | nn.Module | None = None,
    overwrite: bool = False,
    progress: bool = False,
    tensorboard: bool = False,
    on_start: Any = None,
    on_measured: Any = None,
    **options: Unpack[FitOptions],
) -> Run:
    """Fit a model to a source; the result is a run folder with model, preprocessing, calibration, conformal sets, records and a report.

    Calling it again with the same source, options and folder resumes an interrupted run exactly.

    Args:
        source: a path, a bundled name, a frame, arrays: whatever `wonderland.kinds.open` takes.
        target: the column to predict, inferred by default; or the targets themselves, for `fit(X, y)`.
        out: the run folder; a free one under `runs/` by default.
        resume: a run folder to continue; all options come from its config.
        test: the share of examples kept for the test (0.2), or a separate test set (a path or a frame).
        model: a spec, a name, a call as text ("Decoder(dim=64, mixer=Mamba())"), or your own module, which takes the encoded
            batch and returns what the task needs. Arguments that follow from the data (classes, vocab, channels) are filled in.
        overwrite: start again in a folder that holds another run.
        progress: show a live bar.
        tensorboard: also write TensorBoard files.
        on_measured: called with the run once it is measured, before its report is written.
        on_start: called before training with the dataset, the plan, and whether the model is already trained.
        options: those of training (`wonderland.road.Training`) and of the kind of data (`wonderland fit --help KIND`).
    """
    begun = resume if resume is not None else out
    if begun is not None and (Path(begun) / "config.json").exists() and not isinstance(model, nn.Module):
        guard = refuse_damaged(
            f"The run in {begun}", "it is damaged; start again in another folder, or with --overwrite"
        )
    else:
        guard = nullcontext()
    with guard:
        return _fit(
            source,
            target,
            out,
            resume,
            test,
            model,
            overwrite,
            progress,
            tensorboard,
            on_start,
            on_measured,
            dict(options),
        )


def _fit(
    source: Any,
    target: Any,
    out: str | Path | None,
    resume: str | Path | None,
    test: Any,
    model: Spec | str | nn.Module | None,
    overwrite: bool,
    progress: bool,
    tensorboard: bool,
    on_start: Any,
    on_measured: Any,
    asked: dict[str, Any],
) -> Run:
    recorded = False
    if target is not None and not isinstance(target, str) and source is not None and not isinstance(source, str | Path):
        source, target = (source, target), None
    own = model if isinstance(model, nn.Module) else None
    if model is not None and own is None:
        if not isinstance(model, str | Spec):
            raise WonderlandError(
                f"model must be a name, a spec or a torch.nn.Module, not {model!r}: give an instance, such as Net()."
            )
        asked["model"] = model
    if resume is not None:
        folder, config = Path(resume), read_config(Path(resume))
        request = Request.from_json(config.get("request"))
        if asked or target is not None or out is not None:
            raise WonderlandError("A resumed run keeps the options it began with: give --resume and the folder only.")
        origin, named = config["source"]["origin"], config["source"]["kind"]
        recorded = source is None
        source = recorded_source(origin, folder) if recorded else source
        if isinstance(request.training.test, str) and not is_source(test):
            test = recorded_source(origin.get("test", {}), folder)
    elif source is None:
        raise WonderlandError("Nothing to fit: name a file, a folder or a bundled set, or a run to resume.")
    else:
        if test is not None:
            asked["test"] = (str(test) if isinstance(test, str | Path) else "in memory") if is_source(test) else test
        request = Request.of(target=target, **asked)
        named = request.kind
        folder = Path(out) if out is not None else free_folder(source)
    _check_folder(folder)
    with _remove_if_empty(folder), lock(folder), seeded(request):
        kind, dataset = open_source(source, test, request, named, recorded=recorded)
        begun = (folder / "config.json").exists() and (resume is not None or not overwrite)
        kind.remember(dataset, folder, read_config(folder) if begun else None)
        plan, config = make_or_rebuild_plan(folder, kind, dataset, request, own, overwrite and resume is None)
        stages = Stages(folder, plan, config)
        if on_start:
            on_start(dataset, plan, stages.trained)
        torch.set_num_threads(config["threads"])
        stages.preprocessing()
        if not stages.trained:
            stages.train(progress, tensorboard)
        stages.trust()
        stages.context()
        if request.training.leaderboard == "all":
            leaderboard(folder, plan, stages.run)
        if on_measured:
            on_measured(stages.run)
        stages.report(progress)
        return stages.run


def open_source(source: Any, test: Any, request: Request, named: str | None, *, recorded: bool) -> tuple[Any, Any]:
    """The kind of a source and its dataset; `recorded` for a source that config.json names."""
    reading = Reading.of(request.options)
    glimpse = Glimpse(source, recorded=recorded, reading=reading)
    test_glimpse = Glimpse(test, reading=reading) if is_source(test) else None
    hints = dict(request.options) | ({} if test_glimpse is None else {"test": test})
    kind = choose_kind(glimpse, named, hints, KINDS)
    return kind, open_as(kind, glimpse, make_options(kind, request.options, glimpse.name, KINDS), test_glimpse)


def _check_folder(folder: Path) -> None:
    """Refuse a run folder that is neither new nor empty and holds no run."""
    if (folder / "config.json").exists():
        read_config(folder)
    elif folder.is_dir() and any(not path.name.startswith(".") for path in folder.iterdir()):
        raise WonderlandError(f"{folder} is not empty and holds no run: choose another folder with --out.")


@contextmanager
def _remove_if_empty(folder: Path) -> Iterator[None]:
    """Remove a new folder if the run fails before anything is written to it."""
    existed = folder.exists()
    try:
        yield
    except BaseException:
        if not existed and folder.is_dir() and {path.name for path in folder.iterdir()} <= {".lock", ".tokens"}:
            shutil.rmtree(folder)
        raise


def is_source(test: Any) -> bool:
    return test is not None and not isinstance(test, int | float)


def make_or_rebuild_plan(
    folder: Path, kind: Any, dataset: Any, request: Request, own: nn.Module | None, overwrite: bool
) -> tuple[Plan, dict[str, Any]]:
    """The plan of the run in this folder: rebuilt from config.json if there is one, else made now and written to it."""
    if (folder / "config.json").exists() and not overwrite:
        config = read_config(folder)
        begun = Request.from_json(config["request"])
        threads = request.training.threads
        if _without_threads(begun) != _without_threads(request) or threads not in (
            None, begun.training.threads, config["threads"]
        ):  # fmt: skip
            raise WonderlandError(
                f"{folder} holds a run with other options. Choose another folder with --out, or begin again with --overwrite."
            )
        torch.set_num_threads(config["threads"])
        plan = rebuild(config, dataset, folder, own)
        _check_model(plan, folder)
        return plan, config
    plan = make_plan(kind, dataset, request, own)
    try_model(plan, request)
    threads = request.training.threads or threads_for(plan)
    torch.set_num_threads(threads)
    resolve_measured(plan, request)
    config = make_config(plan, request, threads)
    _clear(folder)  # not before the new plan is known to work
    write_json(folder / "config.json", config)
    return plan, config


def _check_model(plan: Plan, folder: Path) -> None:
    """Refuse a recorded model that is not the one of the checkpoint, or too large to train, before memory is taken for it."""
    spec = plan.recipe.model
    if not isinstance(spec, Spec) or plan.dataset.start is not None:
        return
    stored = Checkpoints(folder / "checkpoint").shapes("model")
    if stored is not None:
        check_model(spec, stored[1], stored[0])
    elif not (folder / "model.safetensors").exists():
        check_memory(spec)


def _without_threads(request: Request) -> Request:
    return replace(request, training=replace(request.training, threads=None))


@dataclass
class Stages:
    """The stages of a run: each is skipped if its output names the digests of the current inputs."""

    folder: Path
    plan: Plan
    config: dict[str, Any]

    @functools.cached_property
    def inputs(self) -> dict[str, str]:
        """The digest of config.json, on which every stage depends."""
        return {"config.json": sha256(self.folder / "config.json")}

    @property
    def trained(self) -> bool:
        """Whether there are trained weights for this config."""
        path = self.folder / "model.safetensors"
        if not path.exists():
            return False
        try:
            return load_tensors(path)[1].get("inputs") == self.inputs
        except WonderlandError:
            return False

    @functools.cached_property
    def model(self) -> nn.Module:
        """The finished model, read once from its file."""
        plan = self.plan
        loaded = load_model(self.folder, plan.recipe.model if isinstance(plan.recipe.model, Spec) else None, plan.own)
        return loaded.to(plan.device)

    @functools.cached_property
    def run(self) -> Run:
        """The finished run."""
        record, plan = read_json(self.folder / "trust.json"), self.plan
        require(record, TRUST, self.folder / "trust.json")
        return check_run(Run(self.folder, self.config, plan.task, plan.encoder, self.model, record))

    def train(self, progress: bool, tensorboard: bool) -> None:
        """Train the model, resuming from a checkpoint if there is one."""
        outcome = self.train_to(self.plan.recipe.steps, progress, tensorboard)
        model = merge_adapters(self.plan.learner().model(outcome.state)).cpu()
        save_model(self.folder, model, {"inputs": self.inputs, "step": outcome.best_step or self.plan.recipe.steps})

    def train_to(self, steps: int, progress: bool = False, tensorboard: bool = False) -> Outcome:
        """Train up to a step of the whole training, and leave a checkpoint there; a later call goes on from it."""
        plan, recipe = self.plan, self.plan.recipe
        return train(
            plan.learner().step,
            plan.state(),
            plan.batches(),
            steps=steps,
            folder=self.folder,
            evaluate=plan.evaluate,
            evaluate_every=recipe.evaluate_every,
            watch=plan.watch,
            patience=recipe.patience,
            progress=progress,
            tensorboard=tensorboard,
            identity=self.inputs["config.json"],
        )

    def preprocessing(self) -> None:
        """Save the fitted encoder, unless the same one is already saved."""
        encoder = self.plan.encoder
        try:
            same = read_json(self.folder / "preprocess.json") == encoder.to_json()
            load_tensors(self.folder / "preprocess.safetensors")
        except WonderlandError:
            same = False
        if not same:
            save_tensors(self.folder / "preprocess.safetensors", encoder.tensors(), {})
            write_json(self.folder / "preprocess.json", encoder.to_json())

    def trust(self) -> None:
        """Calibrate and measure coverage, unless trust.json was made from the current files."""
        inputs = {name: sha256(self.folder / name) for name in INPUTS}
        if self._recorded() != inputs:
            record = self.plan.measure_trust(self.model, self.config["level"])
            write_json(self.folder / "trust.json", {"inputs": inputs, **record})

    def _recorded(self) -> dict[str, str] | None:
        """The input digests in trust.json; None if it is missing or damaged."""
        try:
            return check_inputs(self.folder, read_json(self.folder / "trust.json"))
        except WonderlandError:
            return None

    def context(self) -> None:
        """Keep a sample of calibration rows to compare new rows with, unless it was made from the current model."""
        if not is_current(self.folder):
            plan = self.plan
            view = plan.view(self.model, "calibration")
            save_context(self.folder, reference_of(plan.task, plan.encoder, self.run.trust, view))

    def report(self, progress: bool = False) -> None:
        """Write report.html, unless it was made from the current trust.json."""
        made_from = [
            sha256(self.folder / name) for name in ("trust.json", LEADERBOARD) if (self.folder / name).exists()
        ]
        mark = f"<!-- made from {' '.join(made_from)} -->"
        path = self.folder / "report.html"
        if path.exists() and path.read_text(errors="replace").endswith(mark + "\n"):
            return
        self.plan.watching = Watching() if progress else None
        record = facts(self.run, self.plan)
        write_text(path, render(record, self.plan.task.sections(record)) + mark + "\n")


def recorded_source(origin: dict[str, Any], folder: Path) -> Any:
    for key in ("path", "bundled"):
        if isinstance(origin.get(key), str):
            return origin[key]
    url = origin.get("url")
    if isinstance(url, str) and url.startswith("sqlite://"):
        return url
    if isinstance(url, str):  # no password is recorded
        raise WonderlandError(
            f"The run in {folder} was fitted from {url}: give the URL again, with --resume {shlex.quote(str(folder))}."
        )
    raise WonderlandError(
        f"The run in {folder} was fitted from data in memory: continue it from Python with wonderland.fit(data, resume={str(folder)!r})."
    )


def free_folder(source: Any) -> Path:
    """A folder under `runs/` that is not taken yet, named after the source."""
    name = Path(source).stem if isinstance(source, str | Path) and not is_url(source) else "run"
    for number in range(1, 10_000):
        folder = Path("runs") / (name if number == 1 else f"{name}-{number}")
        if not (folder / "config.json").exists():
            return folder
    raise WonderlandError(f"There are ten thousand runs called {name}: name a folder with --out.")


RUN_FILES = ("config.json", "model.safetensors", "preprocess.json", "preprocess.safetensors", "metrics.jsonl",
             "times.jsonl", "trust.json", LEADERBOARD, CONTEXT, "report.html")  # fmt: skip


def _clear(folder: Path) -> None:
    """Remove the files of a run, and nothing else in the folder."""
    for name in RUN_FILES:
        (folder / name).unlink(missing_ok=True)
    for name in ("checkpoint", "tensorboard"):  # token files stay: they are checked before they are reused
        shutil.rmtree(folder / name, ignore_errors=True)


@contextmanager
def seeded(request: Request) -> Iterator[None]:
    """Set the seeds for a run; random states and threads of the caller are restored afterwards."""
    rng, threads, seed = random_state(), torch.get_num_threads(), request.training.seed
    keep_freed_memory()
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - a user's module may draw from it
    torch.manual_seed(seed)
    try:
        yield
    finally:
        set_random_state(rng)
        torch.set_num_threads(threads)
