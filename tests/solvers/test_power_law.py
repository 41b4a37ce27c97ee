"""Power laws are found again under noise, and the best size beats its neighbours."""

import numpy as np
import pytest

from wonderland import WonderlandError
from wonderland.solvers import PowerLaw, best_size, power_law

SIZES = np.geomspace(1e4, 1e8, 9)


def test_a_law_is_found_again_under_noise():
    generator = np.random.default_rng(0)
    inside = 0
    for _ in range(10):
        losses = (1.7 + 30 * SIZES**-0.3) * np.exp(generator.normal(0, 0.003, len(SIZES)))
        law = power_law(SIZES, losses)
        assert law.exponent == pytest.approx(0.3, abs=0.06)
        assert law.floor == pytest.approx(1.7, abs=0.12)
        inside += law.interval[0] <= 0.3 <= law.interval[1]
    assert inside >= 6
    assert law.size_for(law(3e5)) == pytest.approx(3e5)
    assert law.size_for(law.floor) == float("inf")
    assert power_law(SIZES, 5 * SIZES**-0.2, floor=0.0).exponent == pytest.approx(0.2, abs=1e-9)


def test_the_best_size_beats_its_neighbours():
    models, data, budget = PowerLaw(1.7, 400.0, 0.34, (0, 0)), PowerLaw(0.0, 410.0, 0.28, (0, 0)), 1e20
    size, tokens = best_size(budget, models, data)
    assert 6 * size * tokens == pytest.approx(budget)
    best = models(size) + data(tokens)
    for share in (0.8, 1.25):
        assert models(size * share) + data(tokens / share) > best


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: power_law([1, 2], [2, 1]), "A power law is fitted to the losses of at least 3 different sizes."),
        (lambda: power_law([1, 2, 3], [2, 1, -1]), "Sizes and losses of a power law are finite, sizes above 0, and losses above the floor."),
        (lambda: best_size(0, PowerLaw(0, 1, 1, (1, 1)), PowerLaw(0, 1, 1, (1, 1))), "A best size needs a budget above 0 and laws that fall."),
    ],
)  # fmt: skip
def test_what_cannot_be_fitted(call, words):
    with pytest.raises(WonderlandError) as told:
        call()
    assert str(told.value) == words
