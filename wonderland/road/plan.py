"""Plan: everything a training needs, from a request and its data; recorded in config.json before the first step."""

import copy
import functools
import os
import platform
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from wonderland.core import Spec, WonderlandError, find
from wonderland.core.recipe import Recipe
from wonderland.core.threads import on_threads
from wonderland.data.dataset import Dataset
from wonderland.data.encoder import Encoder
from wonderland.data.examples import Examples
from wonderland.data.split import Parts
from wonderland.kinds import KINDS, Kind
from wonderland.optim import FusedAdamW
from wonderland.road.parts import (
    check_memory,
    closed_form_recipe,
    fill_arguments,
    is_closed_form,
    parse_model,
    with_optimizer,
    with_scaled_rate,
    with_schedule,
)
from wonderland.road.request import Request
from wonderland.road.settings import parse_settings, with_settings
from wonderland.road.trust_recipe import check_recipe_for, with_dropout
from wonderland.road.weighting import weigh_towards
from wonderland.ship.store import FORMAT
from wonderland.tasks import Task, View
from wonderland.tasks.wanted import Wanted
from wonderland.train import State, find_lr, steps_within
from wonderland.train.learner import Learner, check_learner
from wonderland.train.parallel import Sharded, current
from wonderland.understand import cost

HEAVY_STEP = 4e9  # operations
ROWS_FOR_THREADS = 500  # of models whose fit takes time cubic in the rows


@dataclass
class Plan:
    """Everything a training needs, in memory; the same config and data always give the same plan."""

    kind: Kind
    dataset: Dataset
    parts: Parts
    encoder: Encoder
    task: Task
    recipe: Recipe
    seed: int
    own: nn.Module | None = None
    device: str = "cpu"
    wanted: Wanted = field(default_factory=Wanted)
    watching: Any = (
        None  # called with the name of long work after training; returns a function of what is done and of all
    )
    weighted: str | None = None  # the digest of weights towards other rows
    shard: bool = False  # divide the weights among processes

    @functools.cached_property
    def examples(self) -> Examples:
        """The encoded dataset."""
        return self.encoder.examples(self.dataset)

    def learner(self) -> Learner:
        """The learner of the recipe."""
        spec = self.recipe.learner
        part = find(spec.name)
        if not isinstance(part, type) or not issubclass(part, Learner):
            raise WonderlandError(f"{spec.name} is not a learner.")
        return spec.build(recipe=self.recipe, task=self.task)

    def state(self) -> State:
        """The state before the first step, determined by the seed."""
        torch.manual_seed(self.seed)
        learner, group = self.learner(), current()
        check_learner(learner, group)
        state = learner.start(self.model().to(self.device))
        return Sharded.of(state) if self.shard and group.count > 1 else state

    def model(self) -> nn.Module:
        """The model before training: the user's own, one from a checkpoint, or one with random weights."""
        if isinstance(self.recipe.model, str):
            assert self.own is not None, "a recipe for a user's own module is built with that module"
            return self.own
        initial = self.kind.initial(self.dataset, self.task)
        model = self.recipe.model.build() if initial is None else self.kind.around(initial, self.recipe)
        return self.kind.prepare(model, self)

    def batches(self) -> Any:
        """The training part, shuffled; each ensemble member in its own order."""
        recipe, ensemble = self.recipe, self.recipe.ensemble
        rows = None if ensemble is None else [self.rows_of(member) for member in range(ensemble.members)]
        augment = None if recipe.augment is None else recipe.augment.build()
        options = {"size": recipe.batch_size, "seed": self.seed, "augment": augment, "workers": recipe.workers}
        return self.examples.shuffled(self.parts.train, rows=rows, **options)

    def rows_of(self, member: int) -> np.ndarray:
        """The training rows of a member: all but those of the fold that its group is measured on."""
        train, ensemble = self.parts.train, self.recipe.ensemble
        assert ensemble is not None
        if not ensemble.folds or self.parts.folds is None:
            return train
        group = member // (ensemble.members // ensemble.folds)
        return train[self.parts.folds[train] != group]

    def view(self, model: nn.Module, part: str) -> View:
        """A part by name, encoded, with the model. With folds, the training rows serve for validation and calibration."""
        folded = bool(self.recipe.folds) and part in ("validation", "calibration")
        rows = self.parts.train if folded else self.parts.parts[part]
        folds = self.parts.folds if folded else None
        return View(model, self.examples, rows, self.recipe.ensemble, folds, dataset=self.dataset)

    def evaluate(self, state: State) -> dict[str, float]:
        """Measures of the validation part."""
        measures = self.task.measure(self.view(self.learner().model(state), "validation"))
        return {f"validation/{name}": value for name, value in measures.items()}

    @property
    def watch(self) -> str:
        """The measure that decides which weights are kept."""
        return f"validation/{self.task.watch}"

    def measure_trust(self, model: nn.Module, level: float) -> dict[str, Any]:
        """Calibration, and its evaluation on the test part, as trust.json stores them."""
        trust = self.calibrated(model, level)
        return trust.to_json() | {"measured": {"test": self.task.evaluate(self.view(model, "test"), trust)}}

    def calibrated(self, model: nn.Module, level: float) -> Any:
        """Calibration on held-out rows, with the options of trust that were asked for."""
        validation = self.view(model, "validation")
        calibration = validation if self.recipe.folds else self.view(model, "calibration")
        trust = self.task.calibrate(validation, calibration, level)
        return self.task.with_options(trust, validation, calibration, self.wanted)

    def about(self) -> dict[str, Any]:
        """Further entries of the record of the source."""
        started = {} if self.dataset.start is None else self.dataset.start.about()
        return started | ({} if self.weighted is None else {"weights": self.weighted})

    def describe(self) -> str:
        """The plan in a sentence."""
        recipe, size = self.recipe, self.encoder.batch_words(self.recipe.batch_size, self.dataset.noun)
        name = recipe.model if isinstance(recipe.model, str) else recipe.model.name
        members = f"{recipe.ensemble.members} x " if recipe.ensemble is not None else ""
        epochs = recipe.steps / self.batches().per_epoch
        if is_closed_form(recipe.model):
            assert isinstance(recipe.model, Spec)
            about = getattr(recipe.model.part, "describe", None)
            words = about(recipe.model.build()) if about else f"{name}, fitted in one step."
            return f"{self.encoder.describe()}Model: {words}"
        started = "" if self.dataset.start is None else self.dataset.start.describe()
        return (
            f"{self.encoder.describe()}Model: {members}{name}, {recipe.steps:,} steps of {size} ({epochs:.3g} epochs), "
            f"peak rate {recipe.lr:.3g}.{started}"
        )


