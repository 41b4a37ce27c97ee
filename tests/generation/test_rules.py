"""Truncation rules against the logits processors of transformers, and their equations on small cases."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.generation import logits_process as theirs

from wonderland import generation
from wonderland.core import WonderlandError
from wonderland.generation import rules
from wonderland.generation.sampling import draw

PAIRS = [
    (lambda x: generation.apply_temperature(x, 0.7), theirs.TemperatureLogitsWarper(0.7)),
    (lambda x: generation.top_k(x, 3), theirs.TopKLogitsWarper(3)),
    (lambda x: generation.top_k(x, 500), theirs.TopKLogitsWarper(500)),
    (lambda x: generation.top_p(x, 0.6), theirs.TopPLogitsWarper(0.6)),
    (lambda x: generation.top_p(x, 0.05), theirs.TopPLogitsWarper(0.05)),
    (lambda x: generation.min_p(x, 0.2), theirs.MinPLogitsWarper(0.2)),
    (lambda x: generation.typical(x, 0.5), theirs.TypicalLogitsWarper(0.5)),
    (lambda x: generation.typical(x, 0.95), theirs.TypicalLogitsWarper(0.95)),
]


@pytest.mark.parametrize(("own", "peer"), PAIRS)
@pytest.mark.parametrize("vocab", [7, 60, 3000])
def test_rules_are_those_of_transformers(own, peer, vocab):
    logits = torch.randn(5, vocab, dtype=torch.float64) * 3
    assert torch.allclose(own(logits), peer(torch.zeros(5, 1, dtype=torch.int64), logits))


def test_the_repetition_penalty_is_that_of_transformers():
    logits, text = torch.randn(4, 20, dtype=torch.float64), torch.randint(20, (4, 6))
    seen = torch.zeros(4, 20, dtype=torch.bool).scatter_(1, text, True)
    expected = theirs.RepetitionPenaltyLogitsProcessor(1.3)(text, logits)
    assert torch.allclose(generation.penalize_repetition(logits, seen, 1.3), expected)


def test_all_rules_in_their_order():
    logits = torch.randn(6, 300, dtype=torch.float64) * 2
    text = torch.randint(300, (6, 9))
    chain = [
        theirs.RepetitionPenaltyLogitsProcessor(1.2),
        theirs.TemperatureLogitsWarper(0.8),
        theirs.TopKLogitsWarper(80),
        theirs.TopPLogitsWarper(0.9),
        theirs.MinPLogitsWarper(0.02),
        theirs.TypicalLogitsWarper(0.9),
    ]
    expected = logits
    for one in chain:
        expected = one(text, expected)
    sampling = generation.Sampling(0.8, 80, 0.9, 0.02, 0.9, 1.2)
    seen = torch.zeros(6, 300, dtype=torch.bool).scatter_(1, text, True)
    assert torch.allclose(sampling.adjust(logits, seen), expected)


LOGITS = st.lists(st.floats(-8, 8), min_size=1, max_size=12).map(lambda x: torch.tensor(x, dtype=torch.float64))


@settings(deadline=None, max_examples=60)
@given(LOGITS, st.floats(0.01, 1), st.integers(1, 15))
def test_what_is_kept_obeys_the_equations(logits, p, k):
    chances = logits.softmax(-1)
    above = torch.stack([chances[logits > one].sum() for one in logits])
    nucleus = generation.top_p(logits, p) > -torch.inf
    clear = (above - p).abs() > 1e-9
    assert torch.equal(nucleus[clear], (above < p)[clear])
    assert torch.equal(generation.top_k(logits, k) > -torch.inf, (logits.unsqueeze(0) > logits.unsqueeze(1)).sum(1) < k)
    kept = generation.min_p(logits, p) > -torch.inf
    clear = (chances - p * chances.max()).abs() > 1e-9
    assert torch.equal(kept[clear], (chances >= p * chances.max())[clear])
    for rule in (generation.top_p, generation.min_p, generation.typical):
        after = rule(logits, p)
        assert (after > -torch.inf).any()
        assert torch.equal(after[after > -torch.inf], logits[after > -torch.inf])


def test_a_flat_nucleus_is_wider_than_the_first_look():
    logits = torch.randn(2, 4 * rules.FIRST, dtype=torch.float64) * 1e-3
    peer = theirs.TopPLogitsWarper(0.9)(torch.zeros(2, 1, dtype=torch.int64), logits)
    assert torch.allclose(generation.top_p(logits, 0.9), peer)


def test_a_temperature_near_zero_is_greedy():
    logits = torch.randn(3, 9)
    chances = generation.Sampling(temperature=1e-40).probabilities(logits)
    assert torch.equal(chances.argmax(-1), logits.argmax(-1))
    assert torch.allclose(chances.max(-1).values, torch.ones(3, dtype=torch.float64))
    assert torch.equal(generation.Sampling(temperature=0).probabilities(logits), chances.round())


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from([0.0, 0.0, 0.1, 1.0, 3.0]), min_size=1, max_size=9), st.floats(0, 1, exclude_max=True))
def test_a_draw_never_has_weight_zero(weights, uniform):
    (index,) = draw(torch.tensor([weights], dtype=torch.float64), torch.tensor([[uniform]], dtype=torch.float64))
    assert index == -1 if sum(weights) == 0 else weights[index] > 0


@pytest.mark.parametrize("vocab", [7, 300, 5000])
@pytest.mark.parametrize("spread", [0.1, 4.0])
def test_the_fast_form_draws_from_what_the_rules_leave(vocab, spread):
    """The same token for the same number, where tokens are laid out from the likeliest on."""
    options = itertools.product([1.0, 0.6], [None, 1, 5, 100], [None, 0.3, 0.9], [None, 0.2])
    for temperature, k, p, share in options:
        sampling = generation.Sampling(temperature, k, p, share)
        logits = torch.randn(3, vocab, dtype=torch.float64) * spread
        uniform = torch.rand(3, 1, dtype=torch.float64)
        chances = sampling.probabilities(logits)
        plain = k is None and p is None and share is None
        order = torch.arange(vocab).expand(3, vocab) if plain else logits.argsort(-1, descending=True)
        at = draw(chances.gather(1, order), uniform)
        expected = [int(order[row, place]) for row, place in enumerate(at)]
        assert sampling.choose(logits, uniform) == expected
        alone = [sampling.choose(logits[row : row + 1], uniform[row : row + 1])[0] for row in range(3)]
        assert alone == expected


@pytest.mark.parametrize("k", [0, -1, True])
def test_no_tokens_are_none_to_choose_from(k):
    with pytest.raises(WonderlandError, match=f"^top_k keeps a whole number of tokens from 1, not {k}.$"):
        rules.top_k(torch.zeros(3), k)


def test_what_was_seen_is_a_table_and_no_list_of_tokens():
    with pytest.raises(
        WonderlandError,
        match=r"^penalize_repetition takes seen as booleans \(..., vocab\), True for tokens of the text so far, ",
    ):
        rules.penalize_repetition(torch.zeros(3), torch.tensor([0, 1]), 1.5)
    with pytest.raises(WonderlandError, match=r"^penalize_repetition takes a finite penalty above 0, not 0.$"):
        rules.penalize_repetition(torch.zeros(3), torch.ones(3, dtype=torch.bool), 0)
