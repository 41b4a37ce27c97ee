"""Few calibration rows, classes without any, constant predictions, duplicate rows, infinite values, a single class: through fit and
the estimators, each gives a sentence or the safe answer."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import wonderland
from wonderland import Classifier, Regressor, WonderlandError

MODELS = [None, "gp"]


def rows(count=100):
    draw = np.random.default_rng(0)
    a, b = draw.normal(size=(2, count))
    label = np.where(a + 0.5 * draw.normal(size=count) > 0, "yes", "no")
    return pd.DataFrame({"a": a, "b": b, "label": label, "y": a + 0.2 * draw.normal(size=count)})


def fitted(table, target, folder, model=None, **options):
    other = {"label": "y", "y": "label"}[target]
    short = {"steps": 20} if model is None else {"model": model}
    return wonderland.fit(table.drop(columns=other), target, out=folder / "run", **short, **options)


def estimator(kind, model, **options):
    return kind(model=model, steps=20 if model is None else None, **options)


class Constant(nn.Module):
    """The same output for every row."""

    def __init__(self, outputs):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return self.bias.expand(len(x), len(self.bias))


@pytest.mark.parametrize("model", MODELS)
def test_ten_calibration_rows_keep_every_class_and_no_end(model, tmp_path):
    table = rows()
    level = {"conformal": "split"} | {"level": 0.99}
    run = fitted(table, "label", tmp_path, model, **level)
    assert all(len(chosen) == 2 for chosen in run.predict(table)["set"])
    note = "10 calibration rows are too few for a level of 0.99: at least 99 are needed, so every candidate is kept."
    assert run.record["measured"]["test"]["conformal"]["note"] == note
    few = rows(10)
    sets = estimator(Classifier, model, level=0.95).fit(few[["a", "b"]], few["label"]).predict_set(few[["a", "b"]])
    assert sets.all()
    ends = estimator(Regressor, model, level=0.95).fit(few[["a", "b"]], few["y"]).predict_interval(few[["a", "b"]])
    assert np.isinf(ends).all()


def test_a_class_without_calibration_rows_is_never_left_out(tmp_path):
    table = rows(60)
    table.loc[:1, "label"] = "rare"
    run = fitted(table, "label", tmp_path, conformal="class")
    assert all("rare" in chosen for chosen in run.predict(table)["set"])
    assert run.record["measured"]["test"]["conformal"]["note"].endswith("have class rare: a set always holds it.")
    sets = Classifier(steps=20, options={"conformal": "class"}).fit(table[["a", "b"]], table["label"])
    assert sets.predict_set(table[["a", "b"]])[:, 1].all()


def test_constant_predictions(tmp_path):
    table = rows(200)
    run = wonderland.fit(table.drop(columns="y"), "label", out=tmp_path / "classes", model=Constant(2), steps=5)
    shares = table["label"].value_counts(normalize=True)
    assert run.predict(table)["probability"].iloc[0] == pytest.approx(shares.iloc[0], abs=0.1)
    assert all(len(chosen) == 2 for chosen in run.predict(table)["set"])
    run = wonderland.fit(table.drop(columns="label"), "y", out=tmp_path / "numbers", model=Constant(1), steps=5)
    assert run.metrics["r2"] < 0.05
    assert run.record["measured"]["test"]["conformal"]["coverage"] > 0.75


@pytest.mark.parametrize("model", [*MODELS, "GLM(family='logit')"])
def test_duplicate_rows(model, tmp_path):
    table = pd.concat([rows().iloc[:1]] * 30 + [rows().iloc[1:2]] * 30, ignore_index=True)
    table["label"] = ["yes"] * 30 + ["no"] * 30
    with pytest.raises(
        WonderlandError, match="has no usable column besides the target 'label': 'a' is a leak of the target"
    ):
        fitted(table, "label", tmp_path, model)
    run = fitted(table, "label", tmp_path, model, keep=["a", "b"])
    assert (run.predict(table)["prediction"] == table["label"]).all()
    if model in MODELS:
        X = table[["a", "b"]]
        assert len(set(estimator(Classifier, model).fit(X, table["label"]).predict(X)[:30])) == 1
        assert np.isinf(estimator(Regressor, model).fit(X, table["y"]).predict_interval(X)).all()


@pytest.mark.parametrize("model", MODELS)
def test_infinite_values_a_single_class_and_constant_numbers(model, tmp_path):
    table = rows()
    table.loc[3, "a"] = np.inf
    sentence = r"Column 'a' holds an infinite value in row 4\. Correct it, or leave the cell empty\."
    with pytest.raises(WonderlandError, match=sentence):
        fitted(table, "label", tmp_path, model)
    with pytest.raises(WonderlandError, match=sentence):
        estimator(Classifier, model).fit(table[["a", "b"]], table["label"])
    with pytest.raises(ValueError, match="Input X contains infinity"):
        estimator(Classifier, model).fit(table[["a", "b"]].to_numpy(), table["label"])
    table = rows()
    table.loc[3, "y"] = -np.inf
    with pytest.raises(WonderlandError, match="The target 'y' is infinite in row 4"):
        fitted(table, "y", tmp_path, model)
    table["label"], table["y"] = "yes", 1.0
    with pytest.raises(
        WonderlandError, match=r"The target 'label' has one class only \('yes'\), so there is nothing to learn"
    ):
        fitted(table, "label", tmp_path, model)
    with pytest.raises(WonderlandError, match="The target 'y' is always 1, so there is nothing to learn"):
        fitted(table, "y", tmp_path, model, task="regression")
    with pytest.raises(WonderlandError, match=r"The target has one class only \('yes'\), so there is nothing to learn"):
        estimator(Classifier, model).fit(table[["a", "b"]], table["label"])
    with pytest.raises(WonderlandError, match="is always 1, so there is nothing to learn"):
        estimator(Regressor, model).fit(table[["a", "b"]], table["y"])
