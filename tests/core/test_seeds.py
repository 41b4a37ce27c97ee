import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wonderland.core import mix, permutation, uniform


@given(st.integers(0, 2**40), st.integers(0, 1000), st.lists(st.integers(0, 10**9), min_size=1, max_size=20))
def test_an_example_does_not_see_its_mates(seed, epoch, indices):
    together = uniform(seed, epoch, np.array(indices), 3)
    alone = np.concatenate([uniform(seed, epoch, np.array([index]), 3) for index in indices])
    assert (together == alone).all()
    assert (together >= 0).all()
    assert (together < 1).all()


def test_numbers_are_uniform_and_unrelated():
    found = uniform(0, 0, np.arange(100_000), 4)
    assert abs(found.mean() - 0.5) < 0.003
    assert abs(found.var() - 1 / 12) < 0.001
    assert np.abs(np.corrcoef(found.T) - np.eye(4)).max() < 0.02
    neighbours = np.corrcoef(found[:-1, 0], found[1:, 0])[0, 1]
    epochs = np.corrcoef(found[:, 0], uniform(0, 1, np.arange(100_000), 1)[:, 0])[0, 1]
    assert max(abs(neighbours), abs(epochs)) < 0.02
    counts, _ = np.histogram(found[:, 0], bins=100)
    assert ((counts - 1000) ** 2 / 1000).sum() < 150  # chi-square with 99 degrees of freedom


def test_mix_and_permutation_depend_on_everything():
    assert len({mix(a, b) for a in range(30) for b in range(30)}) == 900
    assert (permutation(0, 1, 50) == permutation(0, 1, 50)).all()
    assert (permutation(0, 1, 50) != permutation(0, 2, 50)).any()
    assert (permutation(0, 1, 50) != permutation(1, 1, 50)).any()


def test_the_numbers_never_change():
    """Golden values: a change here would change every run that was ever recorded."""
    assert mix(1, 2, 3) == 7510213797696614745
    assert uniform(7, 1, np.array([5]), 2).tolist() == [[0.2763698769206604, 0.6024131666077999]]
    assert permutation(3, 4, 8).tolist() == [4, 7, 6, 5, 2, 0, 3, 1]
