import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wonderland.trust import simplex
from wonderland.trust.weights import spread


@given(st.integers(0, 1000), st.integers(2, 5))
@settings(deadline=None, max_examples=30)
def test_no_point_of_the_simplex_does_better(seed, kinds):
    generator = np.random.default_rng(seed)
    errors = generator.normal(size=(60, kinds, 2)) * generator.uniform(0.2, 2, kinds)[None, :, None]

    def loss(shares):
        return np.mean((errors * shares[None, :, None]).sum(1) ** 2)

    # Many rows, so that the data outweigh the prior; repeated, they have the same mean.
    found = simplex(np.tile(errors, (2000, 1, 1)))
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()
    others = generator.dirichlet(np.ones(kinds), 300)
    assert loss(found) <= min(loss(other) for other in [*others, *np.eye(kinds)]) + 1e-3


def test_weights_of_kinds_become_weights_of_members():
    assert spread(np.array([0.25, 0.75]), 4).tolist() == [0.125, 0.375, 0.125, 0.375]
    assert spread(np.ones(1), 3) == pytest.approx(np.full(3, 1 / 3))


def test_on_few_rows_weights_are_nearly_equal():
    errors = np.array([[[1.0], [0.0]]] * 5)
    assert simplex(errors)[1] < 0.55
    assert simplex(np.tile(errors, (1000, 1, 1)))[1] > 0.9
