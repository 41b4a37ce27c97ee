"""Pairs of letters: counting is the best that a table can do, and descent finds it."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.bigrams import __main__ as lab
from examples.bigrams.__main__ import main, names
from examples.bigrams.model import by_gradient, counts, loss, probabilities
from examples.lab.names import contexts

WORDS = ["anna", "bob", "nan", "abba"]


def pairs():
    before, after = contexts(WORDS, 1)
    return before[:, 0], after


def test_counts_are_the_most_likely_table():
    table = counts(*pairs())
    assert table.sum() == sum(len(word) + 1 for word in WORDS)
    best = probabilities(table)
    torch.testing.assert_close(best.sum(1), torch.ones(27, dtype=torch.float64))
    other = probabilities(table, 1.0)
    assert loss(table, best) < loss(table, other)


def test_descent_without_a_penalty_comes_down_to_the_counts():
    table = counts(*pairs())
    logits, path = by_gradient(*pairs(), steps=200, rate=4.0, l2=0.0)
    assert path == sorted(path, reverse=True)
    assert abs(loss(table, logits.double().softmax(1)) - loss(table, probabilities(table))) < 0.1


def test_the_lab_runs_on_few_names_and_says_what_is_missing(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(lab, "STEPS", 20)
    (tmp_path / "names.txt").write_text("\n".join(WORDS * 3))
    assert main(["--data", str(tmp_path), "--out", str(tmp_path / "out")]) == 1  # these are not makemore's names
    assert {path.stem for path in (tmp_path / "out").iterdir()} == {"table", "loss"}
    assert main(["--data", str(tmp_path / "nowhere"), "--out", str(tmp_path)]) == 2
    assert "names.txt was not found" in capsys.readouterr().err
    assert all(set(word) <= set("anb") for word in names(probabilities(counts(*pairs())), 3))
