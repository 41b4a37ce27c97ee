import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from wonderland.tasks import metrics


@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(5, 60))
@settings(deadline=None, max_examples=50)
def test_classification_metrics_equal_scikit_learn(seed, classes, rows):
    generator = np.random.default_rng(seed)
    y = generator.integers(0, classes, rows)
    y[:classes] = np.arange(classes)[: len(y[:classes])]
    p = generator.dirichlet(np.ones(classes), rows).round(2) + 1e-3
    p /= p.sum(1, keepdims=True)
    predicted = p.argmax(1)
    assert metrics.accuracy(y, predicted) == pytest.approx(sk.accuracy_score(y, predicted))
    expected = np.mean([np.mean(predicted[y == label] == label) for label in np.unique(y)])
    assert metrics.balanced_accuracy(y, predicted) == pytest.approx(expected)
    labels = list(range(classes))
    assert metrics.log_loss(y, np.log(p)) == pytest.approx(sk.log_loss(y, p, labels=labels))
    if len(np.unique(y)) == classes:
        theirs = sk.roc_auc_score(y, p[:, 1]) if classes == 2 else sk.roc_auc_score(y, p, multi_class="ovr")
        assert metrics.macro_auroc(y, p) == pytest.approx(theirs)
    assert (metrics.confusion(y, predicted, classes) == sk.confusion_matrix(y, predicted, labels=labels)).all()


@given(st.integers(0, 10_000), st.integers(3, 50))
@settings(deadline=None, max_examples=50)
def test_regression_metrics_equal_scikit_learn(seed, rows):
    generator = np.random.default_rng(seed)
    y, predicted = generator.normal(size=rows), generator.normal(size=rows)
    assert metrics.mae(y, predicted) == pytest.approx(sk.mean_absolute_error(y, predicted))
    assert metrics.rmse(y, predicted) == pytest.approx(sk.root_mean_squared_error(y, predicted))
    assert metrics.r2(y, predicted) == pytest.approx(sk.r2_score(y, predicted))


def test_undefined_metrics_are_none():
    assert metrics.auroc(np.zeros(3), np.arange(3)) is None
    assert metrics.macro_auroc(np.zeros(2, int), np.array([[0.9, 0.1], [0.8, 0.2]])) is None
    assert metrics.r2(np.ones(3), np.ones(3)) is None
