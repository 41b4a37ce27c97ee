"""The stages of a run after its plan: preprocessing, training, trust, context, report."""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from wonderland.core import (
    INPUTS,
    Spec,
    WonderlandError,
    check_inputs,
    load_tensors,
    read_json,
    save_tensors,
    sha256,
    write_json,
    write_text,
)
from wonderland.core.schema import require
from wonderland.road.facts import facts
from wonderland.road.leaderboard import FILE as LEADERBOARD
from wonderland.road.plan import Plan
from wonderland.road.posterior import draw_weights
from wonderland.ship import Run, load_model, save_model
from wonderland.ship.context import is_current, reference_of, save_context
from wonderland.ship.posterior import METHODS, save_posterior
from wonderland.ship.posterior import is_current as is_drawn
from wonderland.ship.run import check_run
from wonderland.ship.schema import TRUST
from wonderland.train import Outcome
from wonderland.train import run as train
from wonderland.train.parallel import current, gathered, is_sharded
from wonderland.train.progress import Watching
from wonderland.train.start import merge_adapters
from wonderland.train.stopping import Rounds
from wonderland.understand import render


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
        recipe = self.plan.recipe
        rounds = Rounds(recipe.steps, recipe.extensions) if recipe.extensions else None
        outcome = self.train_to(recipe.steps, progress, tensorboard, rounds)
        model = self.plan.learner().model(outcome.state)
        if is_sharded(model):
            model = gathered(model, self.plan.model())
        model = merge_adapters(model).cpu()
        if not current().first:
            return
        save_model(self.folder, model, {"inputs": self.inputs, "step": outcome.best_step or recipe.steps})

    def train_to(
        self, steps: int, progress: bool = False, tensorboard: bool = False, rounds: Rounds | None = None
    ) -> Outcome:
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
            watch=plan.watch if plan.task.keeps_best else None,
            patience=recipe.patience,
            rounds=rounds,
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

    def posterior(self) -> None:
        """Draw weights from their posterior where it was asked for, unless they were drawn for the current model."""
        method = self.plan.wanted.uncertainty
        if method in METHODS and not is_drawn(self.folder, method):
            save_posterior(self.folder, method, draw_weights(self.plan, self.model, method))

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
