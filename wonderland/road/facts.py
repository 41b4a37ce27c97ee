"""Facts: everything the report shows, gathered from a finished run."""

import base64
import io
import json
import shlex
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from wonderland.core import peak_megabytes
from wonderland.data import TableEncoder, TextEncoder
from wonderland.road.plan import Plan, versions
from wonderland.ship import Run, outputs
from wonderland.tasks import Classification, Regression
from wonderland.tasks.metrics import confusion
from wonderland.understand import cost, permutation_importance, saliency

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99)


def facts(run: Run, plan: Plan) -> dict[str, Any]:
    """What there is to say about a run, as plain values."""
    test = plan.held(run.model, plan.parts.test)
    found, y = test.outputs, test.y
    measured = run.facts["measured"]["test"]
    dataset = plan.dataset
    common = {
        "title": dataset.name,
        "source": json.dumps(dataset.origin.get("path") or dataset.origin.get("bundled") or "data in memory")[1:-1],
        "kind": dataset.kind,
        "task": dataset.task,
        "target": getattr(dataset, "target", None),
        "classes": run.classes,
        "rows": len(dataset),
        "metrics": {"test": measured["metrics"]},
        "curves": curves(run),
        "columns": dataset.summary(),
        "findings": [finding.to_json() for finding in dataset.findings],
        "split": {name: len(rows) for name, rows in plan.parts.parts.items() if len(rows)},
        "split_note": split_note(plan),
        "cost": costs(run, plan),
        "config": run.config,
        "commands": commands(run),
        "versions": versions(),
        "fingerprint": dataset.fingerprint,
    }
    special = classified if isinstance(run.task, Classification) else regressed
    return common | special(run, plan, found, y, measured) | importance(run, plan)


def classified(run: Run, plan: Plan, found: Tensor, y: ndarray, measured: dict[str, Any]) -> dict[str, Any]:
    """Confusion, reliability, sets and the most confident mistakes."""
    assert isinstance(run.task, Classification)
    classes = run.task.classes
    probabilities = np.exp(run.trust.log_probabilities(found))
    predicted = probabilities.argmax(1)
    sets = run.trust.sets(found)
    confidence = probabilities.max(1)
    wrong = np.flatnonzero(predicted != y)
    worst = wrong[np.argsort(-confidence[wrong], kind="stable")][:12]
    conformal = measured["conformal"] | {
        "empty": int((sets.sum(1) == 0).sum()),
        "levels": [
            {"level": level, "coverage": float(run.trust.sets(found, level)[np.arange(len(y)), y].mean())}
            for level in LEVELS
        ],
        "per_class": {
            classes[code]: float(sets[y == code, code].mean()) for code in range(len(classes)) if (y == code).any()
        },
    }
    return {
        "confusion": confusion(y, predicted, len(classes)).tolist(),
        "reliability": measured["reliability"] | {
            "ece_before": measured["ece"]["before"],
            "ece_after": measured["ece"]["after"],
            "temperature": run.trust.temperature,
        },
        "conformal": conformal,
        "balance": {label: int((plan.y == code).sum()) for code, label in enumerate(classes)},
        "mistakes": [
            {"true": classes[y[i]], "predicted": classes[predicted[i]], "probability": float(confidence[i])}
            | shown(plan, int(plan.parts.test[i]))
            for i in worst
        ],
    }  # fmt: skip


def regressed(run: Run, plan: Plan, found: Tensor, y: ndarray, measured: dict[str, Any]) -> dict[str, Any]:
    """Intervals, predicted against true, and the largest errors."""
    values = run.trust.values(found)
    low, high = run.trust.intervals(found)
    some = np.linspace(0, len(y) - 1, min(len(y), 400)).astype(int)
    worst = np.argsort(-np.abs(values - y), kind="stable")[:12]

    def row(i: int) -> dict[str, Any]:
        ends = {"low": float(low[i]), "high": float(high[i])} if np.isfinite(high[i]) else {}
        return {"true": float(y[i]), "predicted": float(values[i])} | ends

    def coverage(level: float) -> float:
        below, above = run.trust.intervals(found, level)
        return float(((below <= y) & (y <= above)).mean())

    return {
        "conformal": measured["conformal"] | {
            "examples": [row(i) for i in some],
            "levels": [{"level": level, "coverage": coverage(level)} for level in LEVELS],
        },
        "mistakes": [row(i) | shown(plan, int(plan.parts.test[i])) for i in worst],
    }  # fmt: skip


