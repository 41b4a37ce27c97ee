"""Facts of a language model: what its report shows."""

import json
import shlex
from collections import Counter
from typing import Any

import numpy as np
import torch
from torch import nn

from wonderland.core import peak_megabytes
from wonderland.data.text.tokenizer import Tokenizer
from wonderland.generation.prompts import context as positions
from wonderland.nn import Attention
from wonderland.road.facts import _lines, again, training_seconds
from wonderland.kinds.corpus.recipe import LanguagePlan
from wonderland.road.plan import versions
from wonderland.tasks.writing import LanguageRun
from wonderland.understand import cost
from wonderland.understand.format import number, percent

LEVELS = (0.5, 0.7, 0.8, 0.9, 0.95)


def language_facts(run: LanguageRun, plan: LanguagePlan) -> dict[str, Any]:
    """What there is to say about a run, as plain values."""
    dataset, measured = plan.dataset, run.facts["measured"]["test"]
    return {
        "title": dataset.name,
        "source": json.dumps(dataset.origin.get("path") or "data in memory")[1:-1],
        "kind": "text",
        "task": "language modelling",
        "noun": "tokens",
        "choices": "tokens",
        "rows": sum(len(file) for file in plan.parts.files.values()),
        "verdict": verdict(measured),
        "metrics": {"test": measured["metrics"]},
        "curves": curves(run),
        "reliability": measured["reliability"] | {
            "ece_before": measured["ece"]["before"],
            "ece_after": measured["ece"]["after"],
            "temperature": run.trust.temperature,
        },
        "conformal": measured["conformal"],
        "samples": samples(run, plan),
        "neighbours": neighbours(run, plan),
        "attention": attention(run, plan),
        "columns": dataset.summary(),
        "findings": [finding.to_json() for finding in dataset.findings],
        "split": {name: len(file) for name, file in plan.parts.files.items()},
        "split_note": "Whole documents are dealt to the parts at random." if plan.parts.many else
                      "The text is cut by place: it is learned from its beginning and tested on its end.",
        "cost": costs(run, plan),
        "config": run.config,
        "commands": commands(run),
        "versions": versions(),
        "fingerprint": dataset.fingerprint,
    }  # fmt: skip


def verdict(measured: dict[str, Any]) -> str:
    """The run in one sentence."""
    found, sets = measured["metrics"], measured["conformal"]
    return (
        f"{number(found['loss'])} nats a token on {number(measured['rows'])} unseen tokens: "
        f"{number(found['bits_per_byte'])} bits a byte, perplexity {number(found['perplexity'])}, the next token right "
        f"{percent(found['accuracy'])} of the time; sets of next tokens cover {percent(sets['coverage'])}, "
        f"with {sets['mean_size']:.2f} tokens on average."
    )


def curves(run: LanguageRun) -> list[dict[str, Any]]:
    """Learning curves in nats, bits a byte and perplexity."""
    rows = _lines(run.folder / "metrics.jsonl")
    if not rows:
        return []
    steps = [row["step"] for row in rows]
    best = min((row for row in rows if "validation/loss" in row), key=lambda row: row["validation/loss"], default=None)
    made = [{"name": "nats a token", "steps": steps, "train": [row.get("loss") for row in rows],
             "validation": [row.get("validation/loss") for row in rows], "best": best["step"] if best else None}]  # fmt: skip
    for key, name in (("bits_per_byte", "bits a byte"), ("perplexity", "perplexity")):
        values = [row.get(f"validation/{key}") for row in rows]
        made.append({"name": name, "steps": steps, "validation": values, "log": key == "perplexity"})
    return made


def samples(run: LanguageRun, plan: LanguagePlan, count: int = 240) -> list[dict[str, Any]]:
    """Three texts that the model writes, each with what it was given."""
    test, limit = plan.parts.files["test"], positions(run.model)
    count = count if limit is None else max(1, min(count, limit - 24))
    start = run.tokenizer.decode(np.asarray(test.tokens[:24], np.int64)) if not plan.parts.many else ""
    # From nothing, the likeliest text is often an empty line after the other.
    asked = [(start, 0.8), ("", 0.8), (start, 0.0)] if not plan.parts.many else [("", 1.0), ("", 0.8), ("", 0.8)]
    return [
        {"prompt": prompt, "temperature": heat, "text": run.generate(prompt, count, temperature=heat, seed=i)}
        for i, (prompt, heat) in enumerate(asked)
    ]


