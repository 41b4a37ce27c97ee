"""fit: the whole road, from a source to a run that can be trusted. Each stage is done once and never half."""

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from wonderland import data
from wonderland.core import (
    INPUTS,
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
from wonderland.data import Dataset
from wonderland.kinds.corpus.corpus import Corpus
from wonderland.kinds.pairs.pairs import Pairs
from wonderland.road.facts import facts
from wonderland.kinds.corpus.report import language_facts
from wonderland.road.plan import choose, config_of, final, measured, probe, rebuild, threads_for
from wonderland.road.request import Request
from wonderland.train.start import plain
from wonderland.kinds.pairs.report import translation_facts
from wonderland.ship import Run, load, load_model, read_config, save_model
from wonderland.train import run as train
from wonderland.train.state import random_state, set_random_state
from wonderland.understand import render

TOKENS = ".tokens"


def fit(
    source: Any = None,
    target: str | None = None,
    *,
    out: str | Path | None = None,
    resume: str | Path | None = None,
    test: Any = 0.2,
    model: nn.Module | None = None,
    overwrite: bool = False,
    progress: bool = False,
    tensorboard: bool = False,
    talk: Any = None,
    **options: Any,
) -> Run:
    """Learn from a source and leave a run: model, preprocessing, calibration, conformal sets, records and a report.

    Calling it again with the same source, options and folder continues a run that was cut, exactly.

    Args:
        source: a path, a bundled name, a frame, arrays: whatever `wonderland.kinds.open` takes.
        target: the column to learn; inferred when left out.
        out: the run folder; a free one under `runs/` by default.
        resume: a run folder to continue; its config says everything else.
        test: the share of rows kept for the test, or a test set of its own (a path or a frame).
        model: your own module in place of the recipe's. It takes the encoded batch and gives (b, outputs).
        overwrite: begin again in a folder that holds another run.
        progress: show a live bar.
        tensorboard: also write TensorBoard files.
        talk: called with the open dataset and the plan before training, to show them.
        options: epochs, steps or budget ("60s"); seed, level, task, group, time, keep, drop, strict, lr (a number
            or "auto"), weight_decay, batch_size, clip, accumulate, precision, patience, workers, threads, size; and for
            text: kind ("corpus", "text", "pairs", "table"), lines, column, tokens, vocab, tokenizer (a tokenizer.json),
            context; start (the folder of a transformers checkpoint to go on from) and method ("full", "head", "lora", "ia3", "bias").
    """
    if resume is not None:
        folder = Path(resume)
        config = read_config(folder)
        request = Request.from_json(config.get("request"))
        if options or target is not None or out is not None:
            raise WonderlandError("A resumed run keeps the options it began with: give --resume and the folder only.")
        source = _source_again(config["source"]["origin"], folder) if source is None else source
        if isinstance(request.test, str) and not _is_source(test):
            test = _source_again(config["source"]["origin"].get("test", {}), folder)
    elif source is None:
        raise WonderlandError("Nothing to fit: name a file, a folder or a bundled set, or a run to resume.")
    else:
        share = (str(test) if isinstance(test, str | Path) else "in memory") if _is_source(test) else test
        request = Request.of(target=target, test=share, **options)
        folder = Path(out) if out is not None else free_folder(source)
    if model is not None and not isinstance(model, nn.Module):
        raise WonderlandError(f"model must be a torch.nn.Module, not {model!r}: give an instance, such as Net().")
    _check_folder(folder)
    with _tidy(folder), lock(folder), _world(request):
        dataset = open_for(source, request, test if _is_source(test) else None)
        if isinstance(dataset, Corpus):
            dataset.home = folder / TOKENS
        plan, config = _settle(folder, dataset, request, model, overwrite and resume is None)
        inputs = {"config.json": sha256(folder / "config.json")}
        finished = _made_from(folder / "model.safetensors", inputs)
        if talk:
            talk(dataset, plan, finished)
        torch.set_num_threads(config["threads"])
        if isinstance(dataset, Corpus):
            _preprocessing(folder, plan)  # at once: a tokenizer takes long to learn again
        if not finished:
            _train(folder, plan, inputs, progress, tensorboard)
        _preprocessing(folder, plan)
        _trust(folder, plan, config)
        _report(folder, plan, config)
        return load(folder, model=model)


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
        if not existed and folder.is_dir() and [path.name for path in folder.iterdir()] == [".lock"]:
            shutil.rmtree(folder)
        raise


def _is_source(test: Any) -> bool:
    return not isinstance(test, int | float)


def open_for(source: Any, request: Request, test: Any = None) -> Dataset:
    """Open a source as the request asks, with a target that can be learned."""
    dataset = data.open(
        source,
        request.target,
        task=request.task,
        group=request.group,
        time=request.time,
        keep=request.keep,
        drop=request.drop,
        strict=request.strict,
        size=request.size,
        test=test,
        kind=request.kind,
        lines=request.lines,
        column=request.column,
    )
    if isinstance(dataset, Corpus | Pairs):
        return dataset
    if dataset.y is None or dataset.task is None:
        raise WonderlandError(
            f"{dataset.name} has no target to learn: name a column, or sort images into class folders."
        )
    return dataset


def _settle(
    folder: Path, dataset: Dataset, request: Request, own: nn.Module | None, overwrite: bool
) -> tuple[Any, dict[str, Any]]:
    """The plan of the run in this folder: as config.json says if there is one, else chosen now and written down."""
    if (folder / "config.json").exists() and not overwrite:
        config = read_config(folder)
        begun = Request.from_json(config["request"])
        same_threads = request.threads in (None, begun.threads, config["threads"])
        if replace(begun, threads=None) != replace(request, threads=None) or not same_threads:
            raise WonderlandError(
                f"{folder} holds a run with other options. Choose another folder with --out, or begin again with --overwrite."
            )
        torch.set_num_threads(config["threads"])
        return rebuild(config, dataset, folder, own), config
    plan = choose(dataset, request, own)
    probe(plan)
    threads = request.threads or threads_for(plan)
    torch.set_num_threads(threads)
    measured(plan, request)
    config = config_of(plan, request, threads)
    _clear(folder)  # only now that the new run is known to be possible
    write_json(folder / "config.json", config)
    return plan, config


def _train(folder: Path, plan: Any, inputs: dict[str, str], progress: bool, tensorboard: bool) -> None:
    """Weights and preprocessing, from where an earlier process was cut."""
    recipe = plan.recipe
    outcome = train(
        plan.step(),
        plan.state(),
        plan.batches(),
        steps=recipe.steps,
        folder=folder,
        evaluate=plan.evaluate,
        evaluate_every=recipe.evaluate_every,
        watch=plan.watch,
        patience=recipe.patience,
        progress=progress,
        tensorboard=tensorboard,
        identity=inputs["config.json"],
    )
    save_model(folder, plain(final(outcome.state)), {"inputs": inputs, "step": outcome.best_step or recipe.steps})


def _preprocessing(folder: Path, plan: Any) -> None:
    """The fitted encoder, unless it is there and whole; it is the same each time it is made."""
    try:
        same = read_json(folder / "preprocess.json") == plan.encoder.to_json()
        load_tensors(folder / "preprocess.safetensors")
    except WonderlandError:
        same = False
    if not same:
        save_tensors(folder / "preprocess.safetensors", plan.encoder.tensors(), {})
        write_json(folder / "preprocess.json", plan.encoder.to_json())


def _trust(folder: Path, plan: Any, config: dict[str, Any]) -> None:
    """Temperature, scores and measured coverage, unless trust.json was made from these very files."""
    inputs = {name: sha256(folder / name) for name in INPUTS}
    if _recorded(folder) == inputs:
        return
    found = plan.trusted(trained(folder, plan), config["level"])
    write_json(folder / "trust.json", {"inputs": inputs, **found})


def _recorded(folder: Path) -> dict[str, str] | None:
    """The digests in trust.json, if it is there and whole; what is damaged is made again."""
    try:
        return check_inputs(folder, read_json(folder / "trust.json"))
    except WonderlandError:
        return None


def trained(folder: Path, plan: Any) -> nn.Module:
    """The finished model of a plan."""
    return load_model(folder, None if isinstance(plan.recipe.model, str) else plan.recipe.model, plan.own)


def _report(folder: Path, plan: Any, config: dict[str, Any]) -> None:
    """The page for people, unless it already shows this trust.json."""
    mark = f"<!-- made from {sha256(folder / 'trust.json')} -->"
    path = folder / "report.html"
    if path.exists() and path.read_text(errors="replace").endswith(mark + "\n"):
        return
    run = load(folder, model=plan.own)
    gathered: Any = {"corpus": language_facts, "pairs": translation_facts}.get(plan.dataset.kind, facts)
    write_text(path, render(gathered(run, plan)) + mark + "\n")


def _made_from(path: Path, inputs: dict[str, str]) -> bool:
    if not path.exists():
        return False
    try:
        return load_tensors(path)[1].get("inputs") == inputs
    except WonderlandError:
        return False


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
    before, threads = random_state(), torch.get_num_threads()
    keep_freed_memory()
    random.seed(request.seed)
    np.random.seed(request.seed % 2**32)  # noqa: NPY002 - a user's module may draw from it
    torch.manual_seed(request.seed)
    try:
        yield
    finally:
        set_random_state(before)
        torch.set_num_threads(threads)
