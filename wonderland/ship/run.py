"""Run: a fitted model with its preprocessing, calibration, measured coverage and record, in one folder."""

import functools
import shlex
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
from torch import nn

from wonderland.core import (
    Spec,
    WonderlandError,
    check_inputs,
    find,
    inside,
    load_tensors,
    nearest,
    read_json,
    sha256,
)
from wonderland.core.damage import guard_calls, refuse_damaged
from wonderland.core.limits import check
from wonderland.core.options import make
from wonderland.core.recipe import Recipe
from wonderland.core.schema import require
from wonderland.data.dataset import Dataset, Finding, stop_if_strict
from wonderland.data.encoder import Encoder
from wonderland.data.reading import READING
from wonderland.kinds import KINDS, NAMES, predict_options_of
from wonderland.ship.context import corrected_for_labels, shift_of
from wonderland.ship.given import SAME_DATA, is_recorded, one_thread, with_id, written
from wonderland.ship.posterior import METHODS, read_posterior
from wonderland.ship.schema import TRUST
from wonderland.ship.store import load_model, read_config
from wonderland.tasks import Task, View
from wonderland.trust import Shift, check_level
from wonderland.trust.shift import LABEL_METHODS
from wonderland.trust.weight_draws import WeightDraws

DAMAGED = "if the data are right, the run is damaged"


