"""Facts: everything the report shows, from a finished run. Equal runs give equal facts: no times, no paths of the folder."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wonderland.core import write_spec
from wonderland.core.options import described, flags
from wonderland.core.recipe import Recipe
from wonderland.core.schema import whole
from wonderland.kinds import KINDS
from wonderland.road.leaderboard import read_leaderboard
from wonderland.road.plan import Plan, versions
from wonderland.road.request import Request
from wonderland.road.training import Training
from wonderland.ship import Run
from wonderland.train.records import read_records
from wonderland.understand import cost


def facts(run: Run, plan: Plan) -> dict[str, Any]:
    """The facts of a run as plain values, for the report."""
    dataset, record = plan.dataset, run.record["measured"]["test"]
    source = next(
        (dataset.origin[key] for key in ("path", "bundled", "url") if dataset.origin.get(key)), "data in memory"
    )
    board = read_leaderboard(run.folder)
    common = {
        "title": dataset.name,
        "source": json.dumps(source)[1:-1],
        "kind": plan.kind.name,
        "target": vars(dataset).get("target"),
        "classes": run.classes,
        "rows": len(dataset),
        "noun": dataset.noun,
        "metrics": {"test": record["metrics"]},
        "curves": curves(run),
        "columns": dataset.summary(),
        "findings": [finding.to_json() for finding in dataset.findings],
        "split": {name: plan.examples.count(part) for name, part in plan.parts.parts.items() if len(part)},
        "split_note": split_note(plan),
        "cost": costs(run, plan),
        "config": run.config,
        "commands": commands(run),
        "leaderboard": None if board is None else {"rows": board["rows"], "sentence": board["sentence"]},
        "versions": versions(),
        "fingerprint": dataset.fingerprint,
    }
    task_facts = plan.task.facts(plan.view(run.model, "test"), run.trust, record, dataset)
    known = common | task_facts | plan.kind.facts(run, plan)
    return known | plan.kind.explain(run, plan, known)


def curves(run: Run) -> list[dict[str, Any]]:
    """Learning curves from metrics.jsonl; the watched measure has its best step."""
    rows = records(run.folder / "metrics.jsonl")
    if not rows:
        return []
    steps, watched = [row["step"] for row in rows], f"validation/{run.task.watch}"
    kept = rows if run.task.keeps_best else []
    best = min((row for row in kept if watched in row), key=lambda row: row[watched], default=None)
    result = []
    for name, label, logarithmic in run.task.curves():
        curve: dict[str, Any] = {"name": label, "steps": steps, "log": logarithmic}
        if any(name in row for row in rows):
            curve["train"] = [row.get(name) for row in rows]
        curve["validation"] = [row.get(f"validation/{name}") for row in rows]
        if name == run.task.watch and best is not None:
            curve["best"] = best["step"]
        result.append(curve)
    return result


def records(path: Path) -> list[dict[str, Any]]:
    """The rows of metrics or times by step; damaged lines are skipped."""
    return [row for row in read_records(path) if _is_record(row)]


def _is_record(row: Any) -> bool:
    """Whether a row has a step, and numbers only; NaN is one, where a measure has no value."""
    if not isinstance(row, dict) or isinstance(row.get("step"), bool) or not isinstance(row.get("step"), int):
        return False
    return 0 <= row["step"] < 1 << 60 and all(isinstance(v, float) or whole()(v) is None for v in row.values())


def costs(run: Run, plan: Plan) -> dict[str, Any]:
    """The cost of the model and of its training, by the steps that were done."""
    batch = plan.examples.first(plan.parts.parts["test"]).to(plan.device)
    rows = records(run.folder / "metrics.jsonl")
    done = rows[-1]["step"] if rows else plan.recipe.steps
    return cost(run.model, plan.task.inputs(batch)).to_json() | {
        "model_bytes": (run.folder / "model.safetensors").stat().st_size,
        "steps": done,
        "steps_planned": plan.recipe.steps,
        "epochs": done / plan.batches().per_epoch,
        "threads": run.config["threads"],
        "device": run.config["device"],
    }


def training_seconds(folder: Path) -> float | None:
    """Time spent training, from times.jsonl: the sum over all processes that worked on the run."""
    total = last = 0.0
    for now in (float(row.get("seconds", 0)) for row in records(folder / "times.jsonl")):
        if now < last:
            total += last
        last = now
    return round(total + last, 3) or None


def split_note(plan: Plan) -> str:
    """A note on the split, with an explanation of folds where they are used."""
    ensemble = plan.recipe.ensemble
    if ensemble is None or not ensemble.folds:
        return plan.parts.note
    each = ensemble.members // ensemble.folds
    text = (
        f"The training rows are cut into {ensemble.folds} folds. Each fold is measured by {each} members that were not trained on it; "
        "calibration and conformal scores come from those measurements, predictions from all members together."
    )
    return f"{text} {plan.parts.note}".strip()


def commands(run: Run) -> list[dict[str, str]]:
    """Commands to repeat the run, and what to do next, for the folder of the run."""
    further = [{"text": text, "command": command} for text, command in run.task.next_commands(".")]
    return [*refit_command(run.config), *further]


def refit_command(config: Mapping[str, Any]) -> list[dict[str, str]]:
    """The command that repeats the run with this config.json."""
    origin = config["source"]["origin"]
    source = origin.get("bundled") or origin.get("path") or origin.get("url")
    if not source:
        return []
    request, recipe = Request.from_json(config["request"]), Recipe.from_json(config["recipe"])
    kind = KINDS[config["source"]["kind"]]
    training = {name: vars(request.training)[name] for name in described(Training)}
    # Measured values (budget, lr auto) could differ in a second measurement, so their results are given instead.
    if training["budget"] is not None:
        training |= {"budget": None, "steps": recipe.steps}
    if training["lr"] == "auto":
        training["lr"] = recipe.lr
    if training["optimizer"] is not None:
        training["optimizer"] = write_spec(recipe.optimizer)
        training["lr"] = recipe.lr
    training["threads"] = config["threads"]
    if origin.get("test"):
        training["test"] = origin["test"].get("path") or origin["test"].get("bundled") or training["test"]
    kind_flag = [] if request.kind is None else ["--kind", request.kind]
    words = [*kind_flag, *flags(kind.Options, request.options), *flags(Training, training)]
    command = " ".join(["wonderland fit", shlex.quote(str(source)), *words, "--out NEWFOLDER"])
    return [{"text": "Fit it again, to the same bits on the same machine", "command": command}]
