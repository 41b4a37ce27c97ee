"""Best of n: the texts are those of generate, and the best of them is kept."""

import pytest
import torch

from tests.generation.test_generate import Copier, decoder
from wonderland.core import WonderlandError
from wonderland.generation import best_of, generate, log_likelihood


def test_the_likeliest_is_kept():
    model, prompts = decoder(), [[1, 2, 3], [4]]
    best = best_of(model, prompts, 6, 5, seed=2, stop=[0])
    many = generate(model, [prompt for prompt in prompts for _ in range(5)], 6, seed=2, stop=[0]).tokens
    logs = log_likelihood(model, [prompt for prompt in prompts for _ in range(5)], many)
    means = [value / max(len(text), 1) for value, text in zip(logs, many, strict=True)]
    for row in range(2):
        at = max(range(5 * row, 5 * row + 5), key=means.__getitem__)
        assert best.tokens[row] == many[at]
        assert best.scores[row] == pytest.approx(means[at])


def test_a_score_of_ones_own():
    best = best_of(decoder(), [[1], [2, 3]], 6, 20, score=lambda prompt, tokens: tokens.count(7) + 100 * len(prompt))
    assert best.scores[1] >= 200
    assert [score % 100 for score in best.scores] == [tokens.count(7) for tokens in best.tokens]


def test_likelihoods_are_those_of_the_whole():
    model = decoder("nn.RWKV")
    prompts, texts = [[1, 2], [3], [4, 5, 6]], [[7, 8, 9], [1], []]
    for prompt, text, actual in zip(prompts, texts, log_likelihood(model, prompts, texts), strict=True):
        logs = model(torch.tensor([prompt + text])).log_softmax(-1)[0]
        expected = sum(logs[len(prompt) - 1 + at, token].item() for at, token in enumerate(text))
        assert actual == pytest.approx(expected, abs=1e-9)


def test_an_encoder_decoder_reads_its_source_once():
    model = Copier()
    source = torch.tensor([[3, 1, 4], [1, 5, 2]])
    best = best_of(model, [[0], [0]], 3, 4, state=model.prepare(source), temperature=0.5)
    assert best.tokens == source.tolist()


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (
            lambda: best_of(decoder(), [[1]], 3, 0),
            "n, the number of texts to choose from, is a whole number from 1, not 0.",
        ),
        (
            lambda: log_likelihood(decoder(), [[1]], [[1], [2]]),
            "There are 2 texts and 1 prompts: give one for each.",
        ),
    ],
)
def test_what_does_not_fit_is_told(run, words):
    with pytest.raises(WonderlandError) as error:
        run()
    assert str(error.value) == words
