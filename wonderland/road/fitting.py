"""fit: the whole road, from a source to a run that can be trusted. Each stage is done once and never half."""

import functools
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
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
from wonderland.data.source import Glimpse
from wonderland.kinds import KINDS
from wonderland.kinds.choose import checked as checked_options
from wonderland.kinds.choose import choose as choose_kind
from wonderland.kinds.choose import opened
from wonderland.road.facts import facts
from wonderland.road.plan import Plan, choose, config_of, measured, probe, rebuild, threads_for
from wonderland.road.request import Request
from wonderland.road.typed import FitOptions
from wonderland.ship import Run, load_model, read_config, save_model
from wonderland.ship.run import checked as checked_run
from wonderland.train import run as train
from wonderland.train.start import plain
from wonderland.train.state import random_state, set_random_state
from wonderland.understand import render


def fit(
    source: Any = None,
    target: str | None = None,
    *,
    out: str | Path | None = None,
    resume: str | Path | None = None,
    test: Any = None,
    model: Spec | str | nn.Module | None = None,
    overwrite: bool = False,
    progress: bool = False,
    tensorboard: bool = False,
    talk: Any = None,
    **options: Unpack[FitOptions],
) -> Run:
    """Learn from a source and leave a run: model, preprocessing, calibration, conformal sets, records and a report.

    Calling it again with the same source, options and folder continues a run that was cut, exactly.

    Args:
        source: a path, a bundled name, a frame, arrays: whatever `wonderland.kinds.open` takes.
        target: the column to learn; inferred when left out.
        out: the run folder; a free one under `runs/` by default.
        resume: a run folder to continue; its config says everything else.
        test: the share of examples kept for the test (0.2), or a test set of its own (a path or a frame).
        model: a spec, a name, a call as text ("Decoder(dim=64, mixer=Mamba())"), or your own module, which takes the encoded
            batch and gives what the task needs. What the data decide (classes, vocab, channels) is filled in.
        overwrite: begin again in a folder that holds another run.
        progress: show a live bar.
        tensorboard: also write TensorBoard files.
        talk: called with the open dataset, the plan, and whether the run is finished, before training.
        options: those of training (`wonderland.road.Training`) and of the kind of data (`wonderland fit --help KIND`).
    """
    asked: dict[str, Any] = dict(options)
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
        source = _source_again(origin, folder) if source is None else source
        if isinstance(request.training.test, str) and not _is_source(test):
            test = _source_again(origin.get("test", {}), folder)
    elif source is None:
        raise WonderlandError("Nothing to fit: name a file, a folder or a bundled set, or a run to resume.")
    else:
        if test is not None:
            asked["test"] = (str(test) if isinstance(test, str | Path) else "in memory") if _is_source(test) else test
        request = Request.of(target=target, **asked)
        named = request.kind
        folder = Path(out) if out is not None else free_folder(source)
    _check_folder(folder)
    with _tidy(folder), lock(folder), _world(request):
        glimpse, second = Glimpse(source), Glimpse(test) if _is_source(test) else None
        hints = dict(request.options) | ({} if second is None else {"test": test})
        kind = choose_kind(glimpse, named, hints, KINDS)
        dataset = opened(kind, glimpse, checked_options(kind, request.options, glimpse.name, KINDS), second)
        begun = (folder / "config.json").exists() and (resume is not None or not overwrite)
        kind.remember(dataset, folder, read_config(folder) if begun else None)
        plan, config = _settle(folder, kind, dataset, request, own, overwrite and resume is None)
        stages = Stages(folder, plan, config)
        if talk:
            talk(dataset, plan, stages.trained)
        torch.set_num_threads(config["threads"])
        stages.preprocessing()
        if not stages.trained:
            stages.train(progress, tensorboard)
        stages.trust()
        stages.report()
        return stages.run


def _check_folder(folder: Path) -> None:
    """A run goes into a folder of its own: one that is new, empty, or holds a run."""
    if (folder / "config.json").exists():
        read_config(folder)
    elif folder.is_dir() and any(not path.name.startswith(".") for path in folder.iterdir()):
        raise WonderlandError(f"{folder} is not empty and holds no run: choose another folder with --out.")


@contextmanager
def _tidy(folder: Path) -> Iterator[None]:
    """Leave no empty folder behind when a run cannot even begin."""
    existed = folder.exists()
    try:
        yield
    except BaseException:
        if not existed and folder.is_dir() and {path.name for path in folder.iterdir()} <= {".lock", ".tokens"}:
            shutil.rmtree(folder)
        raise


def _is_source(test: Any) -> bool:
    return test is not None and not isinstance(test, int | float)


