import json

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import wonderland
from tests import runs
from wonderland.core import WonderlandError
from wonderland.ship import write_table


def test_a_loaded_run_predicts_the_same():
    run = runs.classifier()
    again = wonderland.load(run.folder)
    new = runs.mixed(50, seed=1).drop(columns="risk")
    pd.testing.assert_frame_equal(run.predict(new), again.predict(new))


def test_predictions_of_classes():
    found = runs.classifier().predict(runs.mixed(50, seed=1).drop(columns="risk"))
    assert list(found) == ["prediction", "probability", "set", "p(high)", "p(low)"]
    assert found[["p(high)", "p(low)"]].sum(axis=1).to_numpy() == pytest.approx(np.ones(50))
    assert (found["probability"] == found[["p(high)", "p(low)"]].max(axis=1)).all()
    assert set(found["prediction"]) <= {"high", "low"}
    assert all(set(labels) <= {"high", "low"} for labels in found["set"])


def test_a_higher_level_gives_larger_sets_and_wider_intervals():
    run, new = runs.classifier(), runs.mixed(80, seed=2)
    sizes = [run.predict(new, level=level)["set"].map(len).sum() for level in (0.5, 0.8, 0.95, 0.99)]
    assert sizes == sorted(sizes)
    run = runs.regressor()
    new = pd.DataFrame(np.zeros((3, 10)), columns=run.encoder.numbers)
    widths = [
        (table["high"] - table["low"]).mean() for table in (run.predict(new, level=level) for level in (0.5, 0.9))
    ]
    assert widths[0] < widths[1]


def test_a_row_is_predicted_the_same_alone_and_among_others():
    run, new = runs.classifier(), runs.mixed(30, seed=3)
    together = run.predict(new)
    alone = pd.concat([run.predict(new.iloc[[i]]) for i in range(30)], ignore_index=True)
    assert together["p(high)"].to_numpy() == pytest.approx(alone["p(high)"].to_numpy(), abs=1e-6)
    assert list(together["set"]) == list(alone["set"])


def test_new_data_with_faults_is_repaired_and_counted():
    run = runs.classifier()
    new = runs.mixed(20, seed=4)
    new.loc[0, "city"] = "Atlantis"
    new.loc[1, "age"] = np.nan
    run.predict(new)
    text = " ".join(finding.text for finding in run.noticed)
    assert "Atlantis" in text or "'city'" in text
    with pytest.raises(WonderlandError, match="Strict mode stops here"):
        run.predict(new, strict=True)


def test_missing_columns_are_named():
    with pytest.raises(WonderlandError, match="'city'"):
        runs.classifier().predict(runs.mixed(5).drop(columns="city"))


def test_evaluate_measures_on_other_data():
    found = runs.classifier().evaluate(runs.mixed(300, seed=5))
    assert found["rows"] == 300
    assert found["metrics"]["accuracy"] > 0.8
    assert found["metrics"].keys() == {"accuracy", "balanced_accuracy", "log_loss", "auroc"}
    assert json.dumps(found)
    with pytest.raises(WonderlandError):
        runs.classifier().evaluate(runs.mixed(10).drop(columns="risk"))
    with pytest.raises(WonderlandError, match="extreme"):
        runs.classifier().evaluate(runs.mixed(10).assign(risk="extreme"))


def test_images_are_predicted_from_arrays():
    found = runs.digits().predict(np.zeros((2, 8, 8)))
    assert len(found) == 2
    assert list(found)[:3] == ["prediction", "probability", "set"]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_tables_on_disk_round_trip(tmp_path, ending):
    found = runs.classifier().predict(runs.mixed(9, seed=6))
    path = tmp_path / f"out.{ending}"
    write_table(found, path)
    if ending == "csv":
        again = pd.read_csv(path)
        again["set"] = again["set"].map(json.loads)
    elif ending == "jsonl":
        again = pd.read_json(path, lines=True)
    else:
        again = pd.read_parquet(path)
    assert list(again) == list(found)
    assert [list(labels) for labels in again["set"]] == list(found["set"])
    assert again["p(high)"].to_numpy() == pytest.approx(found["p(high)"].to_numpy(), rel=1e-9)


