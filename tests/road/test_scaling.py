"""Scaling laws from trainings of several sizes: laws that are known are found, and points are not trained twice."""

import json

import numpy as np
import pandas as pd
import pytest

from wonderland import WonderlandError
from wonderland.cli.main import main
from wonderland.road.scaling import Point, fitted, front, scaling, sentences


def frame(rows=120):
    draw = np.random.default_rng(0)
    x = draw.normal(size=(rows, 3))
    return pd.DataFrame(x, columns=list("abc")).assign(y=x.sum(1) + 0.1 * draw.normal(size=rows))


def test_known_laws_are_found():
    def loss(n, d):
        return 1.0 + 20 * n**-0.4 + 30 * d**-0.5

    points = [
        Point(n, share, n, int(1e6 * share), int(1e6 * share), 6.0 * n * 1e6 * share, loss(n, 1e6 * share),
              [(6.0 * n * 1e6 * share, loss(n, 1e6 * share))])
        for n in (10**3, 10**4, 10**5, 10**6) for share in (0.01, 0.1, 0.5, 1.0)
    ]  # fmt: skip
    found = fitted("model.dim", points)
    assert found.by_parameters.exponent == pytest.approx(0.4, abs=0.01)
    assert found.by_rows.exponent == pytest.approx(0.5, abs=0.01)
    size, rows = found.best(6e12)
    assert size * rows * 6 == pytest.approx(6e12)
    assert sentences(found, 6e12)[-1].startswith("6e+12 operations are best spent on ")
    assert front([(1.0, 3.0), (2.0, 4.0), (3.0, 1.0)]) == [(1.0, 3.0), (3.0, 1.0)]


def test_trainings_are_kept_and_sizes_that_change_nothing_are_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame().to_csv("table.csv", index=False)
    words = [
        "scaling",
        "table.csv",
        "--target",
        "y",
        "--sizes",
        "4,8",
        "--shares",
        "0.5,1",
        "--steps",
        "12",
        "--out",
        "out",
    ]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert said.count(" rows: loss ") == 4
    assert "L(N): fewer than 3 sizes of the model were measured, so no law is fitted." in said.replace("\n", " ")
    written = json.loads((tmp_path / "out" / "scaling.json").read_text())
    assert len(written["points"]) == 4
    assert written["points"][0]["rows"] < written["points"][1]["rows"]
    assert (tmp_path / "out" / "report.html").read_text().count("<svg") >= 3
    monkeypatch.setattr("wonderland.train.supervised.Supervised.__call__", None)  # nothing is trained again
    assert main(words) == 0
    with pytest.raises(
        WonderlandError, match=r"^Give at least two sizes of the model; a law with a floor takes three\.$"
    ):
        scaling(frame(), "y", sizes=[4])
    with pytest.raises(
        WonderlandError, match=r"^Some sizes give models with equally many parameters: does model\.dropout"
    ):
        scaling(frame(), "y", sizes=[0.1, 0.2], setting="model.dropout", out=tmp_path / "no")
    assert main(["scaling", "table.csv", "--sizes", "a,b"]) == 2
