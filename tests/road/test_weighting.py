"""`--weight-to`: training rows weighted towards unlabelled rows that come otherwise."""

import json

import numpy as np
import pandas as pd
import pytest

import wonderland
from tests import runs
from wonderland.core import WonderlandError


def rows(draw, count, middle):
    x = draw.normal(middle, 0.7, count)
    return pd.DataFrame({"x": x, "y": np.abs(x) + 0.1 * draw.random(count)})


def test_weights_make_a_line_fit_where_the_new_rows_are(tmp_path):
    draw = np.random.default_rng(0)
    rows(draw, 600, -0.5).to_csv(tmp_path / "old.csv", index=False)
    new = rows(draw, 300, 1.5)
    new.drop(columns="y").to_csv(tmp_path / "new.csv", index=False)
    options = {"model": "GLM(family='poisson')"}  # one exponential cannot follow both arms of |x|
    plain = wonderland.fit(tmp_path / "old.csv", "y", out=tmp_path / "plain", **options)
    run = wonderland.fit(
        tmp_path / "old.csv", "y", out=tmp_path / "run", weight_to=str(tmp_path / "new.csv"), **options
    )
    assert run.evaluate(new)["metrics"]["rmse"] < 0.7 * plain.evaluate(new)["metrics"]["rmse"]
    note = next(text for text in run.findings if text.startswith("Training rows are weighted towards new"))
    assert "Sets and intervals are calibrated for the new rows" in note
    assert run.trust.scores.weights is not None
    assert run.evaluate(new)["conformal"]["coverage"] > 0.85
    before = (tmp_path / "run" / "model.safetensors").read_bytes()
    (tmp_path / "run" / "model.safetensors").unlink()
    wonderland.fit(resume=tmp_path / "run")
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == before
    new.head(200).to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(WonderlandError, match=r"is weighted towards \(.*new\.csv\) changed since the run began"):
        wonderland.fit(resume=tmp_path / "run")


def test_an_ensemble_is_weighted_and_few_rows_are_refused(tmp_path):
    table = runs.mixed(200)
    table[table["age"] > 60].drop(columns="risk").to_csv(tmp_path / "old people.csv", index=False)
    run = wonderland.fit(table, "risk", out=tmp_path / "run", steps=20, weight_to=str(tmp_path / "old people.csv"))
    assert len(json.loads((tmp_path / "run" / "config.json").read_text())["source"]["weights"]) == 64
    assert np.isfinite(run.metrics["log_loss"])
    table.head(9).to_csv(tmp_path / "nine.csv", index=False)
    with pytest.raises(
        WonderlandError, match=r"weight_to needs 20 rows or more on each side, and there are .* 9 in nine"
    ):
        wonderland.fit(table, "risk", out=tmp_path / "other", steps=20, weight_to=str(tmp_path / "nine.csv"))
