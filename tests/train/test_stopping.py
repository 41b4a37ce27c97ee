"""The two rules of early stopping, where they agree and where not; folds that hold every row out once."""

import numpy as np
import pytest

from wonderland.core import WonderlandError
from wonderland.train.folds import cross_validate, k_fold
from wonderland.train.stopping import BookRule, Flat, Patience, Rounds, position


@pytest.mark.parametrize(
    ("scores", "book", "customary"),
    [
        ([0.5, 0.9, 0.8, 0.85, 0.86, 0.87], None, 3),
        ([0.9, 0.5, 0.6, 0.55, 0.5], 4, 2),
        ([0.5, 0.6, 0.7, 0.7, 0.7], 4, 4),
        ([0.5, 0.9, 0.8, 0.7], 3, 3),
    ],
)
def test_patience_and_the_rule_of_the_book_stop_at_their_steps(scores, book, customary):
    assert BookRule(2).first(scores) == book
    assert Patience(2).first(scores) == customary
    losses = [-score for score in scores]
    assert BookRule(2, mode="min").first(losses) == book
    assert Patience(2, mode="min").first(losses) == customary
    assert Patience(2).best(scores[: customary + 1]) == customary - 2


def test_small_gains_and_nan_do_not_count():
    assert Patience(2, least=0.1).first([0.5, 0.55, 0.59]) == 2
    assert Patience(2).first([0.5, float("nan"), float("nan")]) == 2
    assert Patience(1).best([float("nan"), 0.1]) == 1


def test_folds_hold_every_row_out_once():
    folds = list(k_fold(11, 3, seed=4))
    assert sorted(np.concatenate([held for _, held in folds]).tolist()) == list(range(11))
    for train, held in folds:
        assert sorted([*train, *held]) == list(range(11))
        assert len(held) in (3, 4)
    found = cross_validate(lambda train, held: len(held), folds)
    assert (found.mean, round(found.error, 12)) == (11 / 3, round(1 / 3, 12))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Patience(0), "Patience takes a patience of at least 1 evaluation, not 0."),
        (lambda: BookRule(2, mode="low"), "BookRule takes a mode of 'max' (scores) or 'min' (losses), not 'low'."),
        (lambda: Patience(2, least=-1), "Patience takes a least improvement of at least 0, not -1."),
        (lambda: Flat(0), "Flat takes an epsilon above 0, not 0."),
        (lambda: k_fold(3, 4), "k_fold takes from 2 folds to one for each of the 3 rows, not 4."),
        (
            lambda: cross_validate(lambda a, b: float("nan"), k_fold(4, 2)),
            "cross_validate got the score nan from fold 0: there is no mean of it.",
        ),
    ],
)
def test_errors_to_the_word(call, sentence):
    with pytest.raises(WonderlandError) as error:
        call()
    assert str(error.value) == sentence


def test_another_round_follows_where_the_last_one_paid():
    rounds = Rounds(steps=4, extensions=2)

    def rows(*values):
        return [{"step": 2 * place, "loss": value} for place, value in enumerate(values, 1)]

    assert not rounds.stops(rows(1.0, 0.5), "loss")  # fell in its second half
    assert rounds.stops(rows(1.0, 0.99), "loss")
    assert not rounds.stops(rows(1.0, 0.5, 0.6), "loss")  # within the second round
    assert not rounds.stops(rows(1.0, 0.5, 0.6, 0.5, 0.4, 0.3), "loss")
    assert rounds.stops(rows(1.0, 0.5, 0.8, 0.7, 0.6, 0.5), "loss")  # no better than the round before
    assert rounds.stops([*rows(1.0, 0.5), {"step": 28, "loss": 0.1}], "loss")
    assert [position(step, 4) for step in (0, 3, 4, 11, 12)] == [(0, 4), (3, 4), (0, 8), (7, 8), (0, 16)]
