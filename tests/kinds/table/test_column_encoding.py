"""One column becomes numbers or a code by an encoding."""

import numpy as np
import pandas as pd
import pytest

from wonderland.core import WonderlandError
from wonderland.data.columns import read_column
from wonderland.kinds.table import column_encoding
from wonderland.kinds.table.column_encoding import ColumnEncoding, read_encoding
from wonderland.kinds.table.text_features import TextFeatures


def test_categories():
    cells = ["b"] * 10 + ["a"] * 10 + ["rare"] + [None] * 4
    encoding = ColumnEncoding.fit(read_column("x", pd.Series(cells)))
    assert encoding.levels == ("a", "b", "rare", None)
    new = read_column("x", pd.Series(["a", "b", "rare", "unseen", None, "a", "b"]))
    assert encoding.codes(new).tolist() == [1, 2, 3, 0, 4, 1, 2]


def test_every_category_has_a_code():
    cells = [f"c{i}" for i in range(600) for _ in range(1 + (i % 4 > 0))]
    encoding = ColumnEncoding.fit(read_column("x", pd.Series(cells)))
    assert len(encoding.levels) == 600
    assert sorted(set(encoding.codes(read_column("x", pd.Series(cells))))) == list(range(1, 601))


def test_single_rows_are_pooled_where_they_are_many():
    cells = [f"ticket {i}" for i in range(40)] + ["a", "b"] * 30
    encoding = ColumnEncoding.fit(read_column("x", pd.Series(cells)))
    assert encoding.levels == ("a", "b")


def test_the_rarest_of_very_many_categories_share_codes(monkeypatch):
    monkeypatch.setattr(column_encoding, "MAX_LEVELS", 50)
    cells = [f"c{i}" for i in range(300) for _ in range(5 + (i < 50))]
    column = read_column("x", pd.Series(cells))
    encoding = ColumnEncoding.fit(column)
    assert set(encoding.levels) == {f"c{i}" for i in range(50)}
    codes = encoding.codes(column)
    assert codes.min() == 1
    assert 51 <= codes.max() < encoding.code_count == 51 + 2048
    assert len(set(codes)) > 270
    assert read_encoding(encoding.to_json()) == encoding


def test_texts_become_directions_of_their_words():
    texts = [f"the {'good' if i % 2 else 'bad'} food number {i}" for i in range(80)]
    column = read_column("x", pd.Series([*texts, None]))
    encoding = ColumnEncoding.fit(column)
    values = encoding.values(column)
    assert encoding.text is not None
    assert values.shape == (81, 5)
    assert values[-1].tolist() == [0.0] * 4 + [1.0]
    assert values[0, 0] == np.log1p(len(texts[0]))
    sides = values[:80, 2:4]
    good, bad = sides[1::2].mean(0), sides[::2].mean(0)
    assert np.abs(good - bad).max() > 1.5  # in units of the spread of the first feature
    again = read_encoding(encoding.to_json(), dict(encoding.text.tensors()))
    assert np.array_equal(again.values(column), values)


def test_the_directions_are_those_of_a_singular_value_decomposition():
    decomposition = pytest.importorskip("sklearn.decomposition")
    extraction = pytest.importorskip("sklearn.feature_extraction.text")
    random = np.random.default_rng(0)
    texts = np.array([" ".join(random.choice(list("abcdefghij"), 6)) for _ in range(200)], dtype=object)
    features = TextFeatures.fit(texts, np.arange(200))
    assert features is not None
    weighted = extraction.TfidfVectorizer(sublinear_tf=True, token_pattern=r"\w+", min_df=2).fit_transform(texts)
    peer = decomposition.TruncatedSVD(features.dimensions, algorithm="arpack", random_state=0).fit_transform(weighted)
    ours = features.values(texts)
    scale = ours.std(0) / peer.std(0)
    assert scale == pytest.approx(scale[0], rel=1e-3)
    correlation = [abs(np.corrcoef(ours[:, k], peer[:, k])[0, 1]) for k in range(features.dimensions)]
    assert min(correlation) > 0.999


def test_texts_without_a_repeated_word_are_hashed():
    column = read_column("x", pd.Series([f"w{i} x{i} y{i}" for i in range(40)]))
    assert column.kind == "text"
    assert ColumnEncoding.fit(column).values(column).shape == (40, 34)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"words": []}, "a text column has no list of words"),
        ({"words": ["a"] * 5}, "the tensors of a text column do not fit its words"),
    ],
)
def test_damaged_texts_are_refused(change, problem):
    column = read_column("x", pd.Series([f"the {i % 3} food number {i}" for i in range(80)]))
    encoding = ColumnEncoding.fit(column)
    assert encoding.text is not None
    with pytest.raises(WonderlandError) as error:
        read_encoding(encoding.to_json() | change, dict(encoding.text.tensors()))
    assert str(error.value) == f"The saved preprocessing is damaged or not ours: column 'x': {problem}."
