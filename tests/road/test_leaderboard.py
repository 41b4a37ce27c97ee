"""Simple methods beside a run: the same bytes twice, honest about ties, nothing kept of them, results before the report."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge

import wonderland
from wonderland.kinds.table import baselines
from wonderland.road.leaderboard import read_leaderboard, seconds_of
from wonderland.tasks.leaderboard import compared, sentence

pytestmark = pytest.mark.leaderboard


def frame(rows=160, seed=0):
    rng = np.random.default_rng(seed)
    made = pd.DataFrame({"a": rng.normal(size=rows), "b": rng.normal(size=rows), "c": rng.choice(["u", "v"], rows)})
    return made.assign(y=np.where(made["a"] + (made["c"] == "u") + rng.normal(size=rows) > 0.5, "yes", "no"))


def test_a_run_stands_beside_simple_methods(tmp_path):
    seen = []
    runs = [
        wonderland.fit(
            frame(),
            "y",
            out=tmp_path / str(i),
            steps=10,
            on_measured=lambda run: seen.append((run.folder / "report.html").exists()),
        )
        for i in range(2)
    ]
    assert seen == [False, False]
    board = read_leaderboard(runs[0].folder)
    assert [row["name"] for row in board["rows"]] == ["this model", "majority", "linear model", "boosting"]
    assert set(board["rows"][2]["differences"]) == {"accuracy", "log_loss"}
    for name in ("leaderboard.json", "report.html", "metrics.jsonl"):
        assert (runs[0].folder / name).read_bytes() == (runs[1].folder / name).read_bytes(), name
    assert set(seconds_of(runs[0].folder)) == {"majority", "linear model", "boosting"}
    assert "Leaderboard" in (runs[0].folder / "report.html").read_text()
    assert {path.suffix for path in runs[0].folder.iterdir()} <= {
        ".json",
        ".jsonl",
        ".safetensors",
        ".html",
        ".lock",
        "",
    }
    whole = (runs[0].folder / "report.html").read_bytes()
    (runs[0].folder / "leaderboard.json").unlink()
    wonderland.fit(frame(), "y", out=runs[0].folder, steps=10)
    assert (runs[0].folder / "report.html").read_bytes() == whole


def test_none_where_none_is_wanted(tmp_path):
    run = wonderland.fit(frame(), "y", out=tmp_path / "run", steps=3, leaderboard="none")
    assert read_leaderboard(run.folder) is None


def test_a_damaged_leaderboard_is_none(tmp_path):
    for board in ({"rows": [{"name": 1}]}, {"inputs": {}, "rows": [], "sentence": ""}):
        (tmp_path / "leaderboard.json").write_text(json.dumps(board))
        assert read_leaderboard(tmp_path) is None


def test_linear_models_equal_those_of_scikit_learn():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(120, 4)).astype(np.float32)
    z = ((x - x.mean(0)) / x.std(0)).astype(np.float64)
    y = x @ [1, 2, 0, -1] + rng.normal(size=120)
    found = baselines.linear(x, x, y, None, 4, [], 0)
    assert found == pytest.approx(Ridge(alpha=1.0).fit(z, y).predict(z), abs=1e-5)
    classes = (y > 0).astype(int) + (y > 2)
    found = baselines.linear(x, x, classes, 3, 4, [], 0)
    assert np.exp(found) == pytest.approx(
        LogisticRegression(tol=1e-8, max_iter=500).fit(z, classes).predict_proba(z), abs=1e-3
    )
    wide = rng.normal(size=(20, 50)).astype(np.float32)
    standard = (wide - wide.mean(0)) / wide.std(0)
    found = baselines.linear(wide, wide, y[:20], None, 50, [], 0)
    assert found == pytest.approx(Ridge(alpha=1.0).fit(standard, y[:20]).predict(standard), abs=1e-4)


def test_boosting_is_that_of_scikit_learn_and_the_mean_is_the_mean():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(80, 2)).astype(np.float32)
    expected = HistGradientBoostingRegressor(random_state=0).fit(x, x[:, 0]).predict(x)
    assert np.array_equal(baselines.boosting(x, x, x[:, 0], None, 2, []), expected)
    assert baselines.constant(np.array([1.0, 3.0]), 2, None).tolist() == [2.0, 2.0]
    assert np.exp(baselines.constant(np.array([0, 0, 1, 0]), 1, 2))[0] == pytest.approx([0.75, 0.25])


def test_what_is_said_of_ties():
    def row(name, value, half):
        return {"name": name, "differences": {"accuracy": {"value": value, "low": value - half, "high": value + half}}}

    rows = [
        {"name": "this model"},
        row("majority", 0.3, 0.1),
        row("linear model", 0.01, 0.05),
        row("boosting", -0.2, 0.1),
    ]
    assert compared(rows) == {"better": ["boosting"], "level": ["linear model"]}
    assert sentence(rows, 40) == (
        "On these 40 test rows boosting is better than this model and the linear model is as good as this model, as far as they "
        "can tell (95 % intervals of the paired difference): take the simplest that is good enough, or test on more rows."
    )
    assert sentence(rows[:2], 40) == ""
