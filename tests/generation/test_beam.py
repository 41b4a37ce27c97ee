"""Beam search against brute force, against transformers, and against greedy search."""

import itertools
import re

import pytest
import torch

from tests.generation.test_generate import Copier, Table, decoder
from wonderland.checkpoints import from_gpt2
from wonderland.core import WonderlandError
from wonderland.generation import beam_search, generate, log_likelihood, matching
from wonderland.models import Decoder


def every(model, prompt, count, stop, vocab, scale):
    """All texts with their scores: those that a stop token ends, and those of full length."""
    actual = []
    for size in range(1, count + 1):
        for text in itertools.product(range(vocab), repeat=size):
            stopped = text[-1] in stop
            if any(token in stop for token in text[:-1]) or (size < count and not stopped):
                continue
            logs = log_likelihood(model, [prompt], [list(text)])[0]
            actual.append((logs / scale(size), list(text[:-1]) if stopped else list(text)))
    return sorted(actual, key=lambda one: -one[0])


@pytest.mark.parametrize(("alpha", "length"), [(0, "power"), (0.75, "power"), (1.5, "power"), (0.6, "gnmt")])
def test_with_enough_beams_the_search_is_exhaustive(alpha, length):
    model = Decoder(vocab=4, dim=8, depth=1).double()
    with torch.no_grad():
        model.embedding.weight.mul_(40)

    def scale(size):
        return (size if length == "power" else (5 + size) / 6) ** alpha

    expected = every(model, [1, 2], 3, {0}, 4, scale)
    (actual,) = beam_search(model, [[1, 2]], 3, beams=64, alpha=alpha, length=length, stop=[0])
    assert len(actual.tokens) == len(expected)
    assert torch.allclose(torch.tensor(actual.scores), torch.tensor([score for score, _ in expected]))
    assert actual.tokens == [text for _, text in expected]


@pytest.mark.parametrize("mixer", ["nn.Attention", "nn.Mamba", "nn.GRU"])
def test_one_beam_is_greedy_and_prompts_do_not_meet(mixer):
    model = decoder(mixer)
    prompts = [[1, 2, 3], [4], [5, 6]]
    greedy = generate(model, prompts, 7, temperature=0).tokens
    assert [actual.tokens[0] for actual in beam_search(model, prompts, 7, beams=1)] == greedy
    together = beam_search(model, prompts, 7, beams=3, stop=[0])
    for prompt, actual in zip(prompts, together, strict=True):
        (alone,) = beam_search(model, [prompt], 7, beams=3, stop=[0])
        assert alone.tokens == actual.tokens
        assert torch.allclose(torch.tensor(alone.scores), torch.tensor(actual.scores))


def sharp():
    torch.manual_seed(5)
    model = Decoder(vocab=4, dim=8, depth=1).double()
    with torch.no_grad():
        model.embedding.weight.mul_(40)
    return model


def test_with_a_constraint_the_best_of_the_texts_that_match_are_found():
    model, pieces = sharp(), [b"a", b"b", b"ab", b""]
    (actual,) = beam_search(model, [[1]], 4, beams=200, stop=[3], constraint=matching("(ab)+a?", pieces))
    expected = []
    for size in range(1, 5):
        for text in itertools.product(range(3), repeat=size):
            written = b"".join(pieces[token] for token in text)
            if not re.fullmatch(b"(ab)+a?", written):
                continue
            ends = [[]] if size == 4 else [[3]]
            for end in ends:
                logs = log_likelihood(model, [[1]], [[*text, *end]])[0]
                expected.append((logs / (size + len(end)) ** 0.75, list(text)))
    expected.sort(key=lambda one: -one[0])
    assert actual.tokens == [text for _, text in expected]
    assert torch.allclose(torch.tensor(actual.scores), torch.tensor([score for score, _ in expected]))
    assert all(re.fullmatch(b"(ab)+a?", text) for text in actual.texts)
    (few,) = beam_search(model, [[1]], 4, beams=2, constraint=matching("ab(ab)?", pieces))
    assert set(few.ended) == {"constraint"}
    assert set(few.texts) <= {b"ab", b"abab"}
    (none,) = beam_search(model, [[1]], 4, constraint=matching("", pieces))
    assert (none.tokens, none.ended, none.scores) == ([[]], ["constraint"], [0.0])


def test_stop_strings_end_a_text_and_are_cut_off():
    model, pieces = sharp(), [b"a", b"b", b"ab", b"c"]
    (actual,) = beam_search(model, [[1]], 3, beams=100, stop="bc", pieces=pieces)
    expected = []
    for size in range(1, 4):
        for text in itertools.product(range(4), repeat=size):
            places = [b"".join(pieces[token] for token in text[:k]).find(b"bc") for k in range(size + 1)]
            if max(places[:-1], default=-1) >= 0 or (size < 3 and places[-1] < 0):
                continue
            whole = b"".join(pieces[token] for token in text)
            logs = log_likelihood(model, [[1]], [list(text)])[0]
            expected.append((logs / size**0.75, list(text), whole[: places[-1]] if places[-1] >= 0 else whole))
    expected.sort(key=lambda one: -one[0])
    assert actual.tokens == [text for _, text, _ in expected]
    assert actual.texts == [text for *_, text in expected]
    assert [why == "stop" for why in actual.ended] == [
        b"bc" in b"".join(pieces[token] for token in text) for text in actual.tokens
    ]