def shown(plan: Plan, index: int) -> dict[str, Any]:
    """A row or an image for people to look at."""
    example = plan.dataset.example(index)
    if plan.dataset.kind == "text":
        return {"row": {str(name): str(value)[:600] for name, value in example.items()}}
    if plan.dataset.kind == "image":
        return {"image": thumbnail(example["image"]), "path": example.get("path")}
    return {
        "row": {
            str(name): value if value is None or isinstance(value, int | float) else str(value)
            for name, value in example.items()
        }
    }


def thumbnail(image: ndarray, *, side: int = 96) -> str:
    """A small PNG as a data URI; tiny images are enlarged pixel by pixel."""
    from PIL import Image

    picture = Image.fromarray(image)
    scale = side / max(picture.size)
    size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
    picture = picture.resize(size, Image.Resampling.NEAREST if scale > 1 else Image.Resampling.BILINEAR)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def importance(run: Run, plan: Plan) -> dict[str, Any]:
    """Columns by how much the answer suffers without them, or pixels by how much they move it."""
    test = plan.parts.test
    if isinstance(plan.encoder, TextEncoder):
        return text_importance(run, plan, plan.encoder)
    if plan.dataset.kind == "image":
        rows = test[:256]
        if isinstance(run.task, Regression):
            return {}
        weights = saliency(run.model, plan.take(rows), torch.as_tensor(plan.y[rows]))
        return {"importance": {"height": weights.shape[0], "width": weights.shape[1], "values": weights.tolist()}}
    assert isinstance(plan.encoder, TableEncoder)
    column_of = plan.encoder.column_of
    names = list(dict.fromkeys(column_of))
    columns = [[i for i, column in enumerate(column_of) if column == name] for name in names]

    def score(x: Tensor, y: Tensor) -> Tensor:
        found = outputs(run.model, x)
        if isinstance(run.task, Regression):
            return -torch.as_tensor(np.abs(run.trust.values(found) - y.numpy()))
        return torch.as_tensor(run.trust.log_probabilities(found))[torch.arange(len(y)), y]

    limit = 1000
    drops = permutation_importance(score, plan.take(test), columns, torch.as_tensor(plan.y[test]), limit_rows=limit)
    rows = [{"name": name, "value": drop.value, "spread": drop.spread} for name, drop in zip(names, drops, strict=True)]
    what = "absolute error" if isinstance(run.task, Regression) else "log loss"
    return {"importance": sorted(rows, key=lambda row: -row["value"]), "importance_score": what}


def text_importance(run: Run, plan: Plan, encoder: TextEncoder, *, most: int = 400) -> dict[str, Any]:
    """Words by how much the truth loses, in nats, where they are hidden; and words whose vectors are neighbours."""
    rows = plan.parts.test[:most]
    x, y = plan.take(rows), torch.as_tensor(plan.y[rows])

    def score(tokens: Tensor) -> Tensor:
        found = torch.as_tensor(run.trust.log_probabilities(outputs(run.model, tokens)))
        return found[torch.arange(len(tokens)), y]

    base, drops = score(x), defaultdict(list)
    tokenizer = encoder.tokenizer
    hole = next(token for token in (tokenizer.mask, tokenizer.unknown, encoder.pad) if token is not None)
    frame = torch.tensor([encoder.pad, *(token for side in tokenizer.frame if encoder.framed for token in side)])
    words = ~torch.isin(x, frame)
    for place in range(min(x.shape[1], 32)):
        real, hidden = words[:, place], x.clone()
        hidden[real, place] = hole
        for token, drop in zip(x[real, place].tolist(), (base - score(hidden))[real].tolist(), strict=True):
            drops[token].append(drop)
    often = {
        token: values for token, values in drops.items() if len(values) >= 3 and token != encoder.tokenizer.unknown
    }
    means = {
        token: (float(np.mean(values)), float(np.std(values) / len(values) ** 0.5)) for token, values in often.items()
    }
    best = sorted(means, key=lambda token: -means[token][0])[:20]
    items = [{"name": _word(encoder, t), "value": means[t][0], "spread": means[t][1]} for t in best]
    return {"importance": items, "importance_score": "log loss", "importance_of": "word",
            "neighbours": _neighbours(run, encoder, best)}  # fmt: skip


def _word(encoder: TextEncoder, token: int) -> str:
    """A token for people: as it is written where it is a piece of a checkpoint's vocabulary."""
    written = encoder.tokenizer.pieces()[token].decode("utf-8", "replace").strip() if encoder.framed else ""
    return written or encoder.tokenizer.token(token)


