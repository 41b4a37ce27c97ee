"""Classifier and Regressor keep scikit-learn's contract, and work inside its tools."""

import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import StackingClassifier
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import wonderland
from wonderland import Classifier, Regressor, WonderlandError
from wonderland.data.weighted_rows import weighted_rows


@parametrize_with_checks([Classifier(), Regressor()])
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def mixed():
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"size": random.normal(size=90), "color": random.choice(["red", "blue"], 90)}, index=range(5, 95)
    )
    frame.iloc[3, 0] = np.nan
    y = np.where((frame["size"].fillna(0) + (frame["color"] == "red")) > 0.5, "yes", "no")
    return frame, y


def test_weights_are_copies_to_the_bit():
    random = np.random.default_rng(1)
    X, weights = random.normal(size=(40, 3)), random.integers(0, 4, 40)
    y = (X[:, 0] > 0).astype(int)
    copies = np.repeat(np.arange(40), weights)
    random.shuffle(copies)
    weighted = Classifier().fit(X, y, sample_weight=weights).predict_proba(X)
    assert (weighted == Classifier().fit(X[copies], y[copies]).predict_proba(X)).all()


def test_equal_rows_are_merged_and_spread_over_at_most_five_copies():
    frame = pd.DataFrame({"a": [1.0, 1.0, -0.0, 0.0], "b": ["x", "x", None, None]})
    rows, weights = weighted_rows(frame, np.array([4.0, 4.0, 0.25, 0.25]))
    assert rows.tolist() == [2, 0, 0, 0, 0, 0]
    assert weights.tolist() == [0.5, 1.6, 1.6, 1.6, 1.6, 1.6]


def test_frames_go_in_and_out(mixed):
    frame, y = mixed
    model = Classifier().fit(frame, y)
    assert model.feature_names_in_.tolist() == ["size", "color"]
    assert model.score(frame, y) > 0.9
    from_polars = Classifier().fit(pl.from_pandas(frame), pl.Series(y))
    assert (model.predict_proba(frame) == from_polars.predict_proba(pl.from_pandas(frame))).all()
    table = model.set_output(transform="pandas").predict_proba(frame)
    assert table.columns.tolist() == ["no", "yes"]
    assert table.index.equals(frame.index)
    assert model.predict(frame).name == "prediction"
    assert model.set_output(transform="polars").predict_set(frame).columns == ["no", "yes"]
    with pytest.raises(WonderlandError, match=r"^The output is 'default', 'pandas' or 'polars', not 'csv'.$"):
        model.set_output(transform="csv")


def test_sets_and_intervals_cover_at_any_level(iris):
    X, y = iris
    model = Classifier().fit(X[::2], y[::2])
    for level in (0.8, 0.95):
        assert model.predict_set(X[1::2], level=level)[np.arange(75), y[1::2]].mean() > level - 0.1
    X, y = load_diabetes(return_X_y=True)
    model = Regressor().fit(X[::2], y[::2])
    low, high = model.predict_interval(X[1::2], level=0.9).T
    assert 0.83 < ((low <= y[1::2]) & (y[1::2] <= high)).mean() < 0.97
    assert (high - low).mean() > np.diff(model.predict_interval(X[1::2], level=0.5)).mean()


def test_the_tools_of_scikit_learn(iris, mixed):
    X, y = iris
    scaled = make_pipeline(StandardScaler().set_output(transform="pandas"), Classifier(steps=60))
    assert (cross_val_predict(scaled, X, y, cv=3, n_jobs=2) == y).mean() > 0.9
    search = GridSearchCV(Classifier(), {"steps": [20, 150]}, cv=2, n_jobs=2).fit(X, y)
    assert search.best_score_ > 0.9
    calibrated = CalibratedClassifierCV(Classifier(steps=60), cv=2).fit(X, y)
    assert calibrated.predict_proba(X).shape == (150, 3)
    stack = StackingClassifier([("ours", Classifier(steps=60)), ("line", LogisticRegression(max_iter=500))], cv=2)
    assert stack.fit(X, y).score(X, y) > 0.9
    importance = permutation_importance(search.best_estimator_, X, y, n_repeats=2, random_state=0)
    assert importance.importances_mean.argmax() in (2, 3)
    frame, labels = mixed
    columns = ColumnTransformer([("numbers", StandardScaler(), ["size"])], remainder="passthrough")
    pipeline = make_pipeline(columns.set_output(transform="pandas"), Classifier(steps=60))
    assert pipeline.fit(frame, labels).score(frame, labels) > 0.8


def test_metadata_routing_of_weights(iris):
    X, y = iris
    with sklearn.config_context(enable_metadata_routing=True):
        model = Classifier(steps=20).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        result = cross_validate(make_pipeline(model), X, y, cv=2, params={"sample_weight": np.ones(150)})
    assert len(result["test_score"]) == 2


def test_class_weights_and_metrics(iris):
    random = np.random.default_rng(2)
    X = random.normal(size=(300, 2))
    y = (X[:, 0] + random.normal(size=300) > 1.6).astype(int)
    plain, balanced = Classifier().fit(X, y), Classifier(class_weight="balanced").fit(X, y)
    assert balanced.predict(X).mean() > plain.predict(X).mean()
    f1 = Classifier(metric="f1").fit(X, y)
    assert f1.threshold_ < 0.5
    assert f1.score(X, y) > Classifier().fit(X, y).set_params(metric="f1").score(X, y)
    assert -1 < Classifier(metric="neg_log_loss").fit(X, y).score(X, y) < 0
    assert Regressor(metric="neg_mean_absolute_error", steps=20).fit(X, X[:, 0]).score(X, X[:, 0]) < 0
    with pytest.raises(WonderlandError, match=r"^class_weight is 'balanced' or a weight for each class, not 'even'.$"):
        Classifier(class_weight="even").fit(X, y)
    with pytest.raises(WonderlandError, match=r"^class_weight names 7, which is no class of y.$"):
        Classifier(class_weight={7: 1.0}).fit(X, y)


def test_a_pickle_holds_our_own_formats_only(iris):
    X, y = iris
    model = Classifier(steps=20).fit(X, y)
    assert set(model.fitted_.__getstate__()) == {"json", "tensors"}
    again = copy.deepcopy(model)  # by the state that a pickle holds
    assert (again.predict_proba(X) == model.predict_proba(X)).all()


def test_sentences(iris):
    X, y = iris
    with pytest.raises(
        WonderlandError,
        match=r"^The target has one class only \(0\), so there is nothing to learn. Add rows of another class.$",
    ):
        Classifier().fit(X[:50], y[:50])
    with pytest.raises(WonderlandError, match=r"^scikit-learn has no metric 'f11'\. Did you mean 'f1'"):
        Classifier(metric="f11").fit(X, y)
    with pytest.raises(
        WonderlandError,
        match=r"^Every sample_weight is zero, so there is nothing to learn from: give some rows a positive weight.$",
    ):
        Classifier().fit(X, y, sample_weight=np.zeros(150))
    with pytest.raises(
        WonderlandError,
        match=r"^Regressor found 2 rows of positive weight that differ \(n_samples=2\): it needs at least 4.$",
    ):
        Regressor().fit(X[:2], [1.0, 2.0])


def test_fit_takes_x_and_y(iris, tmp_path):
    X, y = iris
    assert wonderland.fit(X, y, out=tmp_path / "run", steps=20).classes == ["0", "1", "2"]
