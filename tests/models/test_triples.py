"""Scores of facts: their formulas, all entities at once, and ranks."""

import pytest
import torch

from wonderland.core import Spec, WonderlandError
from wonderland.core.graph import Graph
from wonderland.models import MPNN, TripleModel, filtered_ranks
from wonderland.models.triples import SCORES


def by_formula(model, h, r, t):
    h, r, t = (table.weight[i] for table, i in ((model.entity, h), (model.relation, r), (model.entity, t)))
    if model.score == "distmult":
        return (h * r * t).sum()
    if model.score == "transe":
        return -(h + r - t).norm()
    h, t = (torch.complex(*each.chunk(2)) for each in (h, t))
    if model.score == "complex":
        return (h * torch.complex(*r.chunk(2)) * t.conj()).sum().real
    return -(h * torch.polar(torch.ones_like(r), r) - t).abs().sum()


@pytest.mark.parametrize("score", SCORES)
def test_a_fact_has_the_score_of_its_formula(score):
    torch.manual_seed(0)
    model = TripleModel(6, 3, dim=8, score=score).double().eval()
    facts = torch.tensor([[0, 1, 4], [5, 2, 2], [3, 0, 3]])
    expected = torch.stack([by_formula(model, *fact) for fact in facts.tolist()])
    torch.testing.assert_close(model(facts), expected)
    torch.testing.assert_close(model.tails(facts).gather(1, facts[:, 2:])[:, 0], expected)
    torch.testing.assert_close(model.heads(facts).gather(1, facts[:, :1])[:, 0], expected)
    assert model.tails(facts).shape == model.heads(facts).shape == (3, 6)
    assert Spec.from_json(TripleModel.spec(score=score).to_json()).build(entities=2, relations=1).score == score


def test_ranks_leave_out_what_is_known_and_share_ties():
    scores = torch.tensor([[5.0, 4.0, 3.0, 3.0], [0.0, 0.0, 0.0, 0.0]])
    known = torch.tensor([[True, False, True, False], [False, True, False, False]])
    assert filtered_ranks(scores, torch.tensor([2, 1]), known).tolist() == [2.5, 2.5]


def test_mpnn_keeps_graphs_apart_and_ignores_their_order():
    torch.manual_seed(0)
    net = MPNN(3, 2, dim=8, edge_dim=2).double().eval()
    one, two = Graph.undirected([(0, 1), (1, 2)]), Graph([], 1)
    x, edge = torch.randn(4, 3).double(), torch.randn(4, 2).double()
    whole = net(x, Graph.batch([one, two]), edge)
    torch.testing.assert_close(whole[:1], net(x[:3], one, edge))
    torch.testing.assert_close(whole[1:], net(x[3:], two, edge[:0]))
    order = torch.tensor([2, 0, 1])
    torch.testing.assert_close(net(x[:3][order], one.permuted(order), edge), whole[:1])
    assert MPNN(3, 2, dim=8)(x[:3].float(), one).shape == (1, 2)


def test_faults_are_named():
    for make, words in (
        (lambda: TripleModel(2, 1, score="cp"), "There is no score 'cp'. Known are complex, distmult, transe, rotate."),
        (lambda: TripleModel(2, 1, dim=3), "TripleModel by complex takes an even width, pairs of real and imaginary parts, not 3."),
    ):  # fmt: skip
        with pytest.raises(WonderlandError) as error:
            make()
        assert str(error.value) == words
