"""Recommenders: shapes, equations against plain loops, and measures against their definitions."""

import numpy as np
import pytest
import torch

from wonderland import models
from wonderland.core import Spec, WonderlandError
from wonderland.tasks import ranking_measures

X = torch.tensor([[1, 2, 0, 0, 3], [2, 4, 1, 2, 5], [0, 1, 0, 0, 0]])
CLASSES = [models.MatrixFactorisation, models.NeuMF, models.AutoRec, models.FactorisationMachine, models.DeepFM, models.Caser, models.SequenceRecommender]  # fmt: skip


@pytest.mark.parametrize("cls", CLASSES)
def test_a_rating_is_the_score_of_its_item(cls):
    torch.manual_seed(0)
    ranking = cls(users=3, items=5).eval()
    rating = cls(users=3, items=5, goal="rating").eval()
    rating.load_state_dict(ranking.state_dict())
    assert ranking(X).shape == (3, 6)
    assert torch.allclose(rating(X), ranking(X).gather(1, X[:, 1:2]), atol=1e-5)
    assert Spec.from_json(cls.spec(users=3, items=5).to_json()).build()(X).shape == (3, 6)


def test_a_factorisation_machine_is_the_sum_over_pairs():
    model = models.FactorisationMachine(users=3, items=5)
    user, item, past = model.user.weight[1], model.item.weight, model.past.weight[3]
    expected = user @ item[2] + user @ past + past @ item[2]
    assert torch.allclose(model(X)[0, 2], expected, atol=1e-6)


def test_padding_before_the_history_does_not_matter():
    for cls in (models.SequenceRecommender, models.AutoRec, models.MatrixFactorisation, models.Caser):
        model = cls(users=3, items=5).eval()
        longer = torch.cat([X[:, :2], torch.zeros(3, 4, dtype=torch.long), X[:, 2:]], 1)
        assert torch.allclose(model(X), model(longer), atol=1e-5)


def test_alternating_least_squares_reaches_the_least_of_its_objective():
    draw = torch.Generator().manual_seed(0)
    users, items = torch.randint(6, (30,), generator=draw), torch.randint(8, (30,), generator=draw)
    pairs = torch.stack([users, items]).unique(dim=1)
    x, y = models.implicit_als(pairs[0], pairs[1], dim=3, sweeps=300)
    x, y = x.requires_grad_(), y.requires_grad_()
    chosen = torch.zeros(len(x), len(y), dtype=torch.float64)
    chosen[pairs[0], pairs[1]] = 1
    loss = ((1 + 10 * chosen) * (chosen - x @ y.T).square()).sum() + 0.1 * (x.square().sum() + y.square().sum())
    for gradient in torch.autograd.grad(loss, (x, y)):
        assert gradient.abs().max() < 0.05


def test_neighbours_are_the_cosines_of_columns():
    draw = torch.Generator().manual_seed(0)
    users, items = torch.randint(1, 7, (40,), generator=draw), torch.randint(1, 6, (40,), generator=draw)
    near, how = models.item_neighbours(users, items, 5, shrink=0.0)
    dense = torch.zeros(7, 6)
    dense[users, items] = 1
    for item in range(1, 6):
        cosine = torch.cosine_similarity(dense[:, [item]], dense, dim=0).nan_to_num()
        cosine[item] = 0
        assert torch.allclose(how[item], cosine[near[item]], atol=1e-6)


def test_measures_are_those_of_the_textbook():
    found = ranking_measures(np.array([[5, 1, 2], [3, 4, 1]]), [{1, 2}, {9}], popularity=np.ones(10), items=9)
    assert found["hit_rate"] == 0.5
    assert found["mrr"] == 0.25
    assert found["map"] == pytest.approx((1 / 2 + 2 / 3) / 2 / 2)
    assert found["ndcg"] == pytest.approx((1 / np.log2(3) + 1 / 2) / (1 + 1 / np.log2(3)) / 2)
    assert found["coverage"] == pytest.approx(5 / 9)
    assert found["novelty"] == pytest.approx(np.log2(10))


def test_sizes_that_cannot_be_meant_are_refused():
    for call, sentence in (
        (lambda: models.NeuMF(users=0, items=1), "A recommender needs at least one user and one item."),
        (
            lambda: models.NeuMF(users=1, items=1, goal="x"),
            "A recommender has the goal 'ranking' or 'rating', not 'x'.",
        ),
        (lambda: models.Caser(users=1, items=1, last=0), "Caser reads at least one item."),
    ):
        with pytest.raises(WonderlandError) as told:
            call()
        assert str(told.value) == sentence


def test_ratings_by_least_squares_find_what_made_them():
    draw = torch.Generator().manual_seed(0)
    users, items = torch.randint(30, (1500,), generator=draw), torch.randint(20, (1500,), generator=draw)
    p, q = torch.randn(30, 2, generator=draw), torch.randn(20, 2, generator=draw)
    y = 3 + (p[users] * q[items]).sum(-1) + torch.linspace(-1, 1, 20)[items]
    factors = models.rating_als(users[:1200], items[:1200], y[:1200], sizes=(30, 20), dim=2, ridge=0.001)
    assert (factors.predict(users[1200:], items[1200:]) - y[1200:]).abs().mean() < 0.1 * y.std()
