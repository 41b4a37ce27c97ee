"""Exact neighbours by cosine, and clusters by k-means."""

import re

import numpy as np
import pytest

from wonderland.core import WonderlandError
from wonderland.solvers import Neighbours, kmeans


def test_neighbours_are_those_of_the_full_comparison():
    draw = np.random.default_rng(0)
    vectors, queries = draw.normal(size=(500, 16)), draw.normal(size=(7, 16))
    cosines = queries @ vectors.T / np.linalg.norm(queries, axis=1)[:, None] / np.linalg.norm(vectors, axis=1)
    found = Neighbours(vectors).search(queries, 9)
    np.testing.assert_array_equal(found.places, np.argsort(-cosines, axis=1)[:, :9])
    np.testing.assert_allclose(found.cosines, -np.sort(-cosines, axis=1)[:, :9], atol=1e-6)
    alone = Neighbours(vectors).search(queries[3], 9)
    np.testing.assert_array_equal(alone.places[0], found.places[3])


def test_bad_vectors_meet_a_sentence():
    index = Neighbours(np.eye(3))
    for text, call in (
        ("The queries have 2 numbers each, and the vectors 3.", lambda: index.search([1.0, 0.0])),
        ("top is how many neighbours are returned, at least 1, not 0.", lambda: index.search([1.0, 0.0, 0.0], 0)),
        ("`vectors` holds a number that is not finite in row 1.", lambda: Neighbours([[1.0], [np.nan]])),
        (
            "`vectors` must be vectors (n, d) with at least one of each, not of shape (3,).",
            lambda: Neighbours(np.ones(3)),
        ),
        ("2 vectors can form 1 to 2 clusters, not 3.", lambda: kmeans(np.eye(2), 3)),
    ):
        with pytest.raises(WonderlandError, match="^" + re.escape(text) + "$"):
            call()


def test_clusters_are_those_of_scikit_learn():
    from sklearn.cluster import KMeans

    draw = np.random.default_rng(1)
    x = np.concatenate([draw.normal(centre, 1.0, (40, 3)) for centre in (0.0, 4.0, 9.0, -7.0)])
    ours, theirs = kmeans(x, 4), KMeans(4, n_init=10, random_state=0).fit(x)
    assert ours.distance * len(x) == pytest.approx(theirs.inertia_, rel=1e-6)
    np.testing.assert_allclose(
        ours.centres, theirs.cluster_centers_[np.lexsort(theirs.cluster_centers_.T[::-1])], atol=1e-6
    )
