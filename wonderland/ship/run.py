"""Run: a fitted model with its preprocessing, its measured trust and its record, in one folder."""

import shlex
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from wonderland.core import MIB, Spec, WonderlandError, check_inputs, inside, load_tensors, read_json, sha256
from wonderland.data import CorpusEncoder, Dataset, Encoder, Finding, PairsEncoder, encoder_from_json
from wonderland.data.dataset import stop_if_strict
from wonderland.kinds.text.texts import Texts
from wonderland.ship.store import load_model, read_config
from wonderland.tasks import Classification, LanguageModelling, Regression, Task, Translation
from wonderland.trust import Trust, check_level


def outputs(model: nn.Module, x: Tensor, *, chunk: int = 2048) -> Tensor:
    """What the model says of every row, in pieces that fit in memory: (m, n, c), with m = 1 for a single model."""
    model.eval()
    with torch.inference_mode():
        found = [model(piece) for piece in x.split(chunk)]
        if not all(isinstance(out, Tensor) and out.dim() in (2, 3) for out in found):
            raise WonderlandError("A model must give a tensor of shape (rows, outputs).")
        joined = torch.cat([out if out.dim() == 3 else out[None] for out in found], 1)
    return joined.clone()


class Run:
    """A finished run: predicts, evaluates, and knows how far it can be trusted.

    Get one from `wonderland.fit(...)` or `wonderland.load(folder)`.
    """

    def __init__(
        self,
        folder: Path,
        config: dict[str, Any],
        task: Task,
        encoder: Encoder,
        model: nn.Module,
        facts: dict[str, Any],
    ):
        self.folder = folder
        self.config = config
        self.task = task
        self.encoder = encoder
        self.model = model
        self.facts = facts
        self.trust = Trust.from_json(task, facts)
        self._noticed: list[Finding] = []

    @property
    def metrics(self) -> dict[str, float]:
        """Metrics on the test rows."""
        return self.facts["measured"]["test"]["metrics"]

    @property
    def classes(self) -> list[str] | None:
        """Class names, if classes are what is predicted."""
        return self.task.classes if isinstance(self.task, Classification) else None

    @property
    def findings(self) -> list[str]:
        """What was repaired, left out or inferred in the data the run learned from, a sentence each."""
        return list(self.config["source"].get("findings", []))

    @property
    def noticed(self) -> list[Finding]:
        """What had to be repaired in the data that was last given."""
        return self._noticed

    def predict(self, source: Any, *, level: float | None = None, strict: bool = False) -> pd.DataFrame:
        """One row for each row of `source`: the answer, probabilities, and the set or interval at `level`.

        Columns: `prediction`, `probability`, `set`, and `p(class)` for each class; or `prediction`, `low`, `high`. What was
        read stands first where it is a text or a file.
        """
        level = self.trust.level if level is None else check_level(level)
        dataset = self.encoder.open(source, need_target=False)
        found = self._outputs(dataset, strict)
        table = self.table(found, level=level)
        paths = getattr(dataset, "paths", None)
        if paths is not None:
            table.insert(0, "path", [str(path) for path in paths])
        if isinstance(dataset, Texts) and dataset.column not in table:
            table.insert(0, dataset.column, dataset.texts)
        return table

    def table(self, found: Tensor, *, level: float | None = None) -> pd.DataFrame:
        """Members' outputs as the table that `predict` gives."""
        level = self.trust.level if level is None else check_level(level)
        if isinstance(self.task, Regression):
            low, high = self.trust.intervals(found, level)
            return pd.DataFrame({"prediction": self.trust.values(found), "low": low, "high": high})
        probabilities = np.exp(self.trust.log_probabilities(found))
        sets = self.trust.sets(found, level)
        best = probabilities.argmax(1)
        plausible = [[self.task.classes[code] for code in np.flatnonzero(row)] for row in sets]
        columns: dict[str, Any] = {
            "prediction": self.task.names(best),
            "probability": probabilities[np.arange(len(best)), best],
            "set": pd.Series(plausible, dtype=object),
        }
        columns |= {f"p({label})": probabilities[:, code] for code, label in enumerate(self.task.classes)}
        return pd.DataFrame(columns)

    def evaluate(self, source: Any, *, level: float | None = None) -> dict[str, Any]:
        """Metrics, calibration and coverage on data whose truth is known."""
        dataset = self.encoder.open(source, need_target=True)
        assert dataset.y is not None
        return self.trust.measure(self._outputs(dataset), dataset.y, level)

    def _outputs(self, dataset: Dataset, strict: bool = False) -> Tensor:
        x = self.encoder.encode(dataset)
        self._noticed = [*dataset.findings, *self.encoder.noticed]
        stop_if_strict(self._noticed, strict)
        return outputs(self.model, x)

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
    """Read a run from its folder. No code found in the folder is run, and nothing in it is trusted before it is checked.

    Args:
        path: the run folder.
        model: your own module, for a run that was fitted with one; its weights are filled in.
    """
    folder = Path(path)
    config = read_config(folder)
    if not (folder / "trust.json").exists():
        raise WonderlandError(
            f"The run in {folder} is not finished. Continue it with: wonderland fit --resume {shlex.quote(str(folder))}"
        )
    task = read_task(config)
    spec = read_model_spec(config, own=model is not None, folder=folder)
    encoder = load_encoder(folder)
    facts = read_json(inside(folder, "trust.json"))
    inputs = check_inputs(folder, facts)
    _check_measured(folder, facts)
    built = load_model(folder, spec, model)
    for name, digest in inputs.items():
        if sha256(inside(folder, name)) != digest:
            raise WonderlandError(
                f"{folder / name} is not the file that trust.json was measured with: one of them was changed."
            )
    if isinstance(task, LanguageModelling):
        from wonderland.tasks.writing import LanguageRun

        if not isinstance(encoder, CorpusEncoder) or encoder.tokenizer.vocab > task.vocab:
            raise WonderlandError(
                f"{folder / 'preprocess.json'} has another vocabulary than config.json: the two do not belong together."
            )
        if getattr(built, "vocab", None) != task.vocab:
            raise WonderlandError(
                f"The model in {folder} has another vocabulary than its task: config.json is damaged."
            )
        return LanguageRun(folder, config, task, encoder, built, facts)
    if isinstance(task, Translation):
        from wonderland.tasks.translating import TranslationRun

        fits = isinstance(encoder, PairsEncoder) and encoder.tokenizer.vocab <= task.vocab
        if not isinstance(encoder, PairsEncoder) or not fits or encoder.read != task.read:
            raise WonderlandError(
                f"{folder / 'preprocess.json'} has another vocabulary than config.json: the two do not belong together."
            )
        if getattr(built, "vocab", None) != task.vocab or not hasattr(built, "prepare"):
            raise WonderlandError(
                f"The model in {folder} has another vocabulary than its task: config.json is damaged."
            )
        return TranslationRun(folder, config, task, encoder, built, facts)
    run = Run(folder, config, task, encoder, built, facts)
    members = getattr(built, "members", 1)
    groups, kinds = config["recipe"].get("folds") or 1, len(run.trust.shares)
    if run.trust.groups != groups or members % groups or (members // groups) % kinds or not run.trust.scores.count:
        raise WonderlandError(f"{folder / 'trust.json'} does not fit the run's members: it is damaged.")
    if run.classes != getattr(encoder, "classes", None):
        raise WonderlandError(
            f"{folder / 'preprocess.json'} has other classes than config.json: the two do not belong together."
        )
    return run


def _check_measured(folder: Path, facts: dict[str, Any]) -> None:
    try:
        metrics, findings = facts["measured"]["test"]["metrics"], facts["measured"]["test"]["conformal"]
        fine = all(value is None or isinstance(value, int | float) for value in metrics.values()) and isinstance(
            findings, dict
        )
    except (KeyError, TypeError, AttributeError):
        fine = False
    if not fine:
        raise WonderlandError(f"{folder / 'trust.json'} is not a run's record of trust: it is damaged or not ours.")


def read_task(config: dict[str, Any]) -> Any:
    """The task a run learned."""
    recipe = config.get("recipe")
    if not isinstance(recipe, dict):
        raise WonderlandError("config.json has no recipe: it is damaged or not ours.")
    spec = Spec.from_json(recipe.get("task"))
    if spec.name not in ("tasks.Classification", "tasks.Regression", "tasks.LanguageModelling", "tasks.Translation"):
        raise WonderlandError(f"{spec.name} is not a task.")
    classes = spec.arguments.get("classes")
    if spec.name == "tasks.Classification" and not (
        isinstance(classes, list)
        and all(isinstance(label, str) for label in classes)
        and len(set(classes)) == len(classes)
    ):
        raise WonderlandError("The classes in config.json are not a list of different names: it is damaged.")
    try:
        return spec.build()
    except (TypeError, ValueError, OverflowError) as error:
        raise WonderlandError(f"The task in config.json cannot be built: {error}") from error


def read_model_spec(config: dict[str, Any], *, own: bool, folder: Path) -> Spec | None:
    """The description of the run's model, or None when it is the user's own."""
    found = config["recipe"].get("model")
    if isinstance(found, dict) and isinstance(found.get("own"), str):
        if not own:
            raise WonderlandError(
                f"The run in {folder} was fitted with a module of your own, {found['own'][:80]!r}: "
                "load it with wonderland.load(path, model=...)."
            )
        return None
    if own:
        raise WonderlandError(f"The run in {folder} has a model of its own: load it without model=.")
    spec = Spec.from_json(found)
    if not spec.name.startswith("models."):
        raise WonderlandError(f"{spec.name} is not a model.")
    return spec


def load_encoder(folder: Path) -> Encoder:
    """The fitted preprocessing of a run."""
    tensors, _ = load_tensors(inside(folder, "preprocess.safetensors"))
    return encoder_from_json(read_json(inside(folder, "preprocess.json"), 64 * MIB), tensors)
