"""fit: from a source to a finished run. Each stage is skipped if its output exists and was made from the same inputs."""

import random
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch
from torch import nn

from wonderland.core import (
    Spec,
    WonderlandError,
    keep_freed_memory,
    lock,
    write_json,
)
from wonderland.core.damage import refuse_damaged
from wonderland.data.reading import Reading
from wonderland.data.source import Glimpse
from wonderland.data.sql import is_url
from wonderland.kinds import KINDS
from wonderland.kinds.choose import choose as choose_kind
from wonderland.kinds.choose import make_options, open_as
from wonderland.road.leaderboard import FILE as LEADERBOARD
from wonderland.road.leaderboard import leaderboard
from wonderland.road.parts import check_memory
from wonderland.road.plan import Plan, make_config, make_plan, rebuild, resolve_measured, threads_for, try_model
from wonderland.road.request import Request
from wonderland.road.stages import Stages
from wonderland.road.typed import FitOptions
from wonderland.ship import Run, load, read_config
from wonderland.ship.context import CONTEXT
from wonderland.ship.posterior import POSTERIOR
from wonderland.ship.store import check_model
from wonderland.train.checkpoint import Checkpoints
from wonderland.train.parallel import Group, alone, begun_again, joined
from wonderland.train.state import random_state, set_random_state


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
    shard: bool = False,
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
        shard: in several processes, divide the weights among them. Processes are started by `wonderland fit --processes` or
            torchrun; the first one writes the folder, which all of them have to see.
        options: those of training (`wonderland.road.Training`) and of the kind of data (`wonderland fit --help KIND`).
    """
    begun = resume if resume is not None else out
    if begun is not None and (Path(begun) / "config.json").exists() and not isinstance(model, nn.Module):
        guard = refuse_damaged(
            f"The run in {begun}", "it is damaged; start again in another folder, or with --overwrite"
        )
    else:
        guard = nullcontext()
    with guard, joined() as group:
        return _fit(
            group,
            shard and group.count > 1,
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
    group: Group,
    shard: bool,
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
    folder = Path(group.tell(str(folder)))
    if not group.first:
        return _follow(group, shard, folder, source, test, own, request, named, recorded)
    overwrite = overwrite and not begun_again()
    _check_folder(folder)
    with _remove_if_empty(folder), lock(folder), seeded(request):
        kind, dataset = open_source(source, test, request, named, recorded=recorded)
        begun = (folder / "config.json").exists() and (resume is not None or not overwrite)
        kind.remember(dataset, folder, read_config(folder) if begun else None)
        with alone():
            plan, config = make_or_rebuild_plan(
                folder, kind, dataset, request, own, overwrite and resume is None, group.nearby
            )
        plan.shard = shard
        stages = Stages(folder, plan, config)
        if on_start:
            on_start(dataset, plan, stages.trained)
        torch.set_num_threads(config["threads"])
        stages.preprocessing()
        if not group.tell(stages.trained):  # the other processes begin here
            stages.train(progress, tensorboard)
        stages.trust()
        stages.posterior()
        stages.context()
        if request.training.leaderboard == "all":
            leaderboard(folder, plan, stages.run)
        if on_measured:
            on_measured(stages.run)
        stages.report(progress)
        group.wait()
        return stages.run


def _follow(
    group: Group,
    shard: bool,
    folder: Path,
    source: Any,
    test: Any,
    own: nn.Module | None,
    request: Request,
    named: str | None,
    recorded: bool,
) -> Run:
    """The part of a process that is not the first: train with the others, from the config that the first one wrote."""
    trained = group.tell(None)
    if not trained:
        config = read_config(folder)
        with seeded(request):
            kind, dataset = open_source(source, test, request, named, recorded=recorded)
            kind.remember(dataset, folder, config)
            torch.set_num_threads(config["threads"])
            plan = rebuild(config, dataset, folder, own)
            plan.shard = shard
            Stages(folder, plan, config).train(False, False)
    group.wait()
    return load(folder)


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
    folder: Path,
    kind: Any,
    dataset: Any,
    request: Request,
    own: nn.Module | None,
    overwrite: bool,
    processes: int = 1,
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
    threads = request.training.threads or threads_for(plan, processes)
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
             "times.jsonl", "trust.json", LEADERBOARD, CONTEXT, POSTERIOR,
             "report.html")  # fmt: skip


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
