"""fit for texts that belong together: recall beside TF-IDF, search among the known texts."""

import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import wonderland
from tests.kinds.battery import Battery, data, home, run  # noqa: F401 - fixtures
from wonderland.core import WonderlandError
from wonderland.tasks import Matching
from wonderland.tasks.matching import rank_measures, ranks_of


def pairs(path: Path, count: int, seed: int) -> Path:
    """Queries and texts that share no word: each idea has a word on either side."""
    draw = random.Random(seed)
    rows = ["question,reply"]
    for _ in range(count):
        ideas = draw.sample(range(24), 3)
        rows.append(
            f"{' '.join(f'ask{i}x' for i in ideas)} please {draw.random():.6f},{' '.join(f'say{i}y' for i in ideas)} then {draw.random():.6f}"
        )
    path.write_text("\n".join(rows))
    return path


class TestMatches(Battery):
    kind = "matches"
    options = {"task": "matching"}

    def make(self, folder: Path):
        return pairs(folder / "pairs.csv", 80, 0), pairs(folder / "new.csv", 20, 1)


@pytest.fixture(scope="module")
def matcher(tmp_path_factory):
    folder = tmp_path_factory.mktemp("matches")
    options = {"task": "matching", "steps": 150, "threads": 1, "model": "MatchEncoder(dim=32)", "lr": 0.01}
    return wonderland.fit(pairs(folder / "pairs.csv", 400, 0), out=folder / "run", **options)


def test_it_finds_what_words_alone_do_not(matcher, tmp_path):
    board = json.loads((matcher.folder / "leaderboard.json").read_text())["rows"]
    assert board[1]["name"] == "cosine of TF-IDF"
    assert matcher.metrics["recall_at_10"] > board[1]["metrics"]["recall_at_10"] + 0.2
    table = matcher.predict(["ask1x ask2x ask3x"], top=3)
    assert table["rank"].tolist() == [1, 2, 3]
    assert table["score"].is_monotonic_decreasing
    vectors = matcher.embed(["ask1x ask2x ask3x", "say1y say2y say3y", "say7y say8y say9y"])
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]
    (tmp_path / "queries.txt").write_text("ask1x ask2x ask3x\nask4x ask5x ask6x\n")
    assert len(matcher.predict(str(tmp_path / "queries.txt"))) == 20


def test_shared_words_count_where_the_validation_part_says_so(tmp_path):
    draw = random.Random(0)
    rows = ["title,body"]
    for _ in range(120):
        words = [f"w{draw.randrange(4000)}" for _ in range(12)]
        rows.append(
            f"{' '.join(words[:4])} a b,{' '.join(words)} c d {' '.join(f'z{draw.randrange(50)}' for _ in range(9))}"
        )
    (tmp_path / "news.csv").write_text("\n".join(rows))
    finder = wonderland.fit(
        tmp_path / "news.csv", task="matching", column="title", target="body", steps=3, threads=1, out=tmp_path / "run"
    )
    board = json.loads((finder.folder / "leaderboard.json").read_text())["rows"]
    assert finder.trust.share > 0
    assert finder.metrics["recall_at_10"] >= board[1]["metrics"]["recall_at_10"]
    line = rows[1].split(",")
    table = finder.predict([line[0]], top=2)
    assert table["prediction"][0] == line[1]
    again = wonderland.load(finder.folder)
    assert again.predict([line[0]], top=2).equals(table)
    saved = finder.trust.to_json()
    for share in (0.55, "a", True, None):
        text = "trust.json does not hold ranks of texts: it is damaged or not ours."
        with pytest.raises(WonderlandError, match="^" + re.escape(text) + "$"):
            finder.task.trust(saved | {"share": share})


def test_ranks_count_different_texts_once():
    scores = torch.tensor([[0.5, 0.9, 0.5], [0.1, 0.7, 0.1], [0.5, 0.6, 0.5]])
    assert ranks_of(scores, np.array([0, 1, 0])).tolist() == [2, 1, 2]
    assert rank_measures([1, 11]) == {"recall_at_1": 0.5, "recall_at_10": 0.5, "mrr": (1 + 1 / 11) / 2}


def test_bad_input_meets_a_sentence(matcher, tmp_path):
    pairs(tmp_path / "few.csv", 3, 0)
    (tmp_path / "one.csv").write_text("a,b\n1,2\n3,4\n")
    for text, call in (
        (
            "few.csv has 3 pairs of texts: at least 8 are needed.",
            lambda: wonderland.kinds.open(tmp_path / "few.csv", task="matching", column="question", target="reply"),
        ),
        (
            "one.csv has no two columns of texts: name them with the options column and target.",
            lambda: wonderland.kinds.open(tmp_path / "one.csv", task="matching"),
        ),
        ("queries has no column 'reply' to compare with.", lambda: matcher.evaluate(["ask1x"])),
        ("Matching needs a temperature above 0, not 0.", lambda: Matching(0)),
    ):
        with pytest.raises(WonderlandError, match="^" + re.escape(text) + "$"):
            call()