@on_threads(1)  # what is fitted here is compared with its digest when the run is resumed, on whatever number of threads
def make_plan(kind: Kind, dataset: Dataset, request: Request, own: nn.Module | None) -> Plan:
    """Split the data, fit the encoder, and make the recipe, but for numbers that need a measurement."""
    training = request.training
    if own is not None and dataset.start is not None:
        raise WonderlandError("A checkpoint brings its own model: start does not go with your own module.")
    asked = None if training.model is None else parse_model(training.model)
    if asked is not None and dataset.start is not None:
        raise WonderlandError("A checkpoint brings its own model: start does not go with model.")
    plain = own is not None or (asked is not None and asked.name not in kind.models[:1])
    wanted = Wanted.of(training)
    alone = plain or wanted.method == "split"
    parts = kind.split(dataset, test=training.test_share, seed=training.seed, plain=alone)
    encoder = kind.encoder(dataset, parts)
    weighted = weigh_towards(dataset, parts.train, encoder, training.weight_to, wanted.method)
    task = kind.task(dataset, parts, encoder)
    task.check_wanted(wanted)
    if wanted.group is not None:
        dataset.texts_of(wanted.group)
    task = task.for_wanted(wanted)
    recipe = kind.recipe(dataset, parts, encoder, task)
    if wanted.uncertainty == "dropout":
        recipe = with_dropout(recipe)
    own_choice = asked is not None and isinstance(recipe.model, Spec) and asked.name == recipe.model.name
    if plain and not (own_choice and recipe.ensemble is None):
        recipe = plain_recipe(recipe, type(own).__name__ if own is not None else recipe.model)
        recipe = kind.named_recipe(recipe, "" if asked is None else asked.name, dataset, parts)
    if asked is not None:
        assert isinstance(recipe.model, Spec)
        rows = len(parts.train) if is_closed_form(asked) else 1
        recipe = replace(
            recipe, model=fill_arguments(asked, recipe.model, encoder.for_model(asked), task, dataset.name, rows)
        )
        assert isinstance(recipe.model, Spec)
        check_memory(recipe.model)
        if is_closed_form(recipe.model):
            recipe = closed_form_recipe(recipe, training, rows)
    usual = recipe.batch_size
    recipe = with_optimizer(recipe, training)
    recipe = with_schedule(recipe, training).changed(**training.numbers())
    recipe = with_scaled_rate(recipe, usual, training.scale_lr)
    recipe = with_settings(recipe, parse_settings(training.settings))
    numbers = {name: value for name, value in training.numbers().items() if value is not None}
    encoder = encoder.for_model(recipe.model)
    kind.check_recipe(dataset, parts, encoder, recipe, numbers)
    check_recipe_for(wanted, recipe)
    device = choose_device(training.device)
    return Plan(
        kind,
        dataset,
        parts,
        encoder,
        recipe.task.build(),
        recipe,
        training.seed,
        own,
        device,
        wanted,
        weighted=weighted,
    )


