"""Decisions by cost, and abstention that keeps the risk it promises."""

import numpy as np
import pytest
from scipy import stats

from wonderland.core import WonderlandError
from wonderland.trust import abstain, best_by_utility, cheapest, coverage_risk, expected_cost, mean_cost
from wonderland.trust.decisions import binomial_upper

COST = np.array([[0.0, 1.0], [10.0, 0.0]])


def test_costs_move_the_threshold():
    p = np.linspace(0, 1, 1001)
    actions = cheapest(np.stack([1 - p, p], 1), COST)
    assert p[actions == 1].min() == pytest.approx(1 / 11, abs=1e-3)
    generator = np.random.default_rng(0)
    chance = generator.beta(1, 3, 20_000)
    y = (generator.random(20_000) < chance).astype(int)
    both = np.stack([1 - chance, chance], 1)
    best = mean_cost(cheapest(both, COST), y, COST)
    assert best < mean_cost(both.argmax(1), y, COST)
    for threshold in (0.03, 0.2, 0.4):
        assert best <= mean_cost((chance > threshold).astype(int), y, COST)
    assert expected_cost(both, COST).min(1).mean() == pytest.approx(best, abs=0.02)


def test_asking_a_person_is_one_more_action():
    cost = np.array([[0.0, 1.0, 0.2], [1.0, 0.0, 0.2]])
    assert cheapest([[0.95, 0.05], [0.6, 0.4], [0.1, 0.9]], cost).tolist() == [0, 2, 1]
    assert best_by_utility([[0.95, 0.05], [0.6, 0.4], [0.1, 0.9]], -cost).tolist() == [0, 2, 1]


def test_the_coverage_risk_curve():
    generator = np.random.default_rng(0)
    sure = generator.random(5000)
    wrong = generator.random(5000) > sure
    curve = coverage_risk(sure, wrong)
    assert curve.risk_at(1.0) == pytest.approx(wrong.mean())
    assert curve.risk_at(0.2) == pytest.approx(0.1, abs=0.03)
    assert curve.area == pytest.approx(0.25, abs=0.03)
    assert np.diff(curve.threshold).max() <= 0
    tied = coverage_risk(np.ones(4), [1, 0, 0, 0])
    assert tied.risk.tolist() == [0.25] * 4


def test_abstention_keeps_its_risk():
    """Over 100 samples, the true risk of what is answered is above 5 % at most about once in twenty."""
    generator = np.random.default_rng(0)
    broken = coverage = 0
    for _ in range(100):
        sure = generator.random(1000)
        rule = abstain(sure, generator.random(1000) > 0.85 + 0.15 * sure, 0.05)
        coverage += rule.coverage
        # Rows above the threshold t are wrong with chance 0.15 (1 - c), c uniform on [t, 1].
        broken += rule.coverage > 0 and 0.15 * (1 - rule.threshold) / 2 > 0.05
        assert rule.answers(sure).mean() == pytest.approx(rule.coverage)
    assert broken / 100 <= 0.1
    assert coverage / 100 > 0.2


def test_nothing_is_answered_when_nothing_is_good_enough():
    rule = abstain(np.linspace(0, 1, 100), np.ones(100), 0.05)
    assert rule.coverage == 0
    assert not rule.answers([1.0]).any()
    assert abstain([0.9] * 10, [0] * 10, 0.05).coverage == 0
    assert abstain(np.full(200, 0.9), np.zeros(200), 0.05).coverage == 1


def test_the_bound_is_clopper_and_pearsons():
    assert binomial_upper(3, 50, 0.05) == pytest.approx(stats.beta.ppf(0.95, 4, 47), abs=1e-10)
    assert binomial_upper(50, 50, 0.05) == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: cheapest([[0.5, 0.5]], [[0.0, 1.0]]),
            "`cost` has 1 rows where there are 2 classes: row k is what each action costs when the truth is k.",
        ),
        (lambda: abstain([0.5], [0.0], 0.0), "`risk` has to lie strictly between 0 and 1, not at 0.0."),
        (lambda: abstain([0.5], [0.0], 0.1, doubt=1.0), "`doubt` has to lie strictly between 0 and 1, not at 1.0."),
        (lambda: abstain([0.5], [0.5], 0.1), "`wrong` has to hold 0 and 1."),
        (lambda: mean_cost([2], [0], COST), "`actions` holds 2 at row 0: labels are whole numbers from 0 to 1."),
    ],
)
def test_sentences(call, words):
    with pytest.raises(WonderlandError) as caught:
        call()
    assert str(caught.value) == words
