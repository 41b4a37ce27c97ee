"""Hints: groups, times, labels that differ in spelling, two values with regression."""

import numpy as np
import pandas as pd

from wonderland import kinds


def said(frame, kind, **options):
    found = kinds.open(frame, target="y", kind="table", **options).findings
    return [finding.text for finding in found if finding.kind == kind]


def frame(rows=120):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"x": rng.normal(size=rows), "z": rng.integers(0, 50, rows), "y": rng.choice(["a", "b"], rows)})


def test_repeated_identifiers_suggest_a_group():
    policies = frame().assign(policy_id=np.arange(120) // 3 + 1000)
    text = (
        "Column 'policy_id' has 40 values in 120 rows. If the rows of a value belong together, keep them in one part of the "
        "split: --group 'policy_id'."
    )
    assert said(policies, "group hint") == [text]
    assert said(policies, "group hint", group="policy_id") == []
    blocks = frame().assign(farm=[f"farm {i // 4}" for i in range(120)])
    assert len(said(blocks, "group hint")) == 1
    assert said(blocks.assign(farm=np.random.default_rng(1).permutation(blocks["farm"])), "group hint") == []
    assert said(frame(), "group hint") == []


def test_dates_in_order_suggest_a_time():
    dated = frame().assign(seen=pd.date_range("2024-01-01", periods=120).astype(str))
    text = "Column 'seen' holds dates. If the model is to predict later rows, test it on the latest: --time 'seen'."
    assert said(dated, "time hint") == [text]
    assert said(dated, "time hint", time="seen") == []
    shuffled = dated.assign(seen=np.random.default_rng(1).permutation(dated["seen"]))
    assert said(shuffled, "time hint") == []
    assert len(said(shuffled.rename(columns={"seen": "order date"}), "time hint")) == 1


def test_labels_that_differ_in_spelling():
    labels = ["Positive"] * 60 + ["negative"] * 50 + ["positive"] * 6 + ["positve"] * 4
    text = "Classes 'Positive' (60 rows) and 'positve' (4 rows) differ in spelling only. If they are the same, write them in one way."
    found = said(frame().assign(y=labels), "similar labels")
    assert text in found
    assert len(found) == 3
    assert said(frame().assign(y=["setosa", "virginica", "versicolor"] * 40), "similar labels") == []


def test_two_values_with_regression():
    text = (
        "The target 'y' has two values only, and regression was asked for: a number between them is predicted. For classes "
        "with probabilities leave task out."
    )
    assert said(frame().assign(y=[0, 1] * 60), "task", task="regression") == [text]