def _neighbours(run: Run, encoder: TextEncoder, tokens: list[int]) -> list[dict[str, Any]]:
    table = getattr(getattr(run.model, "trunk", run.model), "embedding", None)
    if not isinstance(table, torch.nn.Embedding):
        return []
    vectors = torch.nn.functional.normalize(table.weight.detach(), dim=1)[: encoder.tokenizer.vocab]
    found = []
    for token in tokens[:12]:
        likeness = vectors @ vectors[token]
        order = [int(i) for i in likeness.argsort(descending=True)[:8] if int(i) not in (token, 0, 1)][:5]
        near = [{"token": _word(encoder, i), "cosine": float(likeness[i])} for i in order]
        found.append({"token": _word(encoder, token), "near": near})
    return found


def curves(run: Run) -> list[dict[str, Any]]:
    """Learning curves from metrics.jsonl."""
    path = run.folder / "metrics.jsonl"
    rows = _lines(path)
    if not rows:
        return []
    steps = [row["step"] for row in rows]
    watched = "validation/brier" if isinstance(run.task, Classification) else "validation/loss"
    best = min((row for row in rows if watched in row), key=lambda row: row[watched], default=None)
    loss = {
        "name": "loss",
        "steps": steps,
        "train": [row.get("loss") for row in rows],
        "validation": [row.get("validation/loss") for row in rows],
        "best": best["step"] if best else None,
        "log": True,
    }
    more = "accuracy" if isinstance(run.task, Classification) else "rmse"
    other = {"name": more, "steps": steps, "validation": [row.get(f"validation/{more}") for row in rows]}
    return [loss, other]


def _lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON lines file; a line that a kill or an editor spoilt is passed over."""
    rows = []
    for line in path.read_text(errors="replace").splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return [row for row in rows if isinstance(row, dict) and "step" in row]


def costs(run: Run, plan: Plan) -> dict[str, Any]:
    """What the model is and what it took."""
    found = cost(run.model, plan.take(plan.parts.test[:1])).to_json()
    recipe = plan.recipe
    spent = training_seconds(_lines(run.folder / "times.jsonl"))
    seen = recipe.steps * recipe.batch_size * max(1, recipe.members)
    return found | {
        "model_bytes": (run.folder / "model.safetensors").stat().st_size,
        "peak_bytes": int(peak_megabytes() * 2**20),
        "seconds": spent,
        "steps": recipe.steps,
        "epochs": recipe.steps / plan.batches().per_epoch,
        "examples_per_second": seen / spent if spent else None,
        "threads": run.config["threads"],
        "device": "cpu",
    }


def training_seconds(rows: list[dict[str, Any]]) -> float | None:
    """Time spent training, from times.jsonl: each process that worked on the run counts from its own start."""
    total = last = 0.0
    for now in (float(row.get("seconds", 0)) for row in rows):
        if now < last:
            total += last
        last = now
    return round(total + last, 3) or None


def split_note(plan: Plan) -> str:
    """How the rows were used, where it is not the plain way."""
    if not plan.recipe.folds:
        return plan.parts.note
    each = plan.recipe.members // plan.recipe.folds
    text = (
        f"The training rows are cut into {plan.recipe.folds} folds. Each fold is judged by {each} members that never saw it; "
        "calibration and conformal scores come from those judgements, predictions from all members together."
    )
    return f"{text} {plan.parts.note}".strip()


def commands(run: Run) -> list[dict[str, str]]:
    """How to do it again, and what to do next."""
    folder = shlex.quote(str(run.folder))
    return [
        *again(run),
        {"text": "Predict", "command": f"wonderland predict {folder} NEWDATA -o predictions.csv"},
        {"text": "Measure on other data", "command": f"wonderland evaluate {folder} DATA"},
    ]


def again(run: Run) -> list[dict[str, str]]:
    """The command that fits the same run once more."""
    origin = run.config["source"]["origin"]
    source = origin.get("bundled") or origin.get("path")
    found = []
    if source:
        options = []
        # What was measured the first time would come out otherwise the second: its result is asked for instead.
        recipe, asked = run.config["recipe"], dict(run.config["request"])
        if asked.get("budget") is not None:
            asked |= {"budget": None, "steps": recipe["steps"]}
        if asked.get("lr") == "auto":
            asked["lr"] = recipe["lr"]
        asked.pop("threads", None)  # said at the end, also where it was not asked for
        defaults = {"test": 0.2, "level": 0.9, "seed": 0}
        for name, value in asked.items():
            if value is None or value is False or value == [] or defaults.get(name) == value:
                continue
            flag = "--from" if name == "start" else "--" + name.replace("_", "-")
            values = value if isinstance(value, list) else [value]
            options += [flag] if value is True else [word for item in values for word in (flag, shlex.quote(str(item)))]
        words = ["wonderland fit", shlex.quote(str(source)), *options, "--threads", str(run.config["threads"])]
        found.append(
            {
                "text": "Fit it again, to the same bits on the same machine",
                "command": " ".join([*words, "--out NEWFOLDER"]),
            }
        )
    return found
