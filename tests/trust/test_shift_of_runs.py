"""`compare`: its level without shift, planted shifts, and what is stored of the rows to compare with."""

import numpy as np
import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.trust import Reference, compare, estimate_labels


def rows(draw, count, shift=0.0):
    x = draw.normal(shift, 1, count)
    gaps = np.where(draw.random(count) < 0.1, np.nan, draw.normal(size=count)).round(1)
    columns = {"x": x, "near": x + draw.normal(size=count), "town": draw.choice(["a", "b", "c"], count), "gaps": gaps}
    return columns, draw.dirichlet([1, 1, 1], count)


def reference(draw, count):
    columns, p = rows(draw, count)
    y = (p.cumsum(1) > draw.random((count, 1))).argmax(1)
    return Reference.of(columns, p, y, ["u", "v", "w"])


def found(seed, shift=0.0, count=60):
    draw = np.random.default_rng(seed)
    return compare(reference(draw, 150), *rows(draw, count, shift), draws=99, seed=seed)


def test_the_level_holds_for_all_tests_together():
    alarms = sum(found(seed).shifted for seed in range(60))
    assert alarms <= 8  # at 5 %, more than 8 of 60 happen in 1 of 300 cases


def test_a_planted_shift_is_found_and_named():
    results = [found(seed, shift=1.0) for seed in range(10)]
    assert sum(result.shifted for result in results) >= 9
    assert results[0].changed[0].name == "x"
    assert results[0].sentence.startswith("These rows differ from those the model was calibrated on, most clearly in x")


def test_few_rows_are_said_and_too_few_refused():
    small = found(0, count=5)
    assert small.together is None
    assert "5 new rows are too few to test all columns together: 10 are needed." in small.notes
    with pytest.raises(WonderlandError, match="Shift is tested with 2 rows or more on each side, not 1"):
        found(0, count=1)
    assert any(note.startswith("Shares of classes are estimated from 30 rows") for note in small.notes)


def test_constant_missing_infinite_and_duplicate_values_give_an_answer():
    ones = np.ones(40)
    odd = np.r_[np.full(20, np.nan), np.full(10, np.inf), np.full(10, -1e300)]
    old = Reference.of({"one": ones, "odd": odd, "name": ["a"] * 40}, ones[:, None], ones)
    assert not compare(old, {"one": ones, "odd": odd, "name": ["a"] * 40}, ones[:, None]).shifted
    result = compare(old, {"one": ones, "odd": ones, "name": ["new"] * 40}, ones[:, None])
    assert result.shifted
    assert "name: 100.0% are values that were rare or absent in the calibration rows, such as 'new'." in [
        c.words for c in result.columns
    ]


def test_dates_are_said_as_dates():
    day = np.datetime64("2024-01-01") + np.arange(60)
    old = Reference.of({"when": day}, np.zeros((60, 1)), np.zeros(60))
    result = compare(old, {"when": day + 365}, np.zeros((60, 1)))
    assert result.columns[0].words == "when: the median date was 2024-01-30 and is 2025-01-29."


def test_the_sample_survives_storage_and_damage_is_refused():
    own = reference(np.random.default_rng(0), 80)
    tensors, saved = own.tensors(), own.to_json()
    read = Reference.read(saved, tensors)
    assert all((read.columns[name].astype(str) == own.columns[name].astype(str)).all() for name in own.columns)
    new = rows(np.random.default_rng(1), 50)
    assert compare(read, *new).columns == compare(own, *new).columns
    damaged = [
        (saved, tensors | {"reference.y": tensors["reference.y"] + 7}),
        (saved, {name: value for name, value in tensors.items() if name != "reference.column.1"}),
        (saved, tensors | {"reference.column.2": torch.full((80,), 99, dtype=torch.int32)}),
        (saved | {"classes": ["u"]}, tensors),
        (saved | {"rows": "many"}, tensors),
        (saved | {"dates": ["nowhere"]}, tensors),
        (saved | {"dates": ["town"]}, tensors),
        (saved | {"dates": ["x"]}, tensors | {"reference.column.0": torch.full((80,), 1e300, dtype=torch.float64)}),
        (
            saved
            | {
                "columns": [
                    entry | ({"levels": ["a" * 300] * 3} if "levels" in entry else {}) for entry in saved["columns"]
                ]
            },
            tensors,
        ),
        ([], tensors),
    ]
    for content, arrays in damaged:
        with pytest.raises(WonderlandError, match="holds no reference rows that can be read: it is damaged"):
            Reference.read(content, arrays)


def test_a_long_cell_does_not_widen_all_others():
    names = np.array(["a"] * 1000 + ["b" * 50_000_000], object)  # as one array of text: 200 GB
    own = Reference.of({"name": names}, np.zeros((1001, 1)), np.zeros(1001))
    assert set(own.columns["name"]) == {"a", "(other)"}
    assert set(own.alike({"name": names})["name"]) == {"a", "(other)"}


def test_a_class_without_reference_rows_has_no_estimated_share():
    p = np.full((40, 3), 1 / 3)
    own = Reference.of({}, p, np.zeros(40, np.int64), ["u", "v", "w"])
    with pytest.raises(WonderlandError, match="No row of class 'v' is among the reference rows"):
        estimate_labels(own, p, "em")


def test_columns_that_are_missing_are_named():
    own = Reference.of({"x": np.zeros(5)}, np.zeros((5, 1)), np.zeros(5))
    with pytest.raises(WonderlandError, match="The new rows have no column 'x'"):
        compare(own, {"z": np.zeros(5)}, np.zeros((5, 1)))


def test_categories_of_few_rows_hold_the_level():
    """Which categories are common is decided by other rows than those that new rows are compared with."""
    found = []
    for seed in range(40):
        random = np.random.default_rng(seed)
        names = np.array([f"family {i}" for i in random.integers(0, 150, 400)])
        outputs = random.normal(size=(400, 1))
        old = Reference.of({"family": names[:200]}, outputs[:200], np.zeros(200))
        found.append(compare(old, {"family": names[200:]}, outputs[200:], draws=99).shifted)
    assert np.mean(found) <= 0.15
