"""Which words mattered: how the prediction of a text changes when one of its words is left out."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wonderland.data.text.grams import split_tokens
from wonderland.kinds.text.encoder import TextEncoder
from wonderland.kinds.text.texts import Texts
from wonderland.models import TextLinear
from wonderland.tasks import metrics
from wonderland.tasks.view import outputs
from wonderland.understand.clusters import clustered

OPERATIONS = 2e11  # a bound on the work of all texts with a word left out
FEWEST_VARIANTS, MOST_VARIANTS = 40, 4000
MOST_CLUSTERED, LEAST_CLUSTERED, MOST_CLUSTERS = 2000, 60, 12
WORDS = 24  # words of a text that are left out one by one
REPEATS = 3  # texts that a word has to occur in


def word_importance(run: Any, plan: Any) -> list[dict[str, Any]]:
    """The most important words of the test part: by how much leaving a word out lowers the score of the true answer, on average."""
    rows, drops = plan.parts.test, defaultdict(list)
    rows = rows[:: max(1, len(rows) * WORDS // _most_variants(run, plan.encoder))]
    for row, changes in zip(rows, _changes(run, plan, rows), strict=True):
        assert plan.dataset.y is not None
        assert row >= 0
        for word, change in changes:
            if any(letter.isalnum() for letter in word):
                drops[word].append(change)
    known = {word: values for word, values in drops.items() if len(values) >= REPEATS}
    means = {word: (float(np.mean(v)), float(np.std(v) / len(v) ** 0.5)) for word, v in known.items()}
    best = sorted(means, key=lambda word: (-means[word][0], word))[:20]
    return [{"name": word, "value": means[word][0], "spread": means[word][1]} for word in best if means[word][0] > 0]


def explained_mistakes(run: Any, plan: Any, mistakes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The mistakes, each with the words that speak most against the true answer; of a large model the first few, to bound the time."""
    places = [mistake["place"] for mistake in mistakes if "place" in mistake]
    if len(places) != len(mistakes) or not places:
        return list(mistakes)
    most = max(1, _most_variants(run, plan.encoder) // (WORDS + 1))
    explained, later = [], list(mistakes[most:])
    for mistake, changes in zip(mistakes[:most], _changes(run, plan, np.array(places[:most])), strict=True):
        against = sorted((change, word) for word, change in changes if change < 0)[:5]
        explained.append({**mistake, "words": [{"word": word, "change": -change} for change, word in against]})
    return explained + later


def _most_variants(run: Any, encoder: TextEncoder) -> int:
    """How many texts with a word left out are worth computing: a function of the model's size, so that equal runs are equal."""
    tables = {id(m.weight) for m in run.model.modules() if isinstance(m, nn.Embedding | TextLinear)}
    used = sum(p.numel() for p in run.model.parameters() if id(p) not in tables) or 1
    return int(np.clip(OPERATIONS / (2 * used * encoder.length), FEWEST_VARIANTS, MOST_VARIANTS))


def _changes(run: Any, plan: Any, rows: np.ndarray) -> list[list[tuple[str, float]]]:
    """For each text, its first distinct words and how far the score of the true answer falls without them."""
    dataset, encoder = plan.dataset, plan.encoder
    variants, owners, words = [], [], []
    for number, row in enumerate(rows):
        cells = dataset.cells[row]
        variants.append(cells)
        owners.append(number)
        words.append("")
        distinct = list(dict.fromkeys(token for cell in cells for token in split_tokens(cell)))[:WORDS]
        for word in distinct:
            variants.append(tuple(without(cell, word) for cell in cells))
            owners.append(number)
            words.append(word)
    y = torch.as_tensor(dataset.y[rows][np.array(owners, np.int64)])
    scores = _scores(run, encoder, variants, y)
    changes: list[list[tuple[str, float]]] = [[] for _ in rows]
    base = 0.0
    for owner, word, score in zip(owners, words, scores.tolist(), strict=True):
        if word:
            changes[owner].append((word, base - score))
        else:
            base = score
    return changes


def without(text: str, word: str) -> str:
    """The text without a word, as `split_tokens` sees it.

    >>> without("The cat, the dog", "the")
    'cat , dog'
    """
    return " ".join(token for token in split_tokens(text) if token != word)


def _scores(run: Any, encoder: TextEncoder, cells: list[tuple[str, ...]], y: Tensor) -> Tensor:
    dataset = Texts("texts", cells, names=encoder.names)
    noticed = encoder.noticed
    examples = encoder.examples(dataset)
    encoder.noticed = noticed
    pieces = [outputs(run.model, batch["x"]) for batch in examples.in_order(examples.everything(), size=512)]
    return run.task.row_scores(torch.cat(pieces, 1), y, run.trust)


def baselines(run: Any, plan: Any) -> list[dict[str, Any]]:
    """What the parts of the model reach alone on the test part, beside the answer that needs no text."""
    task, y = run.task, plan.dataset.y[plan.parts.test]
    if y.ndim == 2:
        return []
    measure = "accuracy" if task.classes is not None else "rmse"
    rows = []
    if task.classes is not None:
        common = np.bincount(plan.dataset.y[plan.parts.train], minlength=len(task.classes)).argmax()
        rows.append({"name": "most frequent class", "measure": measure, "value": float((y == common).mean())})
    else:
        mean = float(plan.dataset.y[plan.parts.train].mean())
        rows.append(
            {"name": "mean of the training part", "measure": measure, "value": float(np.sqrt(np.mean((y - mean) ** 2)))}
        )
    names = getattr(run.model, "variant_names", ())
    if names:
        view = plan.view(run.model, "test")
        every = view.outputs().cpu()
        for i, name in enumerate(names):
            alone = task.combine(every[i : i + 1]).numpy()
            rows.append({"name": f"{name} alone", "measure": measure, "value": _measure(task, alone, y, measure)})
    return rows


def clusters(run: Any, plan: Any) -> list[dict[str, Any]]:
    """Groups of texts of the test part by their vectors, with the words that tell each from the others."""
    rows = plan.parts.test[: min(MOST_CLUSTERED, max(LEAST_CLUSTERED, _most_variants(run, plan.encoder)))]
    if len(rows) < LEAST_CLUSTERED or not callable(getattr(run.model, "vectors", None)):
        return []
    examples = plan.examples
    run.model.eval()
    with torch.inference_mode():
        pieces = [run.model.vectors(batch["x"]) for batch in examples.in_order(rows, size=512)]
    vectors = torch.nn.functional.normalize(torch.cat(pieces).float(), dim=1).numpy()
    texts, y = [plan.dataset.texts[row] for row in rows], plan.dataset.y[rows]
    named = run.task.classes is not None and y.ndim == 1
    names: list[str] = run.task.classes or []
    groups = [names[code] for code in y] if named else None
    return clustered(vectors, texts, min(MOST_CLUSTERS, len(rows) // 20), groups)


def _measure(task: Any, alone: np.ndarray, y: np.ndarray, measure: str) -> float:
    if measure == "accuracy":
        return metrics.accuracy(y, alone.argmax(1))
    return float(np.sqrt(np.mean((task.original(alone[:, 0]) - y) ** 2)))


def neighbours(run: Any, encoder: TextEncoder, words: list[str]) -> list[dict[str, Any]]:
    """For a few words, the tokens whose embeddings have the largest cosine with theirs."""
    modules = dict(run.model.named_modules())
    table = (
        modules.get("trunk.embedding")
        or modules.get("network.trunk.embedding")
        or modules.get("network.embedding")
        or modules.get("embedding")
    )
    if not isinstance(table, nn.Embedding):
        return []
    vectors = torch.nn.functional.normalize(table.weight.detach(), dim=1)[: encoder.tokenizer.vocab]
    rows = []
    tokens = [ids[0] for ids in encoder.tokenizer.encode_batch(words) if len(ids) == 1]
    for token in dict.fromkeys(tokens[:12]):
        cosine = vectors @ vectors[token]
        order = [int(i) for i in cosine.argsort(descending=True)[:8] if int(i) not in (token, 0, 1)][:5]
        near = [{"token": word(encoder, i), "cosine": float(cosine[i])} for i in order]
        rows.append({"token": word(encoder, token), "near": near})
    return rows


def word(encoder: TextEncoder, token: int) -> str:
    """A token as readable text: decoded if it is from the vocabulary of a checkpoint."""
    written = encoder.tokenizer.pieces()[token].decode("utf-8", "replace").strip() if encoder.add_special_tokens else ""
    return written or encoder.tokenizer.token(token)