def plain_recipe(recipe: Recipe, model: Spec | str) -> Recipe:
    """The recipe for a model that is not the default of the kind: no ensemble, a smaller learning rate."""
    optimizer = FusedAdamW.spec(weight_decay=0.01, betas=[0.9, 0.999])
    return replace(recipe, model=model, ensemble=None, average=None, clip=1.0, lr=1e-3, optimizer=optimizer)


def choose_device(asked: str) -> str:
    """The device: as asked, or for "auto" a GPU if there is one."""
    available = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available}
    if asked == "auto":
        return next((name for name, is_available in available.items() if is_available()), "cpu")
    if asked in available and not available[asked]():
        raise WonderlandError(f"There is no device {asked} here: leave device out, or say cpu.")
    return asked


def resolve_measured(plan: Plan, request: Request) -> None:
    """Resolve options that need the data or a measurement (epochs, budget, lr auto) into numbers of the recipe."""
    training, batches = request.training, plan.batches()
    steps = plan.recipe.steps
    if training.steps:
        steps = training.steps
    elif training.epochs:
        steps = max(1, round(training.epochs * batches.per_epoch))
    plan.recipe = plan.recipe.changed(steps=steps, batch_size=batches.size)
    if training.steps or training.epochs or training.budget:
        plan.recipe = plan.recipe.changed(extensions=0)
    if training.lr == "auto":
        if not hasattr(plan.learner(), "supervised"):
            raise WonderlandError(
                f"lr auto is for losses of examples, and {plan.recipe.learner.name} has none: give a number."
            )
        plan.recipe = plan.recipe.changed(lr=find_lr(plan.learner().supervised, trial_state(plan), batches).lr)  # pyright: ignore
    if training.budget:
        steps = steps_within_budget(plan, training.budget, batches)
        while (
            training.model is None
            and (other := plan.kind.for_epochs(plan.recipe, steps / batches.per_epoch)) is not None
        ):
            plan.recipe = other
            steps = steps_within_budget(plan, training.budget, batches)
        plan.recipe = plan.recipe.changed(steps=steps)
    plan.recipe = plan.kind.adjust_to_steps(plan.recipe)


def steps_within_budget(plan: Plan, budget: float, batches: Any) -> int:
    """How many steps of the recipe fit into a number of seconds, with the evaluations among them."""
    every = max(plan.recipe.evaluate_every, 1)
    return steps_within(budget, plan.learner().step, trial_state(plan), batches, plan.evaluate, every)


def trial_state(plan: Plan) -> State:
    """A state for trials; a user's own module is copied, so that it is not changed."""
    return copy.deepcopy(plan.state()) if plan.own is not None else plan.state()


def try_model(plan: Plan, request: Request) -> None:
    """Try a model that the user named on two examples, before anything is written, and raise an error if it does not fit."""
    if plan.own is None and request.training.model is None and not request.training.settings:
        return
    name = f"Your module {type(plan.own).__name__}"
    if isinstance(plan.recipe.model, Spec):
        name = plan.recipe.model.name
        if is_closed_form(plan.recipe.model):
            return
    model = copy.deepcopy(plan.own) if plan.own is not None else plan.model()
    batch = plan.examples.first(plan.parts.train, 2)
    x = next(batch.tensors())
    takes = f"It is given {str(x.dtype).removeprefix('torch.')} of shape {('rows', *x.shape[1:])}".replace("'", "")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise WonderlandError(f"{name} has nothing to learn: it has no trainable parameters.")
    problem: str | None = None
    try:
        problem = plan.task.check_model(model, batch)
        if not problem:
            model.train()
            if not plan.task.loss(model, batch)[0].requires_grad:
                problem = "returns outputs without gradients, so it cannot learn"
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")
        raise WonderlandError(f"{name} fails on a batch ({reason}). {takes}.") from error
    if problem:
        raise WonderlandError(f"{name} {problem}. {takes}.")


