"""Sets hold the truth as often as they say, by class and by group too, and are not larger than MAPIE's."""

import warnings

import numpy as np
import pytest

from wonderland.core import WonderlandError
from wonderland.trust import (
    ConformalSets,
    aps_scores,
    conformal_quantile,
    conformal_sets,
    cross_sets,
    raps_scores,
    weighted_quantile,
)


def drawn(rows, seed, classes=5, sharp=1.3):
    """Rows of a classifier that is somewhat too sure, with unequal classes."""
    generator = np.random.default_rng(seed)
    logits = 1.5 * generator.normal(size=(rows, classes)) + np.linspace(1, -0.5, classes)
    truth = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    y = (truth.cumsum(1) < generator.random((rows, 1))).sum(1)
    claimed = np.exp(sharp * logits)
    return claimed / claimed.sum(1, keepdims=True), np.minimum(y, classes - 1)


@pytest.mark.parametrize("score", ["lac", "aps", "raps"])
def test_coverage_over_two_hundred_splits(score):
    hits, used = [], None
    for split in range(200):
        p, y = drawn(350, split)
        fit = conformal_sets(p[:150], y[:150], score=score, seed=split)
        used = len(fit.cells[""])
        hits.append(fit.sets(p[150:], 0.9)[np.arange(200), y[150:]].mean())
    error = np.std(hits) / np.sqrt(200)
    assert 0.9 - 3 * error <= np.mean(hits) <= 0.9 + 1 / (used + 1) + 3 * error


def test_every_class_and_every_group_reaches_the_level():
    by_class, by_group = [], []
    for split in range(200):
        p, y = drawn(2000, split)
        rows = np.concatenate([np.flatnonzero(y == k)[:50] for k in range(5)])
        if len(rows) < 250:
            continue
        rest = np.setdiff1d(np.arange(2000), rows)
        chosen = conformal_sets(p[rows], y[rows], by="class").sets(p[rest], 0.9)
        inside = chosen[np.arange(len(rest)), y[rest]]
        by_class.append([inside[y[rest] == k].mean() for k in range(5)])
        group = np.where(p.max(1) > 0.6, "sure", "unsure")
        fit = conformal_sets(p[:300], y[:300], by="group", groups=group[:300])
        inside = fit.sets(p[300:], 0.9, groups=group[300:])[np.arange(1700), y[300:]]
        by_group.append([inside[group[300:] == name].mean() for name in ("sure", "unsure")])
    assert len(by_class) > 100
    for hits in (np.array(by_class), np.array(by_group)):
        error = hits.std(0) / np.sqrt(len(hits))
        assert (hits.mean(0) >= 0.9 - 3 * error).all()
        assert (hits.mean(0) <= 0.9 + 0.035 + 3 * error).all()


def test_sets_hold_the_predicted_class_unless_empty():
    p, y = drawn(600, 3)
    group = (p[:, 0] * 10).astype(int)
    for settings in (
        {"score": "lac"},
        {"score": "aps"},
        {"score": "raps"},
        {"by": "class"},
        {"by": "group", "groups": group[:300]},
    ):
        fit = conformal_sets(p[:300], y[:300], **settings)
        for level in (0.3, 0.6, 0.9):
            chosen = fit.sets(p[300:], level, groups=group[300:])
            assert (chosen[np.arange(300), p[300:].argmax(1)] | ~chosen.any(1)).all()


def test_weights_hold_the_level_under_a_known_shift():
    """Only rows near a confidence of 0.85 come: without weights the sets cover too little, with them they hold."""
    plain, weighted = [], []
    for split in range(200):
        p, y = drawn(2000, split)
        ratio = np.exp(-(((p.max(1) - 0.85) / 0.05) ** 2))
        generator = np.random.default_rng(split)
        new = generator.choice(np.arange(1000, 2000), 300, p=ratio[1000:] / ratio[1000:].sum())
        old = np.arange(400)
        plain.append(conformal_sets(p[old], y[old]).sets(p[new], 0.9)[np.arange(300), y[new]].mean())
        fit = conformal_sets(p[old], y[old], weights=ratio[old])
        weighted.append(fit.sets(p[new], 0.9, new_weights=ratio[new])[np.arange(300), y[new]].mean())
    error = np.std(weighted) / np.sqrt(200)
    assert np.mean(plain) < 0.88
    assert 0.9 - 3 * error <= np.mean(weighted) <= 0.92


def test_cross_sets_cover():
    hits = []
    for split in range(100):
        p, y = drawn(300, split)
        # Two models that differ a little stand for folds.
        other = p**0.8 / (p**0.8).sum(1, keepdims=True)
        fold = np.arange(100) % 2
        own = np.where(fold[:, None] == 0, p[:100], other[:100])
        chosen = cross_sets(own, y[:100], fold, np.stack([p[100:], other[100:]]), 0.9)
        hits.append(chosen[np.arange(200), y[100:]].mean())
    error = np.std(hits) / 10
    assert 0.9 - 3 * error <= np.mean(hits) <= 0.93


class Fixed:
    """A classifier for MAPIE that answers with the probabilities it is given as features."""

    def __init__(self, classes):
        self.classes_, self.n_features_in_ = np.arange(classes), classes

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return np.asarray(X)

    def predict(self, X):
        return self.classes_[np.asarray(X).argmax(1)]

    def __sklearn_is_fitted__(self):
        return True

    def __sklearn_tags__(self):
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression().__sklearn_tags__()


