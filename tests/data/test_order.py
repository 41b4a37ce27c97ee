"""Orders of rows: a curriculum grows to everything, and importance leaves means as they are."""

import numpy as np
import pytest

from wonderland.core import WonderlandError
from wonderland.data import curriculum, importance_sample


def test_a_curriculum_grows_from_the_easiest_rows_to_all():
    difficulty = np.random.default_rng(0).permutation(50)
    before: set[int] = set()
    for epoch in range(12):
        rows = curriculum(difficulty, epoch=epoch, epochs=10, start=0.3, power=2)
        assert before <= set(rows.tolist())
        left = np.setdiff1d(np.arange(50), rows)
        assert not len(left) or difficulty[rows].max() < difficulty[left].min()
        before = set(rows.tolist())
        assert len(rows) == (15 if epoch == 0 else len(rows))
    assert len(before) == 50
    assert len(curriculum(difficulty, epoch=0, epochs=1)) == 50


@pytest.mark.parametrize("importance", [np.ones(6), np.array([5.0, 0.1, 1.0, 2.0, 0.3, 1.0])])
def test_weighted_means_are_unbiased_whatever_the_importance(importance):
    losses = np.array([3.0, -1.0, 0.5, 8.0, 2.0, 1.0])
    drawn = importance_sample(importance, 200_000, seed=1)
    values = losses[drawn.rows] * drawn.weight
    error = values.std() / len(values) ** 0.5
    assert abs(values.mean() - losses.mean()) < 4 * error
    assert abs(drawn.weight.mean() - 1) < 4 * drawn.weight.std() / len(values) ** 0.5 + 1e-12


def test_importance_proportional_to_the_loss_has_no_variance_and_draws_are_reproducible():
    losses = np.array([3.0, 1.0, 0.0, 8.0])
    drawn = importance_sample(losses, 50, seed=2, epoch=1, position=3)
    np.testing.assert_allclose(losses[drawn.rows] * drawn.weight, losses.mean())
    assert 2 not in drawn.rows
    again = importance_sample(losses, 50, seed=2, epoch=1, position=3)
    assert np.array_equal(drawn.rows, again.rows)
    other = importance_sample(losses, 50, seed=2, epoch=1, position=4)
    assert not np.array_equal(drawn.rows, other.rows)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: curriculum([1.0], epoch=0, epochs=2, start=0.0), "curriculum takes a start above 0 and at most 1, not 0.0."),
        (lambda: curriculum([1.0], epoch=0, epochs=2, power=0), "curriculum takes a power above 0, not 0."),
        (lambda: curriculum([1.0], epoch=-1, epochs=2), "curriculum takes an epoch of at least 0 of at least 1 epochs, not -1 of 2."),
        (lambda: curriculum([[1.0]], epoch=0, epochs=2), r"curriculum takes one number for each row as its difficulty, not shape \(1, 1\)."),
        (lambda: curriculum([1.0, float("nan")], epoch=0, epochs=2), "curriculum got a difficulty that is nan at row 1."),
        (lambda: curriculum(["easy"], epoch=0, epochs=2), "curriculum takes numbers as its difficulty, one for each row."),
        (lambda: importance_sample([0.0, 0.0], 1), "importance_sample takes an importance of at least 0 for each row, and above 0 for some."),
        (lambda: importance_sample([1.0, -1.0], 1), "importance_sample takes an importance of at least 0 for each row, and above 0 for some."),
        (lambda: importance_sample([1.0], 0), "importance_sample takes a size of at least 1 row, not 0."),
    ],
)  # fmt: skip
def test_errors_to_the_word(call, sentence):
    with pytest.raises(WonderlandError, match=f"^{sentence}$"):
        call()