def threads_for(plan: Plan, processes: int = 1) -> int:
    """The number of threads: one, unless a step has billions of operations, because small kernels do not gain from more.

    Processes on this machine share its cores.

    On small networks, two threads next to another busy process were measured 20 times slower than one.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cores = max(1, cores // processes)
    if is_closed_form(plan.recipe.model):
        return min(cores, torch.get_num_threads()) if len(plan.parts.train) > ROWS_FOR_THREADS else 1
    batch = plan.examples.first(plan.parts.train)
    model = plan.own if isinstance(plan.recipe.model, str) else plan.recipe.model.build()
    assert model is not None
    flops = cost(model, plan.task.inputs(batch)).flops  # of one example, forward
    work = 3 * flops * plan.recipe.batch_size
    return min(cores, torch.get_num_threads()) if work > HEAVY_STEP else 1


def make_config(plan: Plan, request: Request, threads: int) -> dict[str, Any]:
    """The content of config.json, from which a run can be rebuilt."""
    return {
        "format": FORMAT,
        "wonderland": version("wonderland"),
        "source": {"name": plan.dataset.name, "kind": plan.kind.name, "origin": plan.dataset.origin,
                   "fingerprint": plan.dataset.fingerprint, "rows": len(plan.dataset),
                   "findings": [finding.text for finding in plan.dataset.findings], **plan.about()},
        "request": request.to_json(),
        "recipe": plan.recipe.to_json(),
        "split": plan.parts.to_json(),
        "preprocessing": plan.encoder.digest(),
        "seed": request.training.seed,
        "threads": threads,
        "device": plan.device,
        "level": request.training.level,
        "versions": versions(),
    }  # fmt: skip


def versions() -> dict[str, str]:
    """Versions of the packages and the machine, on which the bits of a run depend."""
    packages = {name: version(name) for name in ("torch", "numpy", "pandas", "safetensors")}
    return {"python": platform.python_version(), **packages, "machine": platform.machine(), "system": platform.system()}


@on_threads(1)
def rebuild(config: dict[str, Any], dataset: Dataset, folder: Path, own: nn.Module | None) -> Plan:
    """The plan that a config describes, from the same data."""
    if dataset.fingerprint != config["source"]["fingerprint"]:
        raise WonderlandError(
            f"The data of {folder} changed since the run began, so the run cannot be resumed. "
            "Restore the data, or start a new run in another folder."
        )
    kind = KINDS.get(config["source"]["kind"])
    if kind is None or kind.name != dataset.kind:
        raise WonderlandError(
            f"The run in {folder} is of another kind of data ({config['source']['kind'][:80]!r}) than {dataset.name}, "
            f"which is read as {dataset.kind}. Start a new run in another folder."
        )
    request, recipe = Request.from_json(config["request"]), Recipe.from_json(config["recipe"])
    if isinstance(recipe.model, str) and own is None:
        raise WonderlandError(
            f"The run in {folder} was fitted with a module of your own, {recipe.model!r}: "
            "continue it from Python with wonderland.fit(resume=..., model=...)."
        )
    if dataset.start is not None:
        dataset.start.check(config)
    training = request.training
    parts = kind.split(dataset, test=training.test_share, seed=training.seed, plain=not recipe.folds)
    encoder = kind.encoder(dataset, parts).for_model(recipe.model)
    unchanged = parts.digest == config["split"]["digest"] and encoder.digest() == config.get(
        "preprocessing", encoder.digest()
    )
    if not unchanged:
        raise WonderlandError(
            f"The data of {folder} can no longer be split and encoded as it was: start a new run in another folder."
        )
    weighted = weigh_towards(dataset, parts.train, encoder, training.weight_to, Wanted.of(training).method)
    if weighted != config["source"].get("weights"):
        raise WonderlandError(
            f"The rows that {folder} is weighted towards ({training.weight_to}) changed since the run began: restore them, or start "
            "a new run in another folder."
        )
    device, wanted = config["device"], Wanted.of(training)
    return Plan(
        kind,
        dataset,
        parts,
        encoder,
        recipe.task.build(),
        recipe,
        training.seed,
        own,
        device,
        wanted,
        weighted=weighted,
    )