def shown(tokenizer: Tokenizer, i: int) -> str:
    """A token so that people see it: spaces and line ends as signs."""
    text = tokenizer.pieces()[i].decode("utf-8", "replace") or tokenizer.token(i)
    return text.replace("\n", "↵").replace("\t", "⇥").replace(" ", "·")


def neighbours(run: LanguageRun, plan: LanguagePlan, many: int = 16, near: int = 5) -> list[dict[str, Any]]:
    """Frequent tokens, and those whose vectors point the same way."""
    table = getattr(run.model, "embedding", None)
    if not isinstance(table, nn.Embedding):
        return []
    some = np.asarray(plan.parts.files["train"].tokens[:200_000], np.int64)
    counted = Counter(some.tolist())
    frequent = [token for token, count in counted.most_common(400) if run.tokenizer.pieces()[token].strip()]
    rare = {token for token in range(run.tokenizer.vocab) if counted[token] < 5}
    vectors = torch.nn.functional.normalize(table.weight.detach(), dim=1)
    pieces = run.tokenizer.pieces()
    if run.tokenizer.vocab > 1000:  # words tell more than letters
        frequent = [token for token in frequent if len(pieces[token].strip()) > 3] or frequent
    found = []
    for token in frequent[:many]:
        likeness = vectors @ vectors[token]
        order = [int(i) for i in likeness[: run.tokenizer.vocab].argsort(descending=True)]
        order = [i for i in order if i != token and i not in rare][:near]
        close = [{"token": shown(run.tokenizer, i), "cosine": float(likeness[i])} for i in order]
        found.append({"token": shown(run.tokenizer, token), "count": counted[token], "near": close})
    return found


def attention(run: LanguageRun, plan: LanguagePlan, length: int = 24) -> list[dict[str, Any]]:
    """Where each head of the first and of the last attention looks, on the beginning of the test part."""
    layers = [(name, module) for name, module in run.model.named_modules() if isinstance(module, Attention)]
    if not layers:
        return []
    tokens = np.asarray(plan.parts.files["test"].tokens[:length], np.int64)
    seen: dict[str, torch.Tensor] = {}
    chosen = layers[:1] + layers[-1:] if len(layers) > 1 else layers
    unhooked = {name: module.whole for name, module in chosen}

    def watch(name: str, module: Attention):
        def whole(x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
            seen[name] = module.maps(x, mask)[0]
            return unhooked[name](x, mask)

        return whole

    try:
        for name, module in chosen:
            module.whole = watch(name, module)  # pyright: ignore
        with torch.no_grad():
            run.model.eval()
            run.model(torch.from_numpy(tokens)[None])
    finally:
        for _, module in chosen:
            del module.whole
    names = [name for name, _ in layers]
    return [
        {
            "layer": names.index(name) + 1,
            "head": head + 1,
            "tokens": [shown(run.tokenizer, int(i)) for i in tokens],
            "weights": [[round(float(v), 4) for v in row] for row in maps[head]],
        }
        for name, maps in seen.items()
        for head in range(min(2, len(maps)))
    ]


def costs(run: LanguageRun, plan: LanguagePlan) -> dict[str, Any]:
    """What the model is and what it took."""
    context = plan.encoder.context
    found = cost(run.model, torch.zeros(1, context, dtype=torch.int64)).to_json()
    spent, recipe = training_seconds(_lines(run.folder / "times.jsonl")), plan.recipe
    seen = recipe.steps * recipe.batch_size * context
    return found | {
        "model_bytes": (run.folder / "model.safetensors").stat().st_size,
        "peak_bytes": int(peak_megabytes() * 2**20),
        "seconds": spent,
        "steps": recipe.steps,
        "epochs": recipe.steps / plan.batches().per_epoch,
        "tokens_per_second": seen / spent if spent else None,
        "context": context,
        "threads": run.config["threads"],
        "device": "cpu",
    }


def commands(run: LanguageRun) -> list[dict[str, str]]:
    """How to do it again, and what to do next."""
    folder = shlex.quote(str(run.folder))
    return [
        *again(run),
        {"text": "Write", "command": f"wonderland generate {folder} --prompt 'Once upon a time'"},
        {"text": "Talk", "command": f"wonderland chat {folder}"},
        {"text": "How likely is a text?", "command": f"wonderland predict {folder} TEXT -o likely.csv"},
        {"text": "Measure on other text", "command": f"wonderland evaluate {folder} TEXT"},
    ]