def _settle(
    folder: Path, kind: Any, dataset: Any, request: Request, own: nn.Module | None, overwrite: bool
) -> tuple[Plan, dict[str, Any]]:
    """The plan of the run in this folder: as config.json says if there is one, else chosen now and written down."""
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
        return rebuild(config, dataset, folder, own), config
    plan = choose(kind, dataset, request, own)
    probe(plan, request)
    threads = request.training.threads or threads_for(plan)
    torch.set_num_threads(threads)
    measured(plan, request)
    config = config_of(plan, request, threads)
    _clear(folder)  # only now that the new run is known to be possible
    write_json(folder / "config.json", config)
    return plan, config


def _without_threads(request: Request) -> Request:
    return replace(request, training=replace(request.training, threads=None))


@dataclass
class Stages:
    """What is left to do of a run: each stage is done unless its output names the inputs it was made from."""

    folder: Path
    plan: Plan
    config: dict[str, Any]

    @functools.cached_property
    def inputs(self) -> dict[str, str]:
        """The digest of the config, which everything is made from."""
        return {"config.json": sha256(self.folder / "config.json")}

    @property
    def trained(self) -> bool:
        """Whether the weights of this config are there."""
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
        record = read_json(self.folder / "trust.json")
        plan = self.plan
        return checked_run(Run(self.folder, self.config, plan.task, plan.encoder, self.model, record))

    def train(self, progress: bool, tensorboard: bool) -> None:
        """The weights, from where an earlier process was cut."""
        plan, recipe = self.plan, self.plan.recipe
        learner = plan.learner()
        outcome = train(
            learner.step,
            plan.state(),
            plan.batches(),
            steps=recipe.steps,
            folder=self.folder,
            evaluate=plan.evaluate,
            evaluate_every=recipe.evaluate_every,
            watch=plan.watch,
            patience=recipe.patience,
            progress=progress,
            tensorboard=tensorboard,
            identity=self.inputs["config.json"],
        )
        model = plain(learner.model(outcome.state)).cpu()
        save_model(self.folder, model, {"inputs": self.inputs, "step": outcome.best_step or recipe.steps})

    def preprocessing(self) -> None:
        """The fitted encoder, unless it is there and whole; it is the same each time it is made."""
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
        """Calibration and measured coverage, unless trust.json was made from these very files."""
        inputs = {name: sha256(self.folder / name) for name in INPUTS}
        if self._recorded() != inputs:
            record = self.plan.trusted(self.model, self.config["level"])
            write_json(self.folder / "trust.json", {"inputs": inputs, **record})

    def _recorded(self) -> dict[str, str] | None:
        """The digests in trust.json, if it is there and whole; what is damaged is made again."""
        try:
            return check_inputs(self.folder, read_json(self.folder / "trust.json"))
        except WonderlandError:
            return None

    def report(self) -> None:
        """The page for people, unless it already shows this trust.json."""
        mark = f"<!-- made from {sha256(self.folder / 'trust.json')} -->"
        path = self.folder / "report.html"
        if path.exists() and path.read_text(errors="replace").endswith(mark + "\n"):
            return
        record = facts(self.run, self.plan)
        write_text(path, render(record, self.plan.task.sections(record)) + mark + "\n")


def _source_again(origin: dict[str, Any], folder: Path) -> Any:
    for key in ("path", "bundled"):
        if isinstance(origin.get(key), str):
            return origin[key]
    raise WonderlandError(
        f"The run in {folder} was fitted from data in memory: continue it from Python with wonderland.fit(data, resume={str(folder)!r})."
    )


def free_folder(source: Any) -> Path:
    """A folder under `runs/` that is not taken yet, named after the source."""
    name = Path(source).stem if isinstance(source, str | Path) else "run"
    for number in range(1, 10_000):
        folder = Path("runs") / (name if number == 1 else f"{name}-{number}")
        if not (folder / "config.json").exists():
            return folder
    raise WonderlandError(f"There are ten thousand runs called {name}: name a folder with --out.")


RUN_FILES = ("config.json", "model.safetensors", "preprocess.json", "preprocess.safetensors", "metrics.jsonl",
             "times.jsonl", "trust.json", "report.html")  # fmt: skip


def _clear(folder: Path) -> None:
    """Remove a run's own files, and nothing else that may lie in the folder."""
    for name in RUN_FILES:
        (folder / name).unlink(missing_ok=True)
    for name in ("checkpoint", "tensorboard"):  # tokens stay: they belong to the text, and are looked at before use
        shutil.rmtree(folder / name, ignore_errors=True)


@contextmanager
def _world(request: Request) -> Iterator[None]:
    """Seeds and threads of a run; the caller's are put back afterwards."""
    before, threads, seed = random_state(), torch.get_num_threads(), request.training.seed
    keep_freed_memory()
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - a user's module may draw from it
    torch.manual_seed(seed)
    try:
        yield
    finally:
        set_random_state(before)
        torch.set_num_threads(threads)
