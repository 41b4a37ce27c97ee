"""Trust in next tokens: temperature, thresholds and coverage against the definitions."""

import math
import re

import numpy as np
import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.core.batch import Batch
from wonderland.tasks import TokenTrust, token_trust
from wonderland.tasks.token_trust import log_odds_against, sample, score_batches
from wonderland.trust import Scores
from wonderland.trust.conformal import misfit


def world(rows: int = 40, t: int = 25, vocab: int = 7, seed: int = 0, heat: float = 2.0):
    """Batches whose truth is drawn from softmax(logits / heat); x holds which logits belong to a position."""
    random = torch.Generator().manual_seed(seed)
    table = 3 * torch.randn(rows * t, vocab, generator=random)
    truth = torch.multinomial((table / heat).softmax(-1), 1, generator=random)[:, 0].reshape(rows, t)
    x = torch.arange(rows * t).reshape(rows, t)
    truth[::3, -4:] = -100
    return (lambda batch: table[batch["x"]]), Batch({"x": x, "y": truth}).split(-(-rows // 8))


def test_the_temperature_is_recovered_and_coverage_equals_the_level():
    logits, batches = world(rows=400)
    trust = TokenTrust.fit(logits, batches[:15], batches[15:30], 0.8)
    assert trust.temperature == pytest.approx(2.0, rel=0.06)
    record = trust.measure(logits, batches[30:], size=1000)
    assert record["conformal"]["coverage"] == pytest.approx(0.8, abs=0.03)
    assert record["ece"]["after"] < record["ece"]["before"]
    assert record["rows"] == sum(int((y != -100).sum()) for _, y in batches[30:])
    nats = -sum(float(batch.log_probability.sum()) for batch in score_batches(logits, batches[30:]))
    assert record["metrics"]["loss"] == pytest.approx(nats / record["rows"], rel=1e-6)
    assert record["metrics"]["bits_per_byte"] == pytest.approx(nats / 1000 / math.log(2), rel=1e-6)
    assert sum(record["conformal"]["sizes"].values()) == record["rows"]


def test_sets_equal_those_of_conformal_p_values():
    """A token is in the set exactly when its p-value is above 1 - level."""
    logits, batches = world()
    trust = TokenTrust.fit(logits, batches, batches, 0.9)
    scaled = logits(batches[0]).reshape(-1, 7).double().numpy() / trust.temperature
    for level in (0.5, 0.9, 0.99):
        by_scores = trust.scores.sets(misfit(scaled)[None], level)
        probabilities = np.exp(scaled) / np.exp(scaled).sum(1, keepdims=True)
        assert (by_scores == (probabilities >= trust.threshold(level) * (1 - 1e-9))).mean() > 0.999


def test_too_few_scores_keep_everything():
    trust = TokenTrust(1.0, Scores.of(np.array([0.1, 0.2]), np.zeros(2, np.int64)), 0.9)
    assert trust.threshold() == 0.0


def test_log_odds_from_a_log_probability():
    logits = torch.randn(50, 6, dtype=torch.float64)
    truth = misfit(logits.numpy())
    assert np.allclose(log_odds_against(logits.log_softmax(-1)).numpy(), truth, atol=1e-9)


def test_samples_are_spread_and_bounded(monkeypatch):
    logits, batches = world()
    rows, _ = sample(logits, batches)
    total = sum(int((y != -100).sum()) for _, y in batches)
    assert rows.shape == (total, 7)
    monkeypatch.setattr(token_trust, "MAX_LOGITS", 700)
    few, _ = sample(logits, batches)
    assert 90 <= len(few) <= 120
    assert (few[1] == rows[total * 7 // 700]).all()


def test_gradients_stay_on():
    logits, batches = world()
    list(zip(score_batches(logits, batches), score_batches(logits, batches, 2.0, 0.1), strict=True))
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("value", [{}, {"temperature": 0, "level": 0.9, "scores": [[1.0]]}, {"temperature": 1.0, "level": 0.9, "scores": [[]]},
                                   {"temperature": 1.0, "level": 2.0, "scores": [[1.0]]}])  # fmt: skip
def test_damaged_records(value):
    with pytest.raises(WonderlandError, match=r"^trust\.json lacks its temperature, level or scores: it is damaged\.$"):
        TokenTrust.from_json(value)


def test_round_trip_and_refusals():
    logits, batches = world()
    trust = TokenTrust.fit(logits, batches, batches, 0.9)
    assert TokenTrust.from_json(trust.to_json()).threshold() == trust.threshold()
    x, y = batches[0]
    nothing = [Batch({"x": x, "y": torch.full_like(y, -100)})]
    for call in (lambda: trust.measure(logits, nothing, 1), lambda: sample(logits, nothing)):
        with pytest.raises(
            WonderlandError, match="^" + re.escape("The text has no token to predict: give at least two tokens.") + "$"
        ):
            call()
