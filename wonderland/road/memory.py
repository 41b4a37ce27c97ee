"""Fit in memory: from a frame to a model with its preprocessing and calibration, without a run folder."""

import copy
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from safetensors.torch import load as read_tensors
from safetensors.torch import save as write_tensors
from torch import Tensor, nn

from wonderland.core import WonderlandError, keep_freed_memory
from wonderland.core.options import described
from wonderland.core.recipe import Recipe
from wonderland.data.encoder import Encoder
from wonderland.data.examples import RowExamples
from wonderland.data.source import Glimpse
from wonderland.kinds import KINDS
from wonderland.kinds.choose import choose as choose_kind
from wonderland.kinds.choose import make_options, open_as
from wonderland.road.plan import make_plan, resolve_measured, threads_for, try_model
from wonderland.road.request import Request
from wonderland.tasks import View
from wonderland.tasks.rows import RowTask
from wonderland.tasks.trust import RowTrust, holdout_prediction
from wonderland.train import run as train
from wonderland.train.state import random_state, set_random_state
from wonderland.train.stopping import Rounds

EXACT_ROWS = (
    2048  # up to this number of rows predictions are computed in float64, so that a row never depends on its batch
)
ONE_THREAD_ROWS = 5000

OutOfFold = tuple[np.ndarray, np.ndarray, np.ndarray | None]


@dataclass
class Fitted:
    """A fitted model with its preprocessing and calibration. It is pickled as JSON and safetensors only."""

    recipe: Recipe
    task: Any
    encoder: Encoder
    model: nn.Module
    trust: RowTrust

    def outputs(self, frame: pd.DataFrame) -> Tensor:
        """The outputs of every member for every row: (m, n, c)."""
        examples = self.encoder.examples(self.encoder.open(frame, need_target=False))
        exact = len(frame) <= EXACT_ROWS
        model = self.double if exact else self.model
        threads = torch.get_num_threads()
        torch.set_num_threads(1 if exact else threads)
        try:
            if exact and isinstance(examples, RowExamples) and isinstance(examples.x, Tensor):
                examples.x = examples.x.double() if examples.x.is_floating_point() else examples.x
            return View(model, examples, examples.everything(), self.recipe.ensemble).outputs().cpu()
        finally:
            torch.set_num_threads(threads)

    def spreads(self, frame: pd.DataFrame) -> np.ndarray | None:
        """The standard deviation of each row's prediction by a model that knows it: (n,)."""
        if not hasattr(self.model, "spread"):
            return None
        examples = self.encoder.examples(self.encoder.open(frame, need_target=False))
        return View(self.model, examples, examples.everything(), self.recipe.ensemble).spreads()

    def __post_init__(self):
        self.double = copy.deepcopy(self.model).double().eval()

    def __getstate__(self) -> dict[str, Any]:
        described = {
            "recipe": self.recipe.to_json(),
            "preprocess": self.encoder.to_json(),
            "trust": self.trust.to_json(),
        }
        tensors = {f"model.{name}": value.contiguous() for name, value in self.model.state_dict().items()}
        tensors |= {f"preprocess.{name}": value for name, value in self.encoder.tensors().items()}
        return {"json": json.dumps(described), "tensors": write_tensors(tensors)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        described, tensors = json.loads(state["json"]), read_tensors(state["tensors"])
        parts = {
            part: {name.removeprefix(part + "."): value for name, value in tensors.items() if name.startswith(part)}
            for part in ("model", "preprocess")
        }
        self.recipe = Recipe.from_json(described["recipe"])
        self.encoder = KINDS[described["preprocess"]["kind"]].read_encoder(described["preprocess"], parts["preprocess"])
        self.task = self.recipe.task.build()
        self.model = self.recipe.model.build()  # pyright: ignore[reportAttributeAccessIssue]
        self.model.load_state_dict(parts["model"])
        self.model.eval()
        self.trust = self.task.trust(described["trust"])
        self.__post_init__()


def fit_frame(
    frame: pd.DataFrame, target: str, weights: np.ndarray | None, request: Request
) -> tuple[Fitted, OutOfFold]:
    """Fit a model to a frame: every row is used for training and calibration (in folds, or parts where rows are many).

    Also returns calibrated predictions (n, c), targets (n,) and weights (n,) of rows that were not trained on. All columns are kept but for constant ones: whoever builds X has chosen them.
    """
    glimpse = Glimpse(frame)
    kind = choose_kind(glimpse, request.kind, request.options, KINDS)
    asked = dict(request.options) | {"target": target}
    if "keep" in described(kind.Options):
        asked.setdefault("keep", [str(name) for name in frame.columns if name != target])
    dataset = open_as(kind, glimpse, make_options(kind, asked, glimpse.name, KINDS), None)
    rng, threads = random_state(), torch.get_num_threads()
    keep_freed_memory()
    try:
        if weights is not None:
            dataset.weights = weights / weights.mean()
        plan = make_plan(kind, dataset, request, None)
        if not isinstance(plan.task, RowTask) or not isinstance(plan.examples, RowExamples):
            raise WonderlandError(
                f"An estimator predicts one class or number a row, not what {kind.name} data calls for."
            )
        try_model(plan, request)
        small = len(frame) < ONE_THREAD_ROWS
        torch.set_num_threads(request.training.threads or (1 if small else threads_for(plan)))
        resolve_measured(plan, request)
        recipe, learner = plan.recipe, plan.learner()
        outcome = train(
            learner.step,
            plan.state(),
            plan.batches(),
            steps=recipe.steps,
            evaluate=plan.evaluate,
            evaluate_every=recipe.evaluate_every,
            watch=plan.watch,
            patience=recipe.patience,
            rounds=Rounds(recipe.steps, recipe.extensions) if recipe.extensions else None,
        )
        model = learner.model(outcome.state).cpu().eval()
        validation = plan.view(model, "validation")
        calibration = validation if recipe.folds else plan.view(model, "calibration")
        trust = plan.calibrated(model, request.training.level)
        holdout = calibration.holdout()
        prediction = holdout_prediction(plan.task, holdout, calibration.groups, trust.shares) / trust.temperature
        return Fitted(recipe, plan.task, plan.encoder, model, trust), (prediction, holdout.y, holdout.weights)
    finally:
        set_random_state(rng)
        torch.set_num_threads(threads)
