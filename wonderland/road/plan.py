"""Plan: from a request and its data to a config that says everything before the first step."""

import copy
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.data import Augment, Batches, Dataset, Encoder, Images, Split, split
from wonderland.kinds.image.images import Memory
from wonderland.kinds.corpus.corpus import Corpus
from wonderland.kinds.pairs.pairs import Pairs
from wonderland.kinds.text.encoder import TextEncoder
from wonderland.kinds.text.texts import Texts
from wonderland.generation.prompts import context
from wonderland.optim import warmup_cosine
from wonderland.road import image, table, text
from wonderland.kinds.corpus.recipe import choose_language, rebuild_language
from wonderland.core.recipe import Recipe
from wonderland.road.request import Request
from wonderland.train.start import Start
from wonderland.kinds.pairs.recipe import choose_translation, rebuild_translation
from wonderland.ship import FORMAT, outputs
from wonderland.tasks import Classification, Regression, Task
from wonderland.train import State, Supervised, adamw, find_lr, steps_within
from wonderland.trust import Held, Trust, believed, judged
from wonderland.understand import cost

LOOKS = 15  # evaluations of a language model on its way
ROADS: dict[str, Any] = {"table": table, "image": image, "text": text}


@dataclass
class Plan:
    """All that a training needs, in memory: made from a config and the data it names, the same each time."""

    dataset: Dataset
    parts: Split
    encoder: Encoder
    task: Task
    recipe: Recipe
    seed: int
    own: nn.Module | None = None
    start: Start | None = None

    def __post_init__(self):
        assert self.dataset.y is not None
        self.x = self._rows()
        self.y = self.dataset.y
        target = self.task.standard(self.y) if isinstance(self.task, Regression) else self.y
        kind = torch.float32 if isinstance(self.task, Regression) else torch.int64
        self.targets = torch.as_tensor(target).to(kind)

    def _rows(self) -> Tensor | Callable[[np.ndarray], Tensor]:
        """Encoded rows: all of them where they fit in memory, else a function that reads some."""
        if isinstance(self.dataset, Images) and not isinstance(self.dataset.store, Memory):
            return lambda rows: self.encoder.encode(self.dataset, rows)
        return self.encoder.encode(self.dataset)

    def take(self, rows: np.ndarray) -> Tensor:
        """Some encoded rows."""
        return self.x[torch.as_tensor(rows)] if isinstance(self.x, Tensor) else self.x(rows)

    def state(self) -> State:
        """Fresh weights and optimizer, the same for the same seed."""
        torch.manual_seed(self.seed)
        recipe = self.recipe
        if isinstance(recipe.model, str):
            assert self.own is not None, "a recipe for a user's own module is built with that module"
            model = self.own
        elif self.start is not None:
            model = self.start.teach(self.start.classifier(self.task.outputs))
        else:
            model = recipe.model.build()
        optimizer = adamw(model, lr=recipe.lr, weight_decay=recipe.weight_decay, betas=recipe.betas)
        averaged = {} if recipe.average is None else {"average": copy.deepcopy(model)}
        return State(model=model, optimizer=optimizer, **averaged)

    def step(self) -> Supervised:
        """What is done with each batch."""
        recipe = self.recipe

        def schedule(step: int, steps: int) -> float:
            return warmup_cosine(step, steps, warmup=recipe.warmup)

        return Supervised(
            self.task.loss,
            recipe.steps,
            recipe.lr,
            schedule,
            clip=recipe.clip,
            accumulate=recipe.accumulate,
            precision=recipe.precision,
            axis=1 if recipe.members else 0,
            average=recipe.average,
        )

    def batches(self) -> Batches:
        """Training rows, shuffled; each member of an ensemble in an order of its own."""
        recipe = self.recipe
        rows: Any = self.parts.train
        if recipe.members:
            rows = [self.rows_of(member) for member in range(recipe.members)]
        return Batches(
            self.x,
            self.targets,
            size=recipe.batch_size,
            seed=self.seed,
            rows=rows,
            augment=Augment.from_json(recipe.augment) if recipe.augment else None,
            workers=recipe.workers,
        )

    def rows_of(self, member: int) -> np.ndarray:
        """The rows a member may learn from: all training rows, less the fold its group is judged on."""
        train = self.parts.train
        if not self.recipe.folds or self.parts.folds is None:
            return train
        group = member // (self.recipe.members // self.recipe.folds)
        return train[self.parts.folds[train] != group]

    def held(self, model: nn.Module, rows: np.ndarray) -> Held:
        """What every member says of these rows, which group may judge each, and the truth."""
        group = np.zeros(len(rows), np.int64)
        if self.recipe.folds and self.parts.folds is not None:
            group = np.maximum(self.parts.folds[rows], 0).astype(np.int64)
        pieces = np.array_split(rows, max(1, -(-len(rows) // 8192)))
        found = torch.cat([outputs(model, self.take(piece)) for piece in pieces], 1)
        return Held(found, group, self.y[rows])

    def evaluate(self, state: State) -> dict[str, float]:
        """Squared error of the judged rows, which decides what is kept, and measures that people know."""
        folds = self.recipe.folds
        held = self.held(final(state), self.parts.validation) if not folds else self._judged_folds(final(state))
        shares = believed(self.task, held, 1, self.recipe.kinds)
        found = judged(self.task, held, 1, shares)
        errors = self.task.errors(torch.as_tensor(found)[None], held.y)
        brier = float(np.mean(np.square(errors).sum(-1)))
        if isinstance(self.task, Classification):
            metrics = self.task.metrics(found, held.y)
            return {
                "validation/brier": brier,
                "validation/loss": metrics["log_loss"],
                "validation/accuracy": metrics["accuracy"],
            }
        return {
            "validation/loss": brier,
            "validation/rmse": self.task.metrics(self.task.original(found[:, 0]), held.y)["rmse"],
        }

    @property
    def watch(self) -> str:
        """The measure that decides which weights are kept. Confidence overfits long before answers do, so it is not log loss."""
        return "validation/brier" if isinstance(self.task, Classification) else "validation/loss"

    def _judged_folds(self, model: nn.Module) -> Held:
        """Each fold through the members that never saw it, and through no others: a group's members, all training rows."""
        folds, train = self.recipe.folds or 1, self.parts.train
        assert self.parts.folds is not None
        rows = [train[self.parts.folds[train] == fold] for fold in range(folds)]
        longest = max(map(len, rows))
        index = np.stack([np.resize(some, longest) for some in rows]).repeat(self.recipe.members // folds, 0)
        model.eval()
        with torch.inference_mode():
            pieces = np.array_split(index, max(1, -(-longest // 2048)), 1)
            found = torch.cat([model(self.take(piece.reshape(-1)).unflatten(0, piece.shape)) for piece in pieces], 1)
        found = found.unflatten(0, (folds, -1))
        joined = torch.cat([found[fold, :, : len(some)] for fold, some in enumerate(rows)], 1).clone()
        order = np.concatenate(rows)
        return Held(joined, np.zeros(len(order), np.int64), self.y[order])

    def trusted(self, model: nn.Module, level: float) -> dict[str, Any]:
        """Temperature, scores and measured coverage, as trust.json keeps them."""
        parts = self.parts
        judging = parts.train if self.recipe.folds else None
        validation = self.held(model, parts.validation if judging is None else judging)
        calibration = self.held(model, parts.calibration) if judging is None else validation
        trust = Trust.fit(self.task, validation, calibration, self.recipe.folds or 1, level, self.recipe.kinds)
        test = self.held(model, parts.test)
        return trust.to_json() | {"measured": {"test": trust.measure(test.outputs, test.y)}}

    def about(self) -> dict[str, Any]:
        """What the record of the source says beside the usual."""
        return {} if self.start is None else self.start.about()

    def describe(self) -> str:
        """The plan in a sentence."""
        recipe = self.recipe
        name = recipe.model if isinstance(recipe.model, str) else recipe.model.name
        many = f"{recipe.members} x " if recipe.members else ""
        epochs = recipe.steps / self.batches().per_epoch
        return f"Model: {many}{name}, {recipe.steps:,} steps of {recipe.batch_size} rows ({epochs:.3g} epochs), peak rate {recipe.lr:.3g}.{self.start.describe() if self.start else ''}"


def final(state: State) -> nn.Module:
    """The model that is kept: the average of the weights where there is one."""
    return state.parts().get("average", state.model)


def choose(dataset: Dataset, request: Request, own: nn.Module | None) -> Any:
    """Split the data, fit the encoder, and settle every number of the recipe."""
    if isinstance(dataset, Corpus):
        return choose_language(dataset, request, own)
    request.refuse_tokenizer(dataset.name)
    if isinstance(dataset, Pairs):
        return choose_translation(dataset, request, own)
    start = Start.of(request)
    if start is not None and (own is not None or not isinstance(dataset, Texts)):
        if own is not None:
            raise WonderlandError("A checkpoint reads text: start does not go with your own module.")
        hint = " If one of its columns is text, name it with column (--column) and the answers with target (--target)."
        raise WonderlandError(
            f"A checkpoint reads text: start does not go with {dataset.name}.{hint if dataset.kind == 'table' else ''}"
        )
    road = ROADS[dataset.kind]
    folds = None if own is not None else road.folds(dataset)
    parts = split_as(dataset, request, folds)
    task = task_of(dataset, parts)
    encoder = encoder_of(dataset, parts, request, start, task)
    recipe = road.recipe(dataset, encoder, parts, task)
    if start is not None:
        recipe = text.going_on(recipe, start, parts, task)
    if own is not None:
        recipe = own_recipe(recipe, own)
    recipe = recipe.changed(
        batch_size=request.batch_size,
        weight_decay=request.weight_decay,
        clip=request.clip,
        accumulate=request.accumulate,
        precision=request.precision,
        patience=request.patience,
        workers=request.workers,
        lr=request.lr if not isinstance(request.lr, str) else None,
    )
    return Plan(dataset, parts, encoder, recipe.task.build(), recipe, request.seed, own, start)


def encoder_of(dataset: Dataset, parts: Split, request: Request, start: Start | None, task: Task) -> Encoder:
    """The preprocessing, fitted to the training rows; texts are cut as was asked, or as a checkpoint cuts them."""
    asked = request.cut()
    if start is not None:
        assert isinstance(dataset, Texts)
        model = start.classifier(task.outputs)
        return TextEncoder.around(
            start.tokenizer, model.pad, dataset, parts.train, most=context(model), context=request.context
        )
    if isinstance(dataset, Texts):
        return dataset.encoder(parts.train, **asked)
    if asked:
        raise WonderlandError(f"{next(iter(asked))} is for texts; {dataset.name} is not made of texts.")
    return dataset.encoder(parts.train)


def measured(plan: Any, request: Request) -> None:
    """Turn wishes that need a stopwatch or a trial (epochs, budget, lr auto) into numbers, once."""
    batches = plan.batches()
    epoch = batches.per_epoch
    steps = plan.recipe.steps
    if request.steps:
        steps = request.steps
    elif request.epochs:
        steps = max(1, round(request.epochs * epoch))
    plan.recipe = plan.recipe.changed(steps=steps, batch_size=batches.size)
    if request.lr == "auto":
        plan.recipe = plan.recipe.changed(lr=find_lr(plan.step(), fresh(plan), batches).lr)
    if request.budget:
        every = plan.recipe.evaluate_every
        steps = steps_within(request.budget, plan.step(), fresh(plan), batches, plan.evaluate, every)
        plan.recipe = plan.recipe.changed(steps=steps)
    if not isinstance(plan, Plan):
        # Often enough to draw a curve, seldom enough to cost little beside the steps.
        plan.recipe = plan.recipe.changed(evaluate_every=max(1, min(20, steps // 6), steps // LOOKS))


def fresh(plan: Any) -> State:
    """A state to try things on; a user's own module is copied, so that it stays as it came."""
    return copy.deepcopy(plan.state())


def own_recipe(recipe: Recipe, own: nn.Module) -> Recipe:
    """The recipe of this kind of data around a user's module: no members, no folds, a gentle rate."""
    plain = replace(recipe, members=0, kinds=1, folds=None, average=None, clip=1.0)
    return plain.changed(model=type(own).__name__, lr=1e-3, weight_decay=0.01, betas=(0.9, 0.999))


def split_as(dataset: Dataset, request: Request, folds: int | None) -> Split:
    """Parts of the sizes this library uses; the calibration part stops growing where it has rows enough."""
    test = 0.0 if isinstance(request.test, str) else request.test
    if folds:
        return split(dataset, seed=request.seed, test=test, folds=folds)
    share = min(0.1, 20_000 / len(dataset))
    return split(dataset, seed=request.seed, test=test, validation=share, calibration=share)


def task_of(dataset: Dataset, parts: Split) -> Task:
    """What is to be learned, with what it needs to know of the training rows."""
    if dataset.task != "regression":
        assert dataset.classes is not None
        return Classification(dataset.classes)
    assert dataset.y is not None
    y = dataset.y[parts.train]
    scale = float(y.std())
    if not scale > 0:
        raise WonderlandError("The target is the same in every training row, so there is nothing to learn.")
    return Regression(mean=float(y.mean()), scale=scale, low=float(y.min()), high=float(y.max()))


def probe(plan: Any) -> None:
    """Try a user's module on two rows before anything is written; say what it gets and what it must give."""
    if plan.own is None:
        return
    name, x = type(plan.own).__name__, plan.take(plan.parts.train[:2])
    takes = f"It is given {str(x.dtype).removeprefix('torch.')} of shape {('rows', *x.shape[1:])}".replace("'", "")
    if not any(parameter.requires_grad for parameter in plan.own.parameters()):
        raise WonderlandError(f"Your module {name} has nothing to learn: it has no trainable parameters.")
    try:
        found = outputs(copy.deepcopy(plan.own), x)
    except Exception as error:
        said = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise WonderlandError(f"Your module {name} fails on a batch ({said}). {takes}.") from error
    if tuple(found.shape[1:]) != (2, plan.task.outputs):
        raise WonderlandError(
            f"Your module {name} gives {tuple(found.shape[1:])} for two rows, where this task needs (2, {plan.task.outputs}). {takes}."
        )


HEAVY = 4e9


def threads_for(plan: Any) -> int:
    """One thread unless a step is heavy: small kernels lose more by waiting for each other than they gain.

    Two threads beside another busy process were measured 20 times slower than one on small networks; a step of a few
    billion operations is worth sharing.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(plan, Plan):
        flops = cost(fresh(plan).model, plan.take(plan.parts.train[:1])).flops  # one row through every member, forward
    else:
        flops = plan.flops()
    work = 3 * flops * plan.recipe.batch_size
    return min(cores, torch.get_num_threads()) if work > HEAVY else 1


def config_of(plan: Any, request: Request, threads: int) -> dict[str, Any]:
    """The record that a run begins with, and can be rebuilt from."""
    return {
        "format": FORMAT,
        "wonderland": version("wonderland"),
        "source": {"name": plan.dataset.name, "kind": plan.dataset.kind, "origin": plan.dataset.origin,
                   "fingerprint": plan.dataset.fingerprint, "rows": len(plan.dataset),
                   "findings": [finding.text for finding in plan.dataset.findings], **plan.about()},
        "request": request.to_json(),
        "recipe": plan.recipe.to_json(),
        "split": plan.parts.to_json(),
        "seed": request.seed,
        "threads": threads,
        "level": request.level,
        "versions": versions(),
    }  # fmt: skip


def versions() -> dict[str, str]:
    """What the bits of a run depend on."""
    found = {name: version(name) for name in ("torch", "numpy", "pandas", "safetensors")}
    return {"python": platform.python_version(), **found, "machine": platform.machine(), "system": platform.system()}


def rebuild(config: dict[str, Any], dataset: Dataset, folder: Path, own: nn.Module | None) -> Any:
    """The plan that a config describes, from the same data."""
    if dataset.fingerprint != config["source"]["fingerprint"]:
        raise WonderlandError(
            f"The data of {folder} changed since the run began, so it cannot go on as it was. "
            "Bring back the data, or start a new run in another folder."
        )
    if isinstance(dataset, Corpus):
        return rebuild_language(config, dataset, folder)
    if isinstance(dataset, Pairs):
        return rebuild_translation(config, dataset, folder)
    request, recipe = Request.from_json(config["request"]), Recipe.from_json(config["recipe"])
    if isinstance(recipe.model, str) and own is None:
        raise WonderlandError(
            f"The run in {folder} was fitted with a module of your own, {recipe.model!r}: "
            "continue it from Python with wonderland.fit(resume=..., model=...)."
        )
    parts = split_as(dataset, request, recipe.folds)
    if parts.digest != config["split"]["digest"]:
        raise WonderlandError(
            f"The rows of {folder} can no longer be split as they were: start a new run in another folder."
        )
    start, task = Start.of(request), recipe.task.build()
    if start is not None:
        start.check(config)
    encoder = encoder_of(dataset, parts, request, start, task)
    return Plan(dataset, parts, encoder, task, recipe, request.seed, own, start)
