"""Chains of tags: partition function, best path and marginals equal the enumeration of all paths."""

import re

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.ops import crf

MASKS = [
    [True, True, True, True, True],
    [True, True, True, False, False],
    [False, False, True, True, True],
    [True, False, True, False, True],
    [False, False, False, True, False],
]


@pytest.fixture
def chain():
    draw = torch.Generator().manual_seed(3)
    return [torch.randn(*shape, generator=draw, dtype=torch.float64) for shape in ((5, 5, 3), (3, 3), (3,), (3,))]


def test_it_equals_the_enumeration_of_all_paths(chain):
    scores, transitions, first, last = chain
    mask = torch.tensor(MASKS)
    total = crf.log_partition(scores, transitions, first, last, mask)
    best, score = crf.best_path(scores, transitions, first, last, mask)
    marginals = crf.log_marginals(scores, transitions, first, last, mask)
    for row, real in enumerate(mask):
        paths, values = crf.reference(scores[row][real], transitions, first, last)
        assert total[row].item() == pytest.approx(values.logsumexp(0).item(), abs=1e-12)
        assert best[row][real].equal(paths[values.argmax()])
        assert score[row].item() == pytest.approx(values.max().item(), abs=1e-12)
        assert (best[row][~real] == -1).all()
        shares = values.softmax(0)
        for place in range(int(real.sum())):
            for tag in range(3):
                expected = shares[paths[:, place] == tag].sum()
                assert marginals[row][real][place, tag].exp().item() == pytest.approx(expected.item(), abs=1e-12)
        tags = torch.zeros(1, 5, dtype=torch.int64)
        for path, value in zip(paths[::7], values[::7], strict=True):
            tags[0, real] = path
            own = crf.path_score(scores[row : row + 1], tags, transitions, first, last, mask[row : row + 1])
            assert own.item() == pytest.approx(value.item(), abs=1e-12)


def test_gradients_of_the_partition_function_are_the_marginals(chain):
    scores, transitions, first, last = (part.requires_grad_() for part in chain)
    mask = torch.tensor(MASKS)
    crf.log_partition(scores, transitions, first, last, mask).sum().backward()
    marginals = crf.log_marginals(scores, transitions, first, last, mask).exp() * mask.unsqueeze(2)
    torch.testing.assert_close(scores.grad, marginals, atol=1e-12, rtol=0)


def test_bad_input_meets_a_sentence(chain):
    scores, transitions, first, last = chain
    for text, call in (
        ("A chain has scores (batch, time, classes), not of shape (5, 3).", (scores[0], transitions, first, last)),
        ("Scores of 3 classes need transitions (3, 3), not (2, 2).", (scores, transitions[:2, :2], first, last)),
        (
            "The mask of a chain is boolean (5, 5), not torch.int64 (5, 5).",
            (scores, transitions, first, last, torch.ones(5, 5).long()),
        ),
    ):
        with pytest.raises(WonderlandError, match="^" + re.escape(text) + "$"):
            crf.log_partition(*call)
