"""Scheduled sampling: schedules, the share that is replaced, and passes that become the exact mixture."""

import math

import pytest
import torch
import torch.nn.functional as F

from tests.generation.test_generate import decoder
from wonderland.core import WonderlandError
from wonderland.generation import scheduled_sampling, teacher_forcing_rate


def test_schedules_are_those_of_the_paper():
    assert [teacher_forcing_rate(i, "linear", rate=4, least=0.25) for i in range(6)] == [1, 0.75, 0.5, 0.25, 0.25, 0.25]
    assert teacher_forcing_rate(3, "exponential", rate=2) == pytest.approx(math.exp(-1.5))
    assert teacher_forcing_rate(50, rate=20) == pytest.approx(20 / (20 + math.exp(2.5)))
    assert teacher_forcing_rate(10**9, rate=1) == pytest.approx(0)
    for schedule in ("linear", "exponential", "inverse_sigmoid"):
        shares = [teacher_forcing_rate(step, schedule, rate=30) for step in range(200)]
        assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize("mixer", ["nn.Attention", "nn.GRU"])
def test_as_many_passes_as_tokens_are_the_exact_mixture(mixer):
    model, tokens = decoder(mixer), torch.randint(11, (4, 9))
    exact = scheduled_sampling(model, tokens, 0.4, seed=1, step=5, passes=None)
    assert torch.equal(scheduled_sampling(model, tokens, 0.4, seed=1, step=5, passes=9), exact)
    assert not torch.equal(exact, tokens)
    assert not torch.equal(scheduled_sampling(model, tokens, 0.4, seed=1, step=6, passes=9), exact)
    mask = torch.arange(9) < torch.tensor([[9], [4], [1], [6]])
    masked = scheduled_sampling(model, tokens, 0.4, seed=1, step=5, mask=mask, passes=None)
    assert torch.equal(masked[mask], exact[mask])
    assert torch.equal(masked[~mask], tokens[~mask])
    assert torch.equal(scheduled_sampling(model, tokens, 0.4, seed=1, step=5, mask=mask, passes=9), masked)


def test_the_share_of_true_tokens():
    class Other:
        """Always says the token that is never in the text."""

        def __call__(self, tokens, mask=None):
            return F.one_hot(torch.full_like(tokens, 4), 5) * 99.0

        def stream(self, tokens, state=None, mask=None):
            return self(tokens), ()

    tokens = torch.randint(4, (50, 101))
    for truth in (0.0, 0.3, 1.0):
        mixed = scheduled_sampling(Other(), tokens, truth)
        assert torch.equal(mixed[:, 0], tokens[:, 0])
        assert abs((mixed[:, 1:] == tokens[:, 1:]).double().mean() - truth) < 0.03


def test_a_training_step_with_samples_mixed_in():
    model = decoder(dropout=0.1)
    tokens = torch.randint(11, (3, 8))
    inputs = scheduled_sampling(model, tokens, teacher_forcing_rate(500, rate=100))
    assert model.training
    F.cross_entropy(model(inputs[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()).backward()
    assert model.embedding.weight.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (
            lambda: teacher_forcing_rate(-1),
            "teacher_forcing_rate needs a step from 0, a rate above 0 and least from 0 to 1, not -1, 1000.0 and 0.0.",
        ),
        (
            lambda: teacher_forcing_rate(1, "cosine"),
            "Schedules are linear, exponential and inverse_sigmoid, not 'cosine'.",
        ),
        (
            lambda: scheduled_sampling(decoder(), torch.zeros(1, 2, dtype=torch.int64), 1.5),
            "truth, the probability of a true token, is from 0 to 1, not 1.5.",
        ),
        (
            lambda: scheduled_sampling(decoder(), torch.zeros(1, 2, dtype=torch.int64), 0.5, passes=0),
            "passes is a whole number from 1, or None for position by position, not 0.",
        ),
        (
            lambda: scheduled_sampling(decoder(), torch.zeros(1, 2, dtype=torch.int64), 0.5, temperature=0),
            "scheduled_sampling takes a temperature above 0, not 0.",
        ),
    ],
)
def test_what_does_not_fit_is_told(run, words):
    with pytest.raises(WonderlandError) as error:
        run()
    assert str(error.value) == words
