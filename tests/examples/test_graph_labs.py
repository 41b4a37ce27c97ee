"""Labs of graphs on small data: what they read, how they split, and that they say what they miss."""

import numpy as np
import pytest
import torch

from examples.graphs.__main__ import apart, look_alikes
from examples.mutag.training import Setting, folds, read, train
from examples.umls import __main__ as umls
from tests.kinds.graph.test_molecules import tu
from wonderland.nn.graph import random_walk_encoding


@pytest.mark.parametrize("name", look_alikes())
def test_only_random_walks_tell_these_apart(name):
    messages, walks = apart(*look_alikes()[name])
    assert messages < 1e-5
    assert walks > 0.05
    degrees = [sorted(graph.degree.tolist()) for graph in look_alikes()[name]]
    assert degrees[0] == degrees[1]
    assert random_walk_encoding(look_alikes()[name][0], 2).shape[1] == 2


def test_folds_hold_their_share_of_each_class():
    y = np.array([0] * 20 + [1] * 30)
    fold = folds(y, 10, 0)
    assert [np.bincount(y[fold == k]).tolist() for k in range(10)] == [[2, 3]] * 10


def test_gin_is_trained_on_sets_of_graphs(tmp_path):
    data = read(tu(tmp_path / "set"))
    assert data.examples.features.tolist() == [[1, 0], [0, 1], [1, 0], [1, 0]]
    right = train(data, np.array([0, 1]), np.array([0, 1]), Setting(4, 2), 3, 0)
    assert right.shape == (3, 2)


def test_facts_are_ranked_beside_how_often_entities_occur(tmp_path):
    for name, facts in (("train", "a\tr\tb\na\tr\tc\nd\tr\tb\n"), ("valid", ""), ("test", "d\tr\tc\n")):
        (tmp_path / f"{name}.txt").write_text(facts)
    facts = umls.read(tmp_path)
    assert (facts.entities, facts.relations, facts.train.shape, facts.test.tolist()) == (4, 1, (3, 3), [[3, 0, 2]])
    mean, first = umls.frequency(facts)
    assert (mean, first) == (1.0, 1.0)  # c is the only tail of r that is not known, and d the head
    claims, report, _ = umls.lab(tmp_path, seeds=1, epochs=1)
    assert "how often an entity occurs" in report
    assert [claim.met for claim in claims][1] is False
    assert torch.get_default_dtype() == torch.float32
