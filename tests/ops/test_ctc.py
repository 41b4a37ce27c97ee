"""CTC: torch's loss and gradients, the sum over all paths, the best alignment among all, and decoding that is exact with enough beams."""

import itertools

import pytest
import torch
import torch.nn.functional as F

from wonderland.core import WonderlandError
from wonderland.generation.ctc_beam import ctc_beam_search
from wonderland.models import Ngram
from wonderland.ops.ctc import collapse, ctc_align, ctc_greedy, ctc_loss, reference


def frames(b=3, t=6, v=4, seed=0):
    return torch.randn(b, t, v, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


TARGETS = torch.tensor([[1, 2, -1], [3, 3, 1], [2, -1, -1]])


def paths(logits):
    """The probability of every text, by adding up all paths."""
    p, texts = logits.softmax(-1), {}
    for path in itertools.product(range(logits.shape[1]), repeat=len(logits)):
        text = tuple(collapse(list(path)))
        texts[text] = texts.get(text, 0.0) + float(torch.stack([p[i, token] for i, token in enumerate(path)]).prod())
    return texts


@pytest.mark.parametrize("steps", [None, torch.tensor([6, 5, 2])])
def test_loss_and_gradients_are_torchs_and_the_recursion(steps):
    logits = frames().requires_grad_()
    losses = ctc_loss(logits, TARGETS, steps)
    lengths = torch.tensor([2, 3, 1])
    whole = torch.full((3,), 6) if steps is None else steps
    torchs = F.ctc_loss(logits.log_softmax(-1).transpose(0, 1), TARGETS.clamp_min(1), whole, lengths, reduction="none")
    torch.testing.assert_close(losses, torchs)
    grads = [
        torch.autograd.grad(loss.sum(), logits, retain_graph=True)[0]
        for loss in (losses, reference(logits, TARGETS, steps))
    ]
    torch.testing.assert_close(reference(logits, TARGETS, steps), losses)
    torch.testing.assert_close(*grads)


def test_loss_is_the_sum_over_all_paths():
    logits = frames(1, 5, 3)
    texts = paths(logits[0])
    assert sum(texts.values()) == pytest.approx(1)
    for text in [(1,), (1, 2), (2, 2), (1, 2, 1)]:
        assert float(ctc_loss(logits, torch.tensor([text])).exp()) == pytest.approx(1 / texts[text])
    assert torch.isinf(ctc_loss(logits, torch.tensor([[1, 1, 1, 1]])))


def test_the_alignment_is_the_best_of_all_paths():
    logits, target = frames(1, 5, 3, seed=4)[0], torch.tensor([2, 2])
    scores = logits.log_softmax(-1)
    every = [path for path in itertools.product(range(3), repeat=5) if collapse(list(path)) == [2, 2]]
    best = max(every, key=lambda path: float(sum(scores[i, token] for i, token in enumerate(path))))
    path, starts = ctc_align(logits, target)
    assert path.tolist() == list(best)
    assert [int(path[start]) for start in starts] == [2, 2]
    assert ctc_align(logits, torch.tensor([], dtype=torch.int64))[0].tolist() == [0] * 5
    with pytest.raises(
        WonderlandError, match=r"4 tokens do not fit into 5 frames: give more frames, or a shorter target\."
    ):
        ctc_align(logits, torch.tensor([1, 1, 1, 1]))


def test_a_beam_search_with_every_prefix_is_exact():
    logits = frames(1, 5, 3, seed=2)[0]
    texts = paths(logits)
    found = ctc_beam_search(logits, beams=1000, prune=0)
    assert len(found) == len(texts)
    for tokens, score in found:
        assert score == pytest.approx(float(torch.tensor(texts[tuple(tokens)], dtype=torch.float64).log()))
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    assert ctc_greedy(logits[None])[0] == collapse(logits.argmax(-1).tolist())


def test_a_language_model_adds_its_weighted_log_probability():
    logits = frames(1, 4, 3, seed=3)[0]
    language = Ngram.count([torch.tensor([1, 2, 1, 2]), torch.tensor([2, 1])], 3, 2)
    plain = {tuple(tokens): score for tokens, score in ctc_beam_search(logits, beams=1000, prune=0)}
    for tokens, score in ctc_beam_search(logits, beams=1000, prune=0, language=language, weight=0.7, bonus=0.3):
        read = torch.tensor([[0, *tokens]])
        said = language(read)[0].double().log_softmax(-1)
        total = float(sum(said[i, token] for i, token in enumerate(tokens)))
        assert score == pytest.approx(plain[tuple(tokens)] + 0.7 * total + 0.3 * len(tokens), abs=1e-5)


def test_what_cannot_be_is_refused():
    with pytest.raises(
        WonderlandError, match=r"CTC takes logits \(b, t, v\) and targets \(b, u\), not \(2, 3\) and \(2,\)\."
    ):
        ctc_loss(torch.zeros(2, 3), torch.zeros(2))
    with pytest.raises(
        WonderlandError, match=r"Targets of CTC are tokens below 3 other than the blank 0, and -1 after the end\."
    ):
        ctc_loss(torch.zeros(1, 2, 3), torch.tensor([[3]]))