class Run:
    """A finished run: predicts with calibrated uncertainty, and evaluates.

    Get one from `wonderland.fit(...)` or `wonderland.load(folder)`.
    """

    def __init__(
        self,
        folder: Path,
        config: dict[str, Any],
        task: Task,
        encoder: Encoder,
        model: nn.Module,
        record: dict[str, Any],
    ):
        self.folder = folder
        self.config = config
        self.task = task
        self.encoder = encoder
        self.model = model
        self.record = record
        self.trust = task.trust(record)
        self.untrusted = False  # read from a folder, whose files may still be wrong in ways that no check sees
        self._noticed: list[Finding] = []

    @functools.cached_property
    def recipe(self) -> Recipe:
        """The recipe that the model was built and trained with."""
        return Recipe.from_json(self.config["recipe"])

    @functools.cached_property
    def posterior(self) -> WeightDraws | None:
        """Draws of the weights, where the run was fitted with uncertainty from them."""
        asked = getattr(getattr(self.trust, "options", None), "uncertainty", None)
        return read_posterior(self.folder, self.model) if asked in METHODS else None

    @property
    def metrics(self) -> dict[str, float]:
        """Metrics on the test part."""
        return self.record["measured"]["test"]["metrics"]

    @property
    def classes(self) -> list[str] | None:
        """Class names, for classification."""
        return self.task.classes

    @property
    def findings(self) -> list[str]:
        """What was repaired, left out or inferred in the training data, a sentence each."""
        return list(self.config["source"].get("findings", []))

    @property
    def noticed(self) -> list[Finding]:
        """Findings about the data of the last call of `predict` or `evaluate`."""
        return self._noticed

    @property
    def abilities(self) -> list[str]:
        """Names of further abilities of this run, such as generate."""
        return sorted(self.task.abilities)

    def ability(self, name: str) -> Any:
        """An ability of the run's task by name, such as `run.ability("generate")("Once upon a time")`."""
        if name not in self.task.abilities:
            verbs = ["predict", "evaluate", *self.abilities]
            raise WonderlandError(
                f"The run in {self.folder} is a {self.task.name} run and cannot {name}.{nearest(name, self.abilities)} "
                f"It can {', '.join(verbs[:-1])} and {verbs[-1]}."
            )
        with self.guarded():
            ability = self.task.abilities[name](self)
        return guard_calls(ability, f"The run in {self.folder}", DAMAGED) if self.untrusted else ability

    def predict(
        self,
        source: Any = None,
        *,
        level: float | None = None,
        strict: bool = False,
        id: str | None = None,
        label_shift: str | None = None,
        **options: Any,
    ) -> pd.DataFrame:
        """One row for each example of `source`: the prediction, and its conformal set or interval at `level`.

        A frame keeps its index. `id` names a column of the new data that comes first in the result, as it is written there.

        Classes: `prediction`, `probability`, `set`, and `p(class)` for each class. Numbers: `prediction`, `low`, `high`. Texts
        and file names come first. Without a source, the data that the run keeps are predicted, such as the nodes of its graph.
        `label_shift` ("em" or "black-box") estimates the shares of classes among these rows and corrects the probabilities.
        `options` are those that the kind of data brings, such as `top`, and those of a table file, such as `encoding`.
        """
        with self.guarded():
            return self._predict(source, level, strict, id, label_shift, options)

    def _predict(
        self,
        source: Any,
        level: float | None,
        strict: bool,
        id: str | None,
        label_shift: str | None,
        options: dict[str, Any],
    ) -> pd.DataFrame:
        level = self.trust.level if level is None else check_level(level)
        given, options = written(self.encoder, source, options, id)
        asked = self._asked(options)
        with one_thread(len(source) if isinstance(source, pd.DataFrame) else None):
            return self._table(source, given, level, strict, id, label_shift, asked)

    def _table(
        self, source: Any, given: Any, level: float, strict: bool, id: str | None, label_shift: str | None, asked: Any
    ) -> pd.DataFrame:
        dataset = self.encoder.open_stored() if source is None else self.encoder.open(given, need_target=False)
        view = replace(self.view(dataset, strict), asked=asked)
        table = self.task.predictions(view, self._corrected(view, label_shift), level)
        for column, values in reversed(dataset.labels().items()):
            if column not in table:
                table.insert(0, column, values)
        if isinstance(source, pd.DataFrame) and len(source) == len(table):
            table.index = source.index
        if id is not None:
            with_id(table, given, id)
        return table

    def evaluate(
        self, source: Any, *, level: float | None = None, label_shift: str | None = None, **options: Any
    ) -> dict[str, Any]:
        """Metrics, calibration and coverage on data whose targets are known; `label_shift` and `options` as in `predict`."""
        with self.guarded():
            given, rest = written(self.encoder, source, options, None)
            if rest:
                name = next(iter(rest))
                raise WonderlandError(f"evaluate has no option {name!r}.{nearest(name, READING)}")
            dataset = self.encoder.open(given, need_target=True)
            view = self.view(dataset)
            measured = self.task.evaluate(view, self._corrected(view, label_shift), level)
            if is_recorded(source, self.config["source"]["origin"]):
                self._noticed = [*self._noticed, Finding("training data", str(source), len(dataset), SAME_DATA)]
            return measured

    def _corrected(self, view: View, label_shift: str | None) -> Any:
        """The calibration, corrected for other shares of classes where it was asked for; says what was found."""
        if label_shift is None:
            return self.trust
        if label_shift not in LABEL_METHODS:
            known = " or ".join(LABEL_METHODS)
            raise WonderlandError(
                f"label_shift is {known}, not {label_shift!r}.{nearest(str(label_shift), LABEL_METHODS)}"
            )
        trust, estimate = corrected_for_labels(self, view, label_shift)
        shares = ", ".join(
            f"{name!r} {new:.1%} (before {old:.1%})"
            for name, old, new in zip(self.classes or (), estimate.old[:5], estimate.new[:5], strict=False)
        )
        if trust.label_scores is not None:
            corrected = "Probabilities and sets are corrected"
        else:
            corrected = "Probabilities, but not sets, are corrected"
        text = f"{corrected} for the estimated shares of classes: {shares}."
        self._noticed = [*self._noticed, Finding("label shift", "classes", view.count, text)]
        return trust

    def embed(self, source: Any) -> Any:
        """A vector of length 1 for each example of `source`, as the model computes it before its last layer: an array (n, d)."""
        from wonderland.ship.embedding import embed

        with self.guarded():
            return embed(self, source)

    def shift(self, source: Any, *, level: float = 0.05) -> Shift:
        """Test for distribution shift between these rows and the calibration rows, of which the run keeps a sample.

        Each column, the predictions, and all columns together are tested. Where nothing changed, a shift is found in at most a
        share `level` of cases.
        """
        with self.guarded():
            dataset = self.encoder.open(source, need_target=False)
            return shift_of(self, self.view(dataset), dataset, level)

    def guarded(self) -> AbstractContextManager[None]:
        """For a run of unknown origin: what fails inside is a sentence that says where to look."""
        return refuse_damaged(f"The run in {self.folder}", DAMAGED) if self.untrusted else nullcontext()

    def _asked(self, options: dict[str, Any]) -> Any:
        """Options of predict that the kind of data brings, checked; None where it brings none."""
        owner = predict_options_of(self.encoder.kind) if self.encoder.kind in NAMES else None
        if owner is None and options:
            raise WonderlandError(f"predict has no option {next(iter(options))!r} for {self.encoder.kind}.")
        return None if owner is None else make(owner, options)

    def view(self, dataset: Dataset, strict: bool = False) -> View:
        """All examples of a dataset that the encoder opened, encoded, with the model."""
        examples = self.encoder.examples(dataset)
        self._noticed = [*dataset.findings, *self.encoder.noticed]
        stop_if_strict(self._noticed, strict)
        return View(
            self.model, examples, examples.everything(), self.recipe.ensemble, dataset=dataset, posterior=self.posterior
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {value:.4g}" for name, value in self.metrics.items() if value is not None)
        notes = f"; {len(self.findings)} notes on the data in .findings" if self.findings else ""
        return f"<Run {self.folder}: {shown}{notes}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{'' if value is None else f'{value:.4g}'}</td></tr>"
            for name, value in self.metrics.items()
        )
        return (
            f"<p><b>{escape(str(self.folder))}</b></p><table><tr><th>test metric</th><th>value</th></tr>{rows}</table>"
        )


