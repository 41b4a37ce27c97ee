"""Hamiltonian draws have the moments of the density they are drawn from."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.probability import hamiltonian, split_r_hat


def test_moments_of_a_correlated_gaussian():
    covariance = torch.tensor([[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 25.0]], dtype=torch.float64)
    precision = torch.linalg.inv(covariance)
    centre = torch.tensor([1.0, -1.0, 3.0], dtype=torch.float64)
    chains = []
    for seed in range(2):
        chain = hamiltonian(
            lambda q: -((q - centre) @ precision @ (q - centre)) / 2,
            torch.zeros(3),
            draws=500,
            warmup=300,
            leapfrogs=10,
            seed=seed,
        )
        assert 0.6 < chain.accepted <= 1
        assert chain.effective().min() > 60
        chains.append(chain.values)
    drawn = torch.stack(chains)
    assert split_r_hat(drawn).max() < 1.08
    assert drawn.mean((0, 1)).numpy() == pytest.approx(centre.numpy(), abs=0.8)
    assert torch.cov(drawn.flatten(0, 1).T).numpy() == pytest.approx(covariance.numpy(), rel=0.35, abs=0.35)


def test_a_skewed_density():
    """log of a Gamma(3, 1) variable, for which E[exp q] = 3."""
    chain = hamiltonian(lambda q: (3 * q - q.exp()).sum(), torch.zeros(1), draws=800, warmup=200, leapfrogs=8)
    assert chain.values.exp().mean().item() == pytest.approx(3, abs=0.3)


def test_chains_that_disagree_are_noticed():
    generator = torch.Generator().manual_seed(0)
    chains = torch.randn(2, 100, 1, generator=generator)
    chains[1] += 3
    assert split_r_hat(chains) > 1.5


def test_the_same_seed_gives_the_same_draws():
    one, two = (hamiltonian(lambda q: -q.square().sum(), torch.zeros(2), draws=10, warmup=10) for _ in range(2))
    assert torch.equal(one.values, two.values)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: hamiltonian(lambda q: q.sum().log(), -torch.ones(1)),
            "The log density is not finite where the chain starts: start somewhere else.",
        ),
        (
            lambda: hamiltonian(lambda q: q.sum(), torch.ones(1), target=1.0),
            "`target` has to lie strictly between 0 and 1, not at 1.0.",
        ),
        (
            lambda: split_r_hat(torch.zeros(3)),
            "`chains` has shape (3,): it needs chains, four draws or more, and coordinates.",
        ),
    ],
)
def test_sentences(call, words):
    with pytest.raises(WonderlandError) as caught:
        call()
    assert str(caught.value) == words
