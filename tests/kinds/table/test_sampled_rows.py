"""Rows as vectors and back: numbers, dates, categories, missing cells; saved encoders that were changed."""

import numpy as np
import pandas as pd
import pytest
import torch

import wonderland
from wonderland.core import WonderlandError
from wonderland.kinds.table.generated import distance
from wonderland.kinds.table.sampled_rows import SampledRows, decimals_of, from_ranks, normal_ranks


@pytest.fixture(scope="module")
def table():
    generator = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "age": generator.integers(18, 90, n).astype(float),
            "pay": np.round(generator.gamma(2, 1000, n), 2),
            "zeros": np.where(generator.random(n) < 0.6, 0, generator.integers(1, 50, n)),
            "job": generator.choice(["cook", "smith", None], n),
            "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(generator.integers(0, 365, n), unit="D"),
            "ok": generator.choice(["yes", "no"], n),
            "note": [f"a few words about row {i} and more" for i in range(n)],
        }
    )
    frame.loc[generator.random(n) < 0.1, "age"] = np.nan
    return frame, wonderland.kinds.open(frame, task="generate")


def test_rows_come_back(table):
    frame, dataset = table
    encoder = SampledRows.fit(dataset, np.arange(len(frame)))
    back = encoder.frame(encoder.encode(dataset))
    assert list(back.columns) == ["age", "pay", "zeros", "job", "seen", "ok"]
    assert back["age"].isna().equals(frame["age"].isna())
    assert np.nanmax(np.abs(back["age"] - frame["age"])) <= 1
    assert np.abs(back["pay"] - frame["pay"]).quantile(0.99) < 60
    assert (back["zeros"] == frame["zeros"])[frame["zeros"] == 0].all()
    assert back["zeros"].dtype == np.int64
    assert back["job"].fillna("?").equals(frame["job"].fillna("?").astype(object))
    assert (back["seen"] - frame["seen"]).abs().max() <= pd.Timedelta(days=1)
    assert back["ok"].tolist() == frame["ok"].tolist()
    assert "Column 'note' holds free text, which is not generated, and is left out." in [
        f.text for f in dataset.findings
    ]


def test_ranks_are_quantiles_of_the_normal_distribution():
    values = np.random.default_rng(0).gamma(2, 1, 4000)
    knots = np.quantile(values, np.linspace(0, 1, 513))
    ranks = normal_ranks(values, knots)
    assert abs(ranks.mean()) < 0.01
    assert ranks.std() == pytest.approx(1, abs=0.01)
    inside = (values > knots[1]) & (values < knots[-2])
    assert np.allclose(from_ranks(ranks, knots)[inside], values[inside])
    assert (decimals_of(np.array([1.0, 2.0])), decimals_of(np.array([0.25])), decimals_of(np.array([1 / 3]))) == (
        0,
        2,
        17,
    )


def test_distances_of_columns():
    a = pd.Series(["x", "x", "y", None], dtype=object)
    assert distance(a, a) == 0
    assert distance(a, pd.Series(["z"] * 4, dtype=object)) == 1
    assert distance(pd.Series([0.0, 1.0]), pd.Series([5.0, 6.0])) == 1


def test_an_encoder_is_read_back_and_a_changed_one_is_refused(table):
    frame, dataset = table
    encoder = SampledRows.fit(dataset, np.arange(len(frame)))
    saved, tensors = encoder.to_json(), encoder.tensors()
    again = SampledRows.from_json(saved, tensors)
    assert torch.equal(again.encode(dataset), encoder.encode(dataset))
    start = "The saved preprocessing is damaged or not ours: "
    for changes, words in (
        ({"decimals": [99] * 4}, "the decimals are not known."),
        ({"decimals": []}, "the decimals are not known."),
    ):
        with pytest.raises(WonderlandError) as told:
            SampledRows.from_json({**saved, **changes}, tensors)
        assert str(told.value) == start + words
    for knots, words in (
        (tensors["knots"][:1], "the tensor 'knots' does not fit its columns."),
        (tensors["knots"].flip(1), "the tensor 'knots' does not hold quantiles in order."),
    ):
        with pytest.raises(WonderlandError) as told:
            SampledRows.from_json(saved, {**tensors, "knots": knots})
        assert str(told.value) == start + words
