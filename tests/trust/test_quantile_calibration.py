"""Transforms are uniform when predictions are right, and a map makes wrong ones right."""

import numpy as np
import pytest
from scipy import stats

from wonderland.core import WonderlandError
from wonderland.trust import (
    crps_gaussian,
    pinball,
    pit_gaussian,
    pit_samples,
    quantile_calibration,
    recalibrate_quantiles,
)


def test_transforms_of_right_predictions_are_uniform():
    generator = np.random.default_rng(0)
    mean, scale = generator.normal(size=3000), generator.uniform(0.5, 2, 3000)
    y = generator.normal(mean, scale)
    assert pit_gaussian(mean, scale, y) == pytest.approx(stats.norm.cdf(y, mean, scale), abs=1e-12)
    assert stats.kstest(pit_gaussian(mean, scale, y), "uniform").pvalue > 0.01
    assert stats.kstest(pit_samples(generator.normal(mean, scale, (19, 3000)), y), "uniform").pvalue > 0.01
    counts = generator.poisson(2.0, (20, 3000))
    assert stats.kstest(pit_samples(counts[1:], counts[0]), "uniform").pvalue > 0.01


def test_narrow_predictions_are_seen_and_widened():
    generator = np.random.default_rng(1)
    y = generator.normal(size=4000)
    narrow = pit_gaussian(np.zeros(4000), np.full(4000, 0.4), y)
    assert quantile_calibration(narrow).error > 0.1
    mended = recalibrate_quantiles(narrow[:2000])
    assert quantile_calibration(mended(narrow[2000:])).error < 0.02
    ask = float(mended.inverse(0.9))
    assert np.mean(narrow[2000:] <= ask) == pytest.approx(0.9, abs=0.02)
    assert mended(mended.inverse([0.1, 0.5, 0.9])) == pytest.approx([0.1, 0.5, 0.9], abs=1e-6)


def test_scores_of_quantiles_and_distributions():
    generator = np.random.default_rng(2)
    y = generator.normal(size=5000)
    losses = [pinball(y, np.full((5000, 1), q), [0.9])[0] for q in (1.0, stats.norm.ppf(0.9), 1.6)]
    assert losses[1] == min(losses)
    draws = generator.normal(0.5, 1.5, (2000, 1))
    by_hand = np.abs(draws - 1.0).mean() - np.abs(draws - draws.T).mean() / 2
    assert crps_gaussian([0.5], [1.5], [1.0]) == pytest.approx(by_hand, abs=0.03)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pit_gaussian([0.0], [0.0], [0.0]), "`scale` holds 0: standard deviations are above 0."),
        (lambda: quantile_calibration([1.5]), "`pit` has to lie between 0 and 1."),
        (lambda: recalibrate_quantiles([-1.0]), "`pit` has to lie between 0 and 1."),
        (lambda: quantile_calibration([0.5], levels=[2.0]), "`levels` have to lie between 0 and 1."),
        (lambda: pinball([0.0], [[0.0, 1.0]], [0.5]), "`the columns of quantiles` has 2 rows where `levels` has 1."),
    ],
)
def test_sentences(call, words):
    with pytest.raises(WonderlandError) as caught:
        call()
    assert str(caught.value) == words
