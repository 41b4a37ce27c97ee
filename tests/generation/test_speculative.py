"""Speculative decoding: the large model's text, exactly or in distribution, whatever the draft."""

import itertools

import pytest
import torch

from tests.generation.test_generate import PROMPTS, Table, decoder
from wonderland.core import Spec, WonderlandError
from wonderland.generation import Sampling, generate, speculate
from wonderland.models import Decoder


def small(mixer: str = "nn.Attention") -> Decoder:
    model = Decoder(vocab=11, dim=8, depth=1, mixer=Spec(mixer)).double()
    with torch.no_grad():
        model.embedding.weight.mul_(60)
    return model


@pytest.mark.parametrize(
    ("mixers", "ahead"),
    [(("nn.Attention", "nn.GRU"), 4), (("nn.Mamba", "nn.Mamba"), 1), (("nn.RWKV", "nn.Attention"), 3)],
)
def test_the_greedy_text_is_the_same(mixers, ahead):
    model, draft = decoder(mixers[0]), small(mixers[1])
    fast = speculate(model, draft, PROMPTS, 12, ahead=ahead, temperature=0, stop=[0], repetition_penalty=1.2)
    slow = generate(model, PROMPTS, 12, temperature=0, stop=[0], repetition_penalty=1.2)
    assert fast.tokens == slow.tokens
    assert fast.ended == slow.ended
    assert 0 <= fast.accepted <= fast.proposed


def test_a_draft_that_is_the_model_is_always_right():
    model = decoder()
    fast = speculate(model, model, PROMPTS, 13, ahead=3, temperature=0.9, top_k=5)
    assert fast.accepted == fast.proposed == 4 * 9  # three rounds of three guesses, and a last token without
    assert [len(tokens) for tokens in fast.tokens] == [13] * 4


@pytest.mark.parametrize(
    ("mixer", "size", "runs"),
    [
        ("nn.Attention", 2, 400),
        pytest.param("nn.Attention", 3, 6000, marks=pytest.mark.slow),
        pytest.param("nn.LRU", 3, 6000, marks=pytest.mark.slow),
    ],
)
def test_the_distribution_is_that_of_the_model(mixer, size, runs):
    """Short texts, many times, against the probability of each, by a chi-square statistic."""
    settings = {"temperature": 1.3, "top_p": 0.97}
    torch.manual_seed(5)
    model = Decoder(vocab=3, dim=6, depth=1, mixer=Spec(mixer)).double().requires_grad_(False)
    model.embedding.weight.mul_(40)
    draft = Table([[0.5, 1.0, -0.5], [0.0, 0.2, 1.0], [1.0, 0.0, 0.0]])
    chances = {}
    for text in itertools.product(range(3), repeat=size):
        steps = Sampling(**settings).probabilities(model(torch.tensor([[1, *text[:-1]]]))[0])
        chances[text] = float(steps.gather(1, torch.tensor(text).unsqueeze(1)).prod())
    assert sum(chances.values()) == pytest.approx(1)
    fast = speculate(Cached(model), Cached(draft), [[1]] * runs, size, ahead=2, **settings)
    counts = dict.fromkeys(chances, 0)
    for tokens in fast.tokens:
        counts[tuple(tokens)] += 1
    assert 0.2 < fast.accepted / fast.proposed < 0.95
    assert all(counts[text] == 0 for text, p in chances.items() if p == 0)
    statistic = sum((counts[text] - runs * p) ** 2 / (runs * p) for text, p in chances.items() if p > 0)
    # One in a thousand lies above, at 8 and at 26 degrees of freedom.
    assert statistic < {2: 26.1, 3: 54.1}[size]


class Cached:
    """A model that is asked the same few questions thousands of times; its states are texts."""

    vocab = 3

    def __init__(self, model):
        self.model, self.known = model, {}

    def stream(self, tokens, state=None, mask=None):
        text = (() if state is None else state[0]) + tuple(tokens[0].tolist())
        if text not in self.known:
            whole = torch.tensor([text])
            self.known[text] = self.model.stream(whole)[0]
        return self.known[text][:, -tokens.shape[1] :], (text,)


def test_many_wrong_guesses_do_not_pile_up():
    """The model reads at most a few tokens twice, however wrong the draft is."""
    sizes = []

    class Counted(Table):
        def stream(self, tokens, state=None, mask=None):
            sizes.append(tokens.shape[1])
            return super().stream(tokens, state, mask)

    right, wrong = [[0.0, 9.0, 0.0]] * 3, Table([[9.0, 0.0, 0.0]] * 3)
    assert speculate(Counted(right), wrong, [[0]], 60, temperature=0).tokens == [[1] * 60]
    assert max(sizes) <= 16 + 4 + 1


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (
            lambda: speculate(decoder(), Decoder(vocab=9, dim=8, depth=1), [[1]], 3),
            "The model has 11 tokens and the draft 9: both need the same vocabulary.",
        ),
        (
            lambda: speculate(decoder(), decoder(), [[1]], 3, ahead=0),
            "ahead, the number of tokens that the draft proposes at a time, is a whole number from 1, not 0.",
        ),
        (
            lambda: speculate(Table([[float("nan")] * 3] * 3), Table([[0.0] * 3] * 3), [[1]], 3),
            "The model gives logits that are not numbers in row 0, after 0 new tokens: "
            "look for NaN and infinity in its weights.",
        ),
        (
            lambda: speculate(decoder(), decoder(), [[1]], 0),
            "count, the number of tokens to generate, is a whole number from 1, not 0.",
        ),
    ],
)
def test_what_does_not_fit_is_told(run, words):
    with pytest.raises(WonderlandError) as error:
        run()
    assert str(error.value) == words
