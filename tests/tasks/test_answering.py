"""Answering: the distribution over spans sums to one, and equals the enumeration of all spans."""

import pytest
import torch

from wonderland.models import AnswerFinder
from wonderland.tasks import Answering
from wonderland.tasks.answering import banded

X = torch.tensor(
    [
        [[4, 1, 0], [3, 1, 0], [2, 2, 3], [5, 2, 0], [6, 2, 1], [0, 0, 0]],
        [[4, 1, 0], [3, 2, 2], [2, 2, 3], [5, 2, 0], [6, 2, 1], [1, 2, 4]],
    ]
)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return AnswerFinder(features=8, dim=4, state_size=3, longest=2).double().eval()


def test_probabilities_of_all_spans_and_of_none_sum_to_one(model):
    ends, none = model.scores(X)
    total = model.log_partition(ends, none)
    for row, places in enumerate(([2, 3, 4], [1, 2, 3, 4, 5])):
        spans = [(i, j) for i in places for j in places if 0 <= j - i < 2]
        own = torch.stack(
            [model.log_likelihood(X[row : row + 1], torch.tensor([span]))[0] for span in [*spans, (-1, -1)]]
        )
        assert own.exp().sum().item() == pytest.approx(1, abs=1e-12)
        listed = banded(ends, 2)[row].flatten()
        assert torch.isfinite(listed).sum() == len(spans)
        shares = torch.cat([listed[torch.isfinite(listed)], none[row : row + 1]]) - total[row]
        assert shares.exp().sum().item() == pytest.approx(1)


def test_a_row_alone_is_the_row_among_mates(model):
    ends, none = model.scores(X)
    alone, own = model.scores(X[:1, :5])
    torch.testing.assert_close(alone[0], ends[0, :5])
    torch.testing.assert_close(own, none[:1])


def test_gradients_are_finite_where_nothing_is_to_be_found(model):
    model.train()
    loss, _ = Answering(longest=2, absent=True).loss(model, {"x": X, "y": torch.tensor([[-1, -1], [2, 5]])})  # pyright: ignore
    loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_trust_is_read_back_or_refused():
    task = Answering(longest=2)
    saved = {"temperature": 1.0, "absent": 0.5, "risks": [0.1] * 54, "questions": 40, "level": 0.9}
    assert task.trust(saved).to_json() == saved
    with pytest.raises(ValueError, match=r"trust\.json does not hold scores of answers"):
        task.trust({**saved, "temperature": 0})