@pytest.mark.parametrize("score", ["lac", "aps", "raps"])
def test_sets_are_not_larger_than_mapies_on_the_same_probabilities(score):
    ours, theirs = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mapie = pytest.importorskip("mapie.classification")
        from mapie.conformity_scores import RAPSConformityScore

        for split in range(15):
            p, y = drawn(700, split)
            chosen = RAPSConformityScore(size_raps=0.2) if score == "raps" else score
            peer = mapie.SplitConformalClassifier(
                Fixed(5), confidence_level=0.9, conformity_score=chosen, prefit=True, random_state=split
            )
            peer.conformalize(p[:300], y[:300])
            more = {} if score == "lac" else {"conformity_score_params": {"include_last_label": "randomized"}}
            theirs.append(peer.predict_set(p[300:], **more)[1][:, :, 0].sum(1).mean())
            ours.append(conformal_sets(p[:300], y[:300], score=score, seed=split).sets(p[300:], 0.9).sum(1).mean())
    if score == "lac":
        assert ours == pytest.approx(theirs, abs=1e-12)
    # Randomised sets differ by the draws of u: means of 15 splits within two standard errors of the difference.
    gap = np.array(ours) - np.array(theirs)
    assert gap.mean() <= 2 * gap.std() / np.sqrt(15) + 1e-12


def test_aps_by_hand():
    p = np.array([[0.2, 0.5, 0.3]])
    assert aps_scores(p, u=[0.5]) == pytest.approx(np.array([[0.9, 0.25, 0.65]]))
    assert raps_scores(p, u=[0.5], penalty=0.1, rank=1) == pytest.approx(np.array([[1.1, 0.25, 0.75]]))


def test_weighted_quantile_by_hand():
    assert weighted_quantile([3.0, 1.0, 2.0], [1.0, 1.0, 1.0], [1.0, 0.0, 9.0], 0.5).tolist() == [2.0, 2.0, np.inf]
    scores = np.random.default_rng(0).normal(size=57)
    for level in (0.5, 0.8, 0.9):
        assert weighted_quantile(scores, np.ones(57), [1.0], level)[0] == conformal_quantile(scores, level)


def test_few_rows_a_missing_class_and_unseen_groups_keep_everything_and_say_so():
    p, y = drawn(40, 0)
    fit = conformal_sets(p[:8], y[:8])
    assert fit.sets(p, 0.9).all()
    assert (
        fit.note(0.9)
        == "8 calibration rows are too few for a level of 0.9: at least 9 are needed, so every class is kept."
    )
    assert fit.note(0.5) == ""
    fit = conformal_sets(p, np.where(y == 4, 0, y), by="class")
    assert fit.sets(p, 0.5)[:, 4].all()
    assert (
        fit.note(0.5)
        == "Class 4 has fewer than the 1 calibration rows that a level of 0.5 needs, so it is never left out."
    )
    fit = conformal_sets(p, y, by="group", groups=["a"] * 20 + ["b"] * 20)
    assert fit.sets(p[:2], 0.9, groups=["a", "c"])[1].all()
    assert fit.note(0.99) == (
        "Groups a, b have fewer than the 99 calibration rows that a level of 0.99 needs, so they are never left out."
    )


def test_constant_predictions_cover():
    p = np.tile([0.5, 0.3, 0.2], (50, 1))
    y = np.arange(50) % 3
    for score in ("lac", "aps", "raps"):
        assert conformal_sets(p, y, score=score, seed=1).sets(p, 0.9)[np.arange(50), y].mean() >= 0.8


def test_stored_and_read_again():
    p, y = drawn(200, 0)
    for settings in ({"score": "raps"}, {"by": "class"}, {"weights": np.ones(200)}, {"by": "group", "groups": y % 2}):
        fit = conformal_sets(p, y, **settings)
        again = ConformalSets.from_json(fit.to_json())
        more = {"groups": y % 2, "new_weights": np.ones(200)}
        assert (again.sets(p, 0.8, **more) == fit.sets(p, 0.8, **more)).all()
    for value in (None, {}, {**fit.to_json(), "score": "x"}, {**fit.to_json(), "cells": {"": ["a"]}}):
        with pytest.raises(WonderlandError) as caught:
            ConformalSets.from_json(value)
        assert str(caught.value) == "The calibrated sets cannot be read: the file is damaged."


P, Y = drawn(30, 0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: conformal_sets(P, Y, score="x"), "`score` is one of lac, aps, raps, not 'x'."),
        (lambda: conformal_sets(P, Y, by="x"), "`by` is '', 'class' or 'group', not 'x'."),
        (lambda: conformal_sets(P, Y, by="group"), "Sets by group need `groups`, the group of each row."),
        (
            lambda: conformal_sets(P, Y, by="class", weights=np.ones(30)),
            "Weights and sets by class or group cannot be combined.",
        ),
        (
            lambda: conformal_sets(P, Y, by="group", groups=Y).sets(P, 0.9),
            "The sets were calibrated by group: pass `groups`, the group of each row.",
        ),
        (
            lambda: conformal_sets(P, Y, weights=np.ones(30)).sets(P, 0.9),
            "The sets were calibrated with weights: pass `new_weights`, the weight of each new row.",
        ),
        (
            lambda: conformal_sets(P, Y).sets([[0.5, 0.5]], 0.9),
            "`probabilities` has 2 classes where the sets were calibrated on 5.",
        ),
        (lambda: cross_sets(P, Y, Y % 2, [P, P], 0.9, score="x"), "`score` is one of lac, aps, raps, not 'x'."),
        (lambda: cross_sets(P, Y, Y, [P, P], 0.9), "`folds` holds 2 at row 0: labels are whole numbers from 0 to 1."),
        (lambda: weighted_quantile([1.0], [-1.0], [1.0], 0.9), "Weights of rows have to be 0 or more."),
    ],
)
def test_sentences(call, words):
    with pytest.raises(WonderlandError) as caught:
        call()
    assert str(caught.value) == words
