"""Facts of a translator: what its report shows."""

import json
import shlex
from typing import Any

from wonderland.core import peak_megabytes
from wonderland.road.facts import _lines, again, training_seconds
from wonderland.road.plan import versions
from wonderland.kinds.pairs.recipe import TranslationPlan
from wonderland.tasks.translating import TranslationRun, translated
from wonderland.tasks.text import sentence_bleu
from wonderland.understand.format import number, percent


def translation_facts(run: TranslationRun, plan: TranslationPlan) -> dict[str, Any]:
    """What there is to say about a run, as plain values."""
    dataset, measured = plan.dataset, run.facts["measured"]["test"]
    metrics, recipe = measured["metrics"], plan.recipe
    spent = training_seconds(_lines(run.folder / "times.jsonl"))
    parameters = sum(parameter.numel() for parameter in run.model.parameters())
    return {
        "title": dataset.name,
        "source": json.dumps(dataset.origin.get("path") or "data in memory")[1:-1],
        "kind": "text",
        "task": "translation",
        "noun": "pairs",
        "choices": "tokens",
        "target": dataset.columns[1],
        "rows": len(dataset),
        "verdict": f"BLEU {number(metrics['bleu'])} and chrF {number(metrics['chrf'])} on {number(measured['pairs'])} unseen "
                   f"pairs, {percent(metrics['exact_match'])} of them to the letter; sets of next tokens cover "
                   f"{percent(measured['conformal']['coverage'])}.",
        "metrics": {"test": metrics},
        "curves": curves(run),
        "reliability": measured["reliability"] | {
            "ece_before": measured["ece"]["before"],
            "ece_after": measured["ece"]["after"],
            "temperature": run.trust.temperature,
        },
        "conformal": measured["conformal"],
        "mistakes": worst(run, plan),
        "columns": dataset.summary(),
        "findings": [finding.to_json() for finding in dataset.findings],
        "split": {name: len(rows) for name, rows in plan.parts.parts.items()},
        "split_note": plan.parts.note,
        "cost": {
            "parameters": parameters,
            "model_bytes": (run.folder / "model.safetensors").stat().st_size,
            "peak_bytes": int(peak_megabytes() * 2**20),
            "seconds": spent,
            "steps": recipe.steps,
            "epochs": recipe.steps / plan.batches().per_epoch,
            "examples_per_second": recipe.steps * recipe.batch_size / spent if spent else None,
            "threads": run.config["threads"],
            "device": "cpu",
        },
        "config": run.config,
        "commands": [
            *again(run),
            {"text": "Translate", "command": f"wonderland predict {shlex.quote(str(run.folder))} TEXTS -o written.csv"},
            {"text": "Measure on other pairs", "command": f"wonderland evaluate {shlex.quote(str(run.folder))} PAIRS"},
        ],
        "versions": versions(),
        "fingerprint": dataset.fingerprint,
    }  # fmt: skip


def curves(run: TranslationRun) -> list[dict[str, Any]]:
    """Learning curves in nats and perplexity."""
    rows = _lines(run.folder / "metrics.jsonl")
    if not rows:
        return []
    steps = [row["step"] for row in rows]
    best = min((row for row in rows if "validation/loss" in row), key=lambda row: row["validation/loss"], default=None)
    return [
        {"name": "nats a token", "steps": steps, "train": [row.get("loss") for row in rows],
         "validation": [row.get("validation/loss") for row in rows], "best": best["step"] if best else None},
        {"name": "perplexity", "steps": steps, "validation": [row.get("validation/perplexity") for row in rows], "log": True},
    ]  # fmt: skip


def worst(run: TranslationRun, plan: TranslationPlan, most: int = 60, shown: int = 12) -> list[dict[str, Any]]:
    """The translations furthest from the truth."""
    some = plan.some("test")
    assert some.targets is not None
    sources, targets = some.sources[:most], some.targets[:most]
    written = translated(run.model, plan.encoder, sources)
    scores = [
        sentence_bleu(a, b).score if a.strip() and b.strip() else 0.0 for a, b in zip(written, targets, strict=True)
    ]
    order = sorted(range(len(scores)), key=lambda i: scores[i])[:shown]
    return [
        {
            "true": targets[i][:300],
            "predicted": written[i][:300],
            "row": {plan.dataset.columns[0]: sources[i][:300], "BLEU": round(scores[i], 1)},
        }
        for i in order
        if scores[i] < 99.9
    ]
