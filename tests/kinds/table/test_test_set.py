"""Rows of a separate test set enter no decision about the data to learn from."""

import numpy as np
import pandas as pd
import pytest

from wonderland import kinds
from wonderland.core import WonderlandError


def frame(rows=60):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"n": rng.normal(size=rows), "c": rng.choice(["u", "v"], rows), "y": rng.choice(["a", "b"], rows)}
    )


def test_a_test_set_changes_nothing_that_was_learned(tmp_path):
    train = frame().assign(same=1)
    odd = frame(20).assign(n="many words that are no number", c=[f"new {i}" for i in range(20)], same=range(20))
    alone, both = kinds.open(train, kind="table"), kinds.open(train, kind="table", test=odd)
    assert both.left_out == alone.left_out
    assert (
        [column.kind for column in both.features]
        == [column.kind for column in alone.features]
        == ["number", "category"]
    )
    assert (len(both), both.test_rows.sum(), both.classes) == (80, 20, ["a", "b"])
    assert both.column("n").missing == 20
    assert both.texts_of("c")[[0, 60, 79]].tolist() == [train["c"][0], "new 0", "new 19"]
    assert any(one.text.startswith("Test set: Column 'n' should hold numbers; 20 cells say") for one in both.findings)
    assert both.fingerprint != alone.fingerprint
    with pytest.raises(WonderlandError, match=r"holds class 'z' \(20 rows\), which the model does not know: 'a', 'b'"):
        kinds.open(train, kind="table", test=odd.assign(y="z"))
    odd.to_csv(tmp_path / "odd.csv", index=False)
    assert kinds.open(train, kind="table", test=tmp_path / "odd.csv").fingerprint == both.fingerprint