def test_greedy_search_can_lose():
    """p(A) = .6 and p(B) = .4, but after A the best has .35 and after B .95: greedy .21, two beams .38."""
    a = [0.35, 0.35, 0.3]
    table = torch.tensor([a, [0.95, 0.03, 0.02], [0.6, 0.4, 1e-9]]).log()
    (actual,) = beam_search(Table(table.tolist()), [[2]], 2, beams=2, alpha=0)
    assert actual.tokens[0] == [1, 0]
    assert round(2.718281828 ** actual.scores[0], 6) == 0.38
    assert generate(Table(table.tolist()), [[2]], 2, temperature=0).tokens == [[0, 0]]


def test_the_texts_are_those_of_transformers():
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(3)
    theirs = GPT2LMHeadModel(GPT2Config(vocab_size=20, n_positions=32, n_embd=16, n_layer=2, n_head=2)).double().eval()
    with torch.no_grad():
        theirs.transformer.wte.weight.mul_(30)
    tokens = torch.tensor([[3, 1, 4], [2, 7, 1]])
    mask = torch.ones_like(tokens)
    options = {"num_beams": 4, "num_return_sequences": 4, "do_sample": False, "pad_token_id": 0, "max_new_tokens": 6}
    options |= {
        "return_dict_in_generate": True,
        "output_scores": True,
        "length_penalty": 0.75,
        "early_stopping": "never",
    }
    expected = theirs.generate(tokens, attention_mask=mask, eos_token_id=None, **options)
    own = from_gpt2(theirs)
    actual = beam_search(own, tokens, 6, beams=4)
    assert [text for row in actual for text in row.tokens] == expected.sequences[:, 3:].tolist()
    scores = torch.tensor([score for row in actual for score in row.scores])
    assert torch.allclose(scores, expected.sequences_scores.float(), atol=1e-5)
    # With an end token, theirs are not looked at unless they are among the first; ours are, and never worse.
    ended = theirs.generate(tokens, attention_mask=mask, eos_token_id=5, **options).sequences_scores.view(2, 4)
    for row, scores in zip(beam_search(own, tokens, 6, beams=4, stop=[5]), ended, strict=True):
        assert row.scores[0] >= scores[0] - 1e-6


def test_the_search_stops_as_soon_as_nothing_can_overtake():
    """Every text ends at once: a second step is never read."""

    class Ends(Table):
        calls = 0

        def stream(self, tokens, state=None, mask=None):
            self.calls += 1
            return super().stream(tokens, state, mask)

    model = Ends([[9.0, 0.0, -40.0]] * 3)
    (actual,) = beam_search(model, [[1]], 50, beams=1, stop=[0])
    assert actual.tokens == [[]]
    assert actual.ended == ["stop"]
    assert model.calls == 1


def test_an_encoder_decoder_is_searched():
    model = Copier()
    source = torch.tensor([[3, 1, 4], [1, 5, 2]])
    actual = beam_search(model, [[0], [0]], 3, beams=2, state=model.prepare(source))
    assert [row.tokens[0] for row in actual] == source.tolist()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"beams": 0}, "beams is a whole number from 1, not 0."),
        (
            {"alpha": -1},
            "Scores are normalised by alpha, at least 0, and length, 'power' or 'gnmt', not -1 and 'power'.",
        ),
        (
            {"length": "log"},
            "Scores are normalised by alpha, at least 0, and length, 'power' or 'gnmt', not 0.75 and 'log'.",
        ),
        ({"pieces": [b"a"]}, "There are 1 pieces and the model has 11 tokens: give one for each."),
        (
            {"stop": "x", "constraint": matching("a", [b"a"] * 11)},
            "A stop string could cut off a text before the constraint is met: give only one of them.",
        ),
    ],
)
def test_what_does_not_fit_is_told(options, words):
    with pytest.raises(WonderlandError) as error:
        beam_search(decoder(), [[1]], 3, **options)
    assert str(error.value) == words


def test_broken_logits_are_told():
    with pytest.raises(WonderlandError) as error:
        beam_search(Table([[float("nan")] * 3] * 3), [[1]], 3)
    assert str(error.value) == (
        "The model gives logits that are not numbers after 0 new tokens: look for NaN and infinity in its weights."
    )
    with pytest.raises(
        WonderlandError, match="count, the number of tokens to generate, is a whole number from 1, not 0"
    ):
        beam_search(Table([[0.0] * 3] * 3), [[1]], 0)
