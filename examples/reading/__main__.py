"""Sentiment, entailment, tags, answers and retrieval, each above the simple method that stands beside it."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import wonderland
from examples.lab import Claim, above, run, table
from examples.lab.steps import learn
from examples.reading import texts
from wonderland.models import BiRNN, GloVe

FEW = 120  # labelled reviews


def vectors(sentences: list[list[str]], words: dict[str, int], dim: int = 24) -> torch.Tensor:
    """GloVe vectors from unlabelled sentences: (vocab, dim)."""
    counts = np.zeros((len(words), len(words)), np.float32)
    for sentence in sentences:
        ids = [words[word] for word in sentence]
        for i, own in enumerate(ids):
            for other in ids[i + 1 : i + 6]:
                counts[own, other] += 1
                counts[other, own] += 1
    rows, columns = (torch.from_numpy(part) for part in np.nonzero(counts))
    seen = torch.from_numpy(counts)[rows, columns]
    torch.manual_seed(0)
    model = GloVe(len(words), dim, full=20.0)
    learn(
        model,
        lambda index: model.loss(rows[index], columns[index], seen[index]),
        len(rows),
        steps=600,
        batch=2048,
        lr=0.05,
    )
    return model.vectors


def sentiment() -> dict[str, float]:
    """A bidirectional LSTM on few labelled reviews, with word vectors of many unlabelled ones and without."""
    train, y = texts.reviews(FEW, 0)
    test, truth = texts.reviews(1000, 1)
    many, _ = texts.reviews(4000, 2)
    known = ["<pad>", *sorted({word for sentence in (*train, *test, *many) for word in sentence})]
    words = {word: i for i, word in enumerate(known)}

    def encoded(sentences: list[list[str]]) -> torch.Tensor:
        tokens = torch.zeros(len(sentences), max(map(len, sentences)), dtype=torch.int64)
        for row, sentence in enumerate(sentences):
            tokens[row, : len(sentence)] = torch.tensor([words[word] for word in sentence])
        return tokens

    x, new, labels, found = encoded(train), encoded(test), torch.from_numpy(y), {}
    for label, start in (("random vectors", None), ("GloVe", vectors(many, words))):
        torch.manual_seed(0)
        model = BiRNN(len(words), 2, dim=24, state_size=24, depth=1, dropout=0.3)
        if start is not None:
            with torch.no_grad():
                model.embedding.weight.copy_(start / start.std())
        model.embedding.requires_grad_(start is None)
        learn(
            model,
            lambda index, model=model: F.cross_entropy(model(x[index]), labels[index]),
            FEW,
            steps=250,
            batch=16,
            lr=5e-3,
        )
        with torch.no_grad():
            found[label] = float((model(new).argmax(1).numpy() == truth).mean())
    return found


def fitted(source: Path, folder: Path, **options: Any) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Metrics of a default fit, and its leaderboard."""
    out = folder / source.stem
    fit = wonderland.fit(source, out=out, threads=1, **options)
    board = out / "leaderboard.json"
    return fit.metrics, json.loads(board.read_text())["rows"] if board.exists() else []


def entailment(folder: Path) -> dict[str, float]:
    """Decomposable attention beside a linear model of the words of both sentences."""
    source = texts.entailment(folder / "entailment.tsv", 2500, 0)
    linear, _ = fitted(source, folder, model="TextLinear")
    ours, _ = fitted(source.rename(folder / "pairs.tsv"), folder)
    return {"linear model of all features": linear["accuracy"], "default": ours["accuracy"]}


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    rows: list[tuple[str, str, str]] = []
    claims: list[Claim] = []
    moods = sentiment()
    rows += [("sentiment, BiRNN", name, f"{value:.4f}") for name, value in moods.items()]
    claims.append(
        above(f"accuracy from {FEW} reviews with GloVe minus without", moods["GloVe"] - moods["random vectors"], 0.03)
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pairs = entailment(folder)
        rows += [("entailment", label, f"{value:.4f}") for label, value in pairs.items()]
        claims.append(above("accuracy of entailment", pairs["default"], 0.95))
        for title, source, key, options, stated in (
            ("tags", texts.tagged(folder / "tags.conll", 500, 0), "f1", {"steps": 250}, 0.9),
            ("answers", texts.questions(folder / "answers.json", 300, 0), "exact_match", {"steps": 250}, 0.6),
            (
                "retrieval",
                texts.matches(folder / "matches.tsv", 1500, 0),
                "recall_at_10",
                {"task": "matching", "steps": 200},
                0.6,
            ),
        ):
            metrics, board = fitted(source, folder, **options)
            simple = board[1]["metrics"][key]
            rows += [(title, board[1]["name"], f"{simple:.4f}"), (title, "default", f"{metrics[key]:.4f}")]
            claims += [
                above(f"{title}: {key}", metrics[key], stated),
                above(f"{title}: {key} minus that of the {board[1]['name']}", metrics[key] - simple, 0.1),
            ]
    return claims, table(("", "", "measured"), rows), {}


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed."""
    return run("reading", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
