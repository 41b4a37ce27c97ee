import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wonderland.trust import simplex
from wonderland.trust.weights import member_shares, spread


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


def test_linear_members_get_the_share_that_is_best_beside_the_networks_and_less_on_few_rows():
    errors = np.random.default_rng(0).normal(size=(4000, 3, 1)) * np.array([1.0, 1.5, 0.7])[:, None]
    shares = member_shares(errors, [False, False, True])
    networks = simplex(errors[:, :2])
    assert shares[:2] / shares[:2].sum() == pytest.approx(networks)

    def loss(share):
        return np.square((1 - share) * (errors[:, :2, 0] @ networks) + share * errors[:, 2, 0]).mean()

    assert loss(shares[2] * 4050 / 4000) <= min(loss(share) for share in np.linspace(0, 1, 101))
    assert member_shares(errors[:10], [False, False, True])[2] <= 10 / 60
    assert member_shares(errors, [False] * 3).tolist() == simplex(errors).tolist()
    assert member_shares(errors * np.array([1, 1, 100])[:, None], [False, False, True])[2] == pytest.approx(0, abs=1e-3)
