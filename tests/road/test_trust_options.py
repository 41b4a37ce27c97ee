"""Options of trust: forms of conformal prediction, thresholds, costs, abstention, uncertainty; stored with the run."""

import numpy as np
import pandas as pd
import pytest
from torch import nn

import wonderland
from wonderland.core import WonderlandError
from wonderland.tasks.class_trust import ASK, tuned_weights


@pytest.fixture(scope="module")
def rows():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(400, 2))
    likely = 1 / (1 + np.exp(-(2 * x[:, 0] - 1.5)))
    return pd.DataFrame(
        {
            "x": x[:, 0],
            "z": x[:, 1],
            "town": draw.choice(["a", "b"], 400),
            "label": np.where(draw.random(400) < likely, "yes", "no"),
            "y": 2 * x[:, 0] + draw.normal(size=400),
        }
    )


@pytest.fixture(scope="module")
def cost(tmp_path_factory):
    path = tmp_path_factory.mktemp("cost") / "cost.csv"
    path.write_text("true,no,yes,call\nyes,10,0,0.5\nno,0,1,0.4\n")
    return path


def classes(rows, folder, **options):
    return wonderland.fit(rows.drop(columns="y"), "label", out=folder, steps=40, threads=1, **options)


def test_decisions_come_with_predictions_and_survive_loading(rows, cost, tmp_path):
    run = classes(
        rows, tmp_path / "run", conformal="class", metric="f1", cost=str(cost), abstain=0.2, uncertainty="ensemble"
    )
    loaded = wonderland.load(tmp_path / "run")
    for level in (0.8, 0.95):
        table = run.predict(rows, level=level)
        pd.testing.assert_frame_equal(table, loaded.predict(rows, level=level))
    assert set(table["decision"]) <= {"no", "yes", "call"}
    unsure = table["answer"] == ASK
    assert 0 < unsure.mean() < 1
    assert (table["answer"] == table["prediction"])[~unsure].all()
    assert all(name in chosen for name, chosen in zip(table["prediction"], table["set"], strict=True) if chosen)
    assert (table["epistemic"] >= 0).all()
    measured = run.record["measured"]["test"]
    assert measured["cost"]["chosen"] < measured["cost"]["most_probable"]
    assert measured["abstention"]["bound"] <= 0.2
    assert "Decisions" in (tmp_path / "run" / "report.html").read_text()


@pytest.mark.parametrize("conformal", ["cross", "split", "group:town", "aps", "raps"])
def test_sets_hold_the_predicted_class_unless_empty(rows, tmp_path, conformal):
    run = classes(rows, tmp_path / "run", conformal=conformal)
    table = wonderland.load(tmp_path / "run").predict(rows)
    assert all(name in chosen for name, chosen in zip(table["prediction"], table["set"], strict=True) if chosen)
    assert run.record["measured"]["test"]["conformal"]["coverage"] > 0.8


@pytest.mark.parametrize("conformal", ["cqr", "group:town", "cross"])
def test_intervals_of_every_form(rows, tmp_path, conformal):
    frame = rows.drop(columns="label")
    run = wonderland.fit(
        frame, "y", out=tmp_path / "run", steps=60, threads=1, conformal=conformal, uncertainty="ensemble"
    )
    table = wonderland.load(tmp_path / "run").predict(frame, level=0.8)
    assert (table["low"] <= table["prediction"]).all()
    assert (table["prediction"] <= table["high"]).all()
    assert 0.7 < ((table["low"] <= rows["y"]) & (rows["y"] <= table["high"])).mean() < 0.95
    assert (table["epistemic"] > 0).all()
    assert run.record["measured"]["test"]["conformal"]["coverage"] > 0.8


def test_dropout_is_added_where_the_default_model_has_none(rows, tmp_path):
    run = wonderland.fit(
        rows.drop(columns="label"), "y", out=tmp_path / "run", steps=20, threads=1, uncertainty="dropout"
    )
    assert set(run.recipe.model.arguments["dropout"]) == {0.1}
    assert (run.predict(rows)["epistemic"] > 0).all()


def test_thresholds_gain_on_the_rows_they_are_tuned_on():
    draw = np.random.default_rng(1)
    p = draw.beta(1, 4, 500)
    y = (draw.random(500) < p).astype(int)
    p = np.stack([1 - p, p], 1)
    weights = tuned_weights(p, y, "balanced_accuracy")
    recall = [np.mean((p * weights).argmax(1)[y == k] == k) for k in (0, 1)]
    plain = [np.mean(p.argmax(1)[y == k] == k) for k in (0, 1)]
    assert np.mean(recall) > np.mean(plain) + 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"conformal": "cqr"}, "The task classification has no conformal prediction 'cqr': it has split, cross, class, group, aps, raps."),
        ({"conformal": "clas"}, "There is no conformal 'clas'. Did you mean 'class'? Known are split, cross, class, group:COLUMN, aps, raps, cqr."),
        ({"conformal": "group:twn"}, "There is no column 'twn' (given as column). Did you mean 'town'?"),
        ({"metric": "f2"}, "There is no metric 'f2' to decide by. Known are accuracy, balanced_accuracy, f1."),
        ({"abstain": 1.5}, "abstain is a share of wrong answers between 0 and 1, such as 0.05, not 1.5."),
        ({"conformal": "cross", "model": "own"}, "conformal cross needs models of several folds, which this run has not: choose split."),
        ({"uncertainty": "ensemble", "model": "own"}, "uncertainty ensemble needs several members, and Sequential is one network: choose dropout."),
    ],
)  # fmt: skip
def test_options_that_do_not_fit(rows, tmp_path, options, message):
    if options.get("model") == "own":
        options = options | {"model": nn.Sequential(nn.Linear(3, 2))}
    with pytest.raises(WonderlandError) as error:
        classes(rows, tmp_path / "run", **options)
    assert str(error.value) == message


def test_a_number_has_no_metric_to_decide_by(rows, tmp_path):
    with pytest.raises(WonderlandError) as error:
        wonderland.fit(rows.drop(columns="label"), "y", out=tmp_path / "run", metric="f1")
    assert str(error.value) == "The task regression has no option metric (--metric): it has conformal, uncertainty."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("true,no,yes\nyes,1,0\n", "{} has no row for class 'no': every true class needs its costs."),
        ("true,no,yes\nyess,1,0\n", "{} has a row for 'yess', which is no class. Did you mean 'yes'?"),
        ("true,no,yes\nyes,1,zero\n", "{} holds a cost that is no number, in the row of 'yes'."),
        ("true,no,yes\nyes,1,inf\n", "{} holds a cost that is not finite, in the row of 'yes'."),
        ("true," + "no" * 100_000 + ",yes\nyes,1,0\n", "The costs in {} cannot be read: they have to be a CSV file."),
        ("1\n", "{} is not a table of costs: the header names the actions, and each row begins with a true class."),
    ],
)  # fmt: skip
def test_costs_that_cannot_be_meant(rows, tmp_path, text, message):
    path = tmp_path / "cost.csv"
    path.write_text(text)
    with pytest.raises(WonderlandError) as error:
        classes(rows, tmp_path / "run", cost=str(path))
    assert str(error.value) == message.format(path)