def load(path: str | Path, *, model: nn.Module | None = None) -> Run:
    """Read a run from its folder. Nothing in the folder is executed, and every file is checked before it is used.

    Args:
        path: the run folder.
        model: your own module, for a run that was fitted with one; its weights are filled in.
    """
    folder = Path(path)
    with refuse_damaged(folder / "config.json"):
        config = read_config(folder)
        if not (folder / "trust.json").exists():
            raise WonderlandError(
                f"The run in {folder} is not finished. Continue it with: wonderland fit --resume {shlex.quote(str(folder))}"
            )
        task = read_task(config)
        spec = read_model_spec(config, own=model is not None, folder=folder)
    with refuse_damaged(folder / "preprocess.json"):
        encoder = load_encoder(folder)
    with refuse_damaged(folder / "trust.json"):
        record = read_json(inside(folder, "trust.json"))
        inputs = check_inputs(folder, record)
        require(record, TRUST, folder / "trust.json")
    with refuse_damaged(folder / "model.safetensors") if model is None else nullcontext():
        built = load_model(folder, spec, model)
    for name, digest in inputs.items():
        if sha256(inside(folder, name)) != digest:
            raise WonderlandError(
                f"{folder / name} is not the file that trust.json was measured with: one of them was changed."
            )
    with refuse_damaged(folder):
        run = check_run(Run(folder, config, task, encoder, built, record))
    run.untrusted = model is None
    return run


def check_run(run: Run) -> Run:
    """The run, if its files match each other."""
    if run.encoder.kind != run.config["source"]["kind"]:
        problem: str | None = (
            "preprocess.json is of another kind of data than config.json: the two do not belong together."
        )
    elif run.config.get("preprocessing", digest := run.encoder.digest()) != digest:
        problem = "preprocess.json is not the preprocessing that config.json records: one of them was changed."
    elif (ensemble := run.recipe.ensemble) is not None and ensemble.members != getattr(run.model, "members", 1):
        problem = f"config.json names {ensemble.members:,} ensemble members, and the model has {getattr(run.model, 'members', 1)}."
    else:
        try:
            problem = run.task.check_run(run.model, run.encoder, run.trust, run.recipe.folds or 1)
        except (AttributeError, TypeError, LookupError):
            problem = "preprocess.json is of another task than config.json: the two do not belong together."
    if problem:
        raise WonderlandError(f"{run.folder}: {problem}")
    return run


def read_task(config: dict[str, Any]) -> Task:
    """The task of a run."""
    recipe = config.get("recipe")
    if not isinstance(recipe, dict):
        raise WonderlandError("config.json has no recipe: it is damaged or not ours.")
    spec = Spec.from_json(recipe.get("task"))
    if not spec.name.startswith("tasks."):
        raise WonderlandError(f"{spec.name} is not a task.")
    try:
        task = spec.build()
    except WonderlandError:
        raise
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise WonderlandError(f"The task in config.json cannot be built: {reason}") from error
    if not isinstance(task, Task):
        raise WonderlandError(f"{spec.name} is not a task.")
    return task


def read_model_spec(config: dict[str, Any], *, own: bool, folder: Path) -> Spec | None:
    """The description of the run's model, or None when it is the user's own."""
    model = config["recipe"].get("model")
    if isinstance(model, dict) and isinstance(model.get("own"), str):
        if not own:
            raise WonderlandError(
                f"The run in {folder} was fitted with a module of your own, {model['own'][:80]!r}: "
                "load it with wonderland.load(path, model=...)."
            )
        return None
    if own:
        raise WonderlandError(f"The run in {folder} was not fitted with your own module: load it without model=.")
    spec = Spec.from_json(model)
    part = find(spec.name)
    if not isinstance(part, type) or not issubclass(part, nn.Module):
        raise WonderlandError(f"{spec.name} is not a model.")
    return spec


def load_encoder(folder: Path) -> Encoder:
    """The fitted preprocessing of a run."""
    saved = read_json(inside(folder, "preprocess.json"), "encoder_bytes")
    kind = saved.get("kind") if isinstance(saved, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise WonderlandError("preprocess.json is for no kind of data that is known here: it is damaged or not ours.")
    path = inside(folder, "preprocess.safetensors")
    if path.is_file():
        check("encoder_tensor_bytes", path.stat().st_size, path)
    tensors, _ = load_tensors(path)
    return KINDS[kind].read_encoder(saved, tensors)