def test_an_unknown_suffix_is_refused(tmp_path):
    table = pd.DataFrame({"prediction": [1]})
    with pytest.raises(WonderlandError) as caught:
        write_table(table, tmp_path / "out.xlsx")
    assert str(caught.value) == (
        f"Predictions are written as .csv, .parquet or .jsonl, and '{tmp_path / 'out.xlsx'}' ends otherwise."
    )
    with pytest.raises(WonderlandError) as caught:
        write_table(table, tmp_path / "no" / "out.csv")
    assert str(caught.value) == f"The folder of {tmp_path / 'no' / 'out.csv'} does not exist: make it first."


def test_repr_and_html():
    run = runs.classifier()
    assert "accuracy" in repr(run)
    assert "<table>" in run._repr_html_()
    assert run.metrics["accuracy"] > 0.7
    assert run.classes == ["high", "low"]


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))

    def forward(self, x):
        return self.net(x.float() / 255)


def test_a_run_with_a_users_own_module(tmp_path):
    torch.manual_seed(5)
    run = wonderland.fit("digits", model=Own(), out=tmp_path, epochs=15)
    assert run.metrics["accuracy"] > 0.6
    with pytest.raises(WonderlandError) as caught:
        wonderland.load(tmp_path)
    assert str(caught.value) == (
        f"The run in {tmp_path} was fitted with a module of your own, 'Own': load it with wonderland.load(path, model=...)."
    )
    with pytest.raises(WonderlandError) as caught:
        wonderland.fit(resume=tmp_path)
    assert str(caught.value) == (
        f"The run in {tmp_path} was fitted with a module of your own, 'Own': "
        "continue it from Python with wonderland.fit(resume=..., model=...)."
    )
    again = wonderland.load(tmp_path, model=Own())
    images = np.random.default_rng(0).integers(0, 16, (4, 8, 8)).astype(float)
    pd.testing.assert_frame_equal(run.predict(images), again.predict(images))
    with pytest.raises(WonderlandError, match="do not belong together"):
        wonderland.load(tmp_path, model=nn.Linear(2, 2))
    with pytest.raises(WonderlandError, match="was not fitted with your own module: load it without model="):
        wonderland.load(runs.digits().folder, model=Own())


def test_predictions_keep_the_index_and_a_column(tmp_path):
    run, new = runs.classifier(), runs.mixed(5, seed=1).drop(columns="risk")
    index = [f"row {i}" for i in range(5)]
    assert run.predict(new.set_axis(index)).index.tolist() == index
    new.assign(order=[f"00{i}" for i in range(5)]).to_csv(tmp_path / "new.csv", index=False, sep="~")
    table = run.predict(tmp_path / "new.csv", id="order", delimiter="~")
    assert table.columns[0] == "order"
    assert table["order"].tolist() == ["000", "001", "002", "003", "004"]
    message = r"^There is no column 'ordr' in the new data \(given as id\)\. Did you mean 'order'\?$"
    with pytest.raises(WonderlandError, match=message):
        run.predict(tmp_path / "new.csv", id="ordr", delimiter="~")
    with pytest.raises(WonderlandError, match=r"^evaluate has no option 'delimeter'\. Did you mean 'delimiter'\?$"):
        run.evaluate(tmp_path / "new.csv", delimeter="~")


def test_evaluating_the_data_of_the_fit_gives_a_hint(tmp_path):
    data = tmp_path / "data.csv"
    runs.mixed(60, seed=1).to_csv(data, index=False)
    run = wonderland.fit(data, "risk", steps=3, out=tmp_path / "run")
    run.evaluate(data)
    assert run.noticed[-1].text.startswith(
        "This is the data that the run was fitted to: rows it was trained on are among"
    )
    runs.mixed(60, seed=2).to_csv(tmp_path / "other.csv", index=False)
    run.evaluate(tmp_path / "other.csv")
    assert not [finding for finding in run.noticed if finding.kind == "training data"]
