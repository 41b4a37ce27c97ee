"""Airfoil and house prices: read as D2L reads them, and every rule comes down; on invented rows of the same form."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.airfoil import __main__ as airfoil
from examples.house_prices import __main__ as houses
from examples.lab.files import find
from wonderland.core import WonderlandError


@pytest.fixture
def wing(tmp_path):
    draw = np.random.default_rng(0)
    x = draw.normal(size=(1510, 5)) * [1, 10, 0.1, 5, 100]
    y = x @ [2, 0.1, 5, -0.3, 0.01] + draw.normal(size=1510)
    np.savetxt(tmp_path / "airfoil_self_noise.dat", np.column_stack([x, y]), delimiter="\t")
    return tmp_path


def test_columns_are_standardised_before_rows_are_cut(wing):
    x, _ = airfoil.load(wing)
    assert x.shape == (1500, 5)
    assert x.std(0).sub(1).abs().max() < 0.05
    (wing / "airfoil_self_noise.dat").write_text("1\t2\n")
    with pytest.raises(
        WonderlandError, match=r"has to hold at least 1500 rows of 6 numbers, with tabs between them\.$"
    ):
        airfoil.load(wing)


@pytest.mark.parametrize("name", airfoil.RULES)
def test_every_rule_comes_down(name, wing, monkeypatch):
    monkeypatch.setattr(airfoil, "ROWS", 400)
    x, y = airfoil.load(wing)
    curve = airfoil.train(name, x, y, 0)
    assert curve[-1][0] == 2
    assert curve[-1][1] < 0.9 * curve[0][1]


@pytest.fixture
def street(tmp_path):
    draw = np.random.default_rng(0)
    area = draw.uniform(50, 250, 200)
    frame = pd.DataFrame({
        "Id": range(200), "Area": area, "Rooms": draw.integers(1, 8, 200), "Kind": draw.choice(["A", "B"], 200),
        "SalePrice": 1000 * area * draw.uniform(0.9, 1.1, 200),
    })  # fmt: skip
    frame.loc[3, "Area"] = np.nan
    frame.loc[4, "Kind"] = None
    frame.to_csv(tmp_path / "house_prices_train.csv", index=False)
    return tmp_path


def test_words_become_columns_and_gaps_the_mean(street):
    x, y = houses.load(street)
    assert x.shape == (200, 5)  # two numbers, A, B, and no word
    assert x[3, 0] == 0
    assert x[4, 2:].tolist() == [0, 0, 1]
    assert y.dtype == torch.float32
    parts = houses.folds(200)
    assert [len(held) for _, held in parts] == [40] * 5
    assert not set(parts[0][0]) & set(parts[0][1])
    curve = houses.descend(x, y, *parts[0], 0)
    assert len(curve) == 10
    assert curve[-1] < curve[0]
    assert houses.ridge_error(x, y, *parts[0], 1.0) < 0.1
    pd.DataFrame({"Id": [1]}).to_csv(street / "house_prices_train.csv")
    with pytest.raises(WonderlandError, match=r"has no column SalePrice: take train\.csv of Kaggle's house prices"):
        houses.load(street)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lab", "file"),
    [(airfoil, "airfoil_self_noise.dat"), (houses, "house_prices_train.csv")],
    ids=["airfoil", "houses"],
)
def test_the_labs(lab, file, tmp_path):
    try:
        find(file)
    except WonderlandError:
        pytest.skip(f"{file} is not in WONDERLAND_DATA")
    assert lab.main(["--out", str(tmp_path)]) == 0


@pytest.mark.slow
def test_bigrams(tmp_path):
    from examples.bigrams.__main__ import main

    try:
        find("names.txt")
    except WonderlandError:
        pytest.skip("names.txt is not in WONDERLAND_DATA")
    assert main(["--out", str(tmp_path)]) == 0
