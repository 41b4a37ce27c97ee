"""Metrics against scikit-learn, and numbers of the books."""

import numpy as np
import pytest
from sklearn import metrics as theirs

from wonderland.core import WonderlandError
from wonderland.tasks import metrics


def test_they_are_scikit_learns():
    random = np.random.default_rng(0)
    y, scores = random.integers(0, 4, 200), random.normal(size=(200, 4))
    predicted, yes = scores.argmax(1), y == 1
    assert metrics.macro_f1(y, predicted) == pytest.approx(theirs.f1_score(y, predicted, average="macro"))
    expected = theirs.precision_recall_fscore_support(yes, predicted == 1, average="binary")[:3]
    assert metrics.precision_recall_f1(y, predicted, 1) == pytest.approx(expected)
    tied = scores[:, 1].round(1)
    assert metrics.average_precision(yes, tied) == pytest.approx(theirs.average_precision_score(yes, tied))
    for k in (1, 2, 3):
        expected = 1 - theirs.top_k_accuracy_score(y, scores, k=k, labels=range(4))
        assert metrics.top_k_error(y, scores, k) == pytest.approx(expected)
    p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    assert metrics.brier(y, p) == pytest.approx(np.mean(((p - np.eye(4)[y]) ** 2).sum(1)))


def test_perplexity_of_a_perfect_model_is_one_and_hidden_tokens_are_not_read():
    sure = np.log(np.array([[[1.0, 1e-300], [0.5, 0.5]]]))
    y, mask = np.array([[0, 1]]), np.array([[True, False]])
    assert metrics.perplexity(y, sure, mask) == 1.0
    assert metrics.perplexity(y, sure) == pytest.approx(2**0.5)


def test_d2l_bleu_is_d2ls():
    assert metrics.d2l_bleu(["A", "B", "C", "D", "E", "F"], ["A", "B", "B", "C", "D"], 2) == pytest.approx(
        np.exp(1 - 6 / 5) * 0.8**0.5 * 0.75**0.25
    )
    assert metrics.bleu(list("abcde"), list("abcde")) == 1.0
    assert metrics.bleu(list("abcde"), []) == 0.0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: metrics.top_k_error(np.array([0]), np.ones((1, 3))),
            "top_k_error takes a k from 1 to the 3 classes, not 5.",
        ),
        (
            lambda: metrics.brier(np.array([3]), np.ones((1, 3)) / 3),
            "y has the label 3, and the scores have classes 0 to 2.",
        ),
        (
            lambda: metrics.zero_one(np.ones(3), np.ones((3, 1))),
            "y has shape (3,) and scores (3, 1): give both the same shape; nothing is broadcast.",
        ),
        *(
            (
                lambda f=f: f(np.ones(3), np.ones((3, 1))),
                "y has shape (3,) and predicted (3, 1): give both the same shape; nothing is broadcast.",
            )
            for f in (metrics.accuracy, metrics.balanced_accuracy, metrics.mae, metrics.rmse, metrics.r2)
        ),
        (
            lambda: metrics.log_loss(np.array([2]), np.zeros((1, 2))),
            "y has the label 2, and the scores have classes 0 to 1.",
        ),
        (
            lambda: metrics.confusion(np.array([0]), np.array([2]), 2),
            "predicted has the label 2, and the classes are 0 to 1.",
        ),
    ],
)
def test_error_messages(call, sentence):
    with pytest.raises(WonderlandError) as error:
        call()
    assert str(error.value) == sentence


def test_lists_are_accepted_and_empty_input_is_refused():
    assert metrics.confusion([0, 1, 1], [0, 1, 0], 2).tolist() == [[1, 0], [1, 1]]
    assert metrics.balanced_accuracy([0, 0, 1], [0, 1, 1]) == 0.75
    assert metrics.top_k_error([1], [[0.1, 0.9]], k=1) == 0
    for call in (lambda: metrics.accuracy([], []), lambda: metrics.log_loss(np.zeros(0, int), np.zeros((0, 2)))):
        with pytest.raises(WonderlandError, match=r"^y is empty: there is nothing to measure\.$"):
            call()
    with pytest.raises(WonderlandError, match=r"^y has the label 0\.5, and the scores have classes 0 to 5\.$"):
        metrics.top_k_error(np.array([0.5]), np.ones((1, 6)))
