"""What the report says of trained networks, of new nodes with weights, and of what is hidden from training."""

import numpy as np
import pandas as pd
import pytest
import torch

import wonderland
from tests.kinds.graph.graphs import graph_folder, node_folder
from wonderland.core import WonderlandError
from wonderland.core.graph import Graph
from wonderland.core.random_graphs import path
from wonderland.kinds import KINDS
from wonderland.kinds.graph.insight import _alike, _summary, along
from wonderland.kinds.graph.tables import Tables
from wonderland.nn.graph import GAT


def weighted(folder, seed=0):
    """Nodes whose edges have weights and a kind."""
    node_folder(folder, seed=seed)
    edges = pd.read_csv(folder / "edges.csv")
    draw = np.random.default_rng(seed)
    edges["weight"] = draw.random(len(edges)).round(3)
    edges["kind"] = draw.choice(["near", "far"], len(edges))
    edges.to_csv(folder / "edges.csv", index=False)
    return folder


def test_the_report_shows_smoothing_and_attention(tmp_path):
    run = wonderland.fit(weighted(tmp_path / "people"), out=tmp_path / "run", steps=4, threads=1)
    page = (run.folder / "report.html").read_text()
    for words in (
        "Smoothing by layers",
        "mean cosine of two nodes",
        "Where attention goes",
        "Strongest edges",
        "Wider edges carry",
    ):
        assert words in page
    whole = wonderland.fit(graph_folder(tmp_path / "molecules"), out=tmp_path / "graphs", steps=4, threads=1)
    assert "Smoothing by layers" in (whole.folder / "report.html").read_text()


def test_how_alike_nodes_are():
    graph = Graph.batch([path(3), path(2)])
    x = torch.tensor([[1.0, 0], [1, 0], [1, 0], [0, 1], [0, 1]])
    assert _alike(x, graph) == pytest.approx(1.0)  # nodes of two graphs are not compared
    assert _alike(torch.eye(3), path(3)) == pytest.approx(0.0)


def test_where_attention_goes():
    graph, layer = path(3), GAT(2, 2)
    with torch.no_grad():
        for weight in (layer.source, layer.target):
            weight.zero_()
        looped, share, _ = layer.shares(torch.randn(3, 2), graph)
        made = _summary(looped, share.mean(1), torch.tensor([0, 0, 1]))
    assert made["evenness"] == pytest.approx(1.0)
    assert made["itself"] == pytest.approx((1 / 2 + 1 / 3 + 1 / 2) / 3)
    assert made["same class"] == made["same class, even weights"] == pytest.approx((1 / 2 + 1 / 3) / (1 + 2 / 3))
    assert along([[0, 1], [0, 2]], torch.arange(3), looped, share.mean(1)) == [1.0, 0.0]


def test_new_nodes_bring_the_weights_and_kinds_of_their_edges(tmp_path):
    folder = weighted(tmp_path / "people")
    run = wonderland.fit(folder, out=tmp_path / "run", steps=4, threads=1)
    nodes, edges = pd.read_csv(folder / "nodes.csv"), pd.read_csv(folder / "edges.csv")
    new = pd.DataFrame({"id": ["new"], "age": [0.5], "town": ["north"]})
    ends = pd.DataFrame(
        {"source": ["new", "n1"], "target": ["n0", "new"], "weight": [0.9, 0.2], "kind": ["far", "near"]}
    )
    table = run.predict(Tables(new, ends))
    everyone = run.predict(Tables(pd.concat([nodes, new]), pd.concat([edges, ends])))
    assert float(everyone["probability"].iloc[-1]) == pytest.approx(float(table["probability"].iloc[0]), abs=1e-5)
    for broken, words in (
        (ends.assign(weight=[1.0, -1.0]), "A weight of an edge of graph is missing, negative or infinite, where those of the training were not."),
        (ends.drop(columns="kind"), "The edges lack column 'kind', which this model was trained with."),
    ):  # fmt: skip
        with pytest.raises(WonderlandError) as error:
            run.predict(Tables(new, broken))
        assert str(error.value) == words


def test_held_out_nodes_are_hidden_where_it_is_asked(tmp_path):
    folder, kind = node_folder(tmp_path / "people"), KINDS["graph"]
    for inductive in (False, True):
        data = wonderland.kinds.open(folder, inductive=inductive)
        parts = kind.split(data, test=0.2, seed=0)
        examples = kind.encoder(data, parts).examples(data)
        held = np.concatenate([parts.parts[name] for name in ("validation", "calibration", "test")])
        touching = np.isin(examples.step_input(parts.train).graph.edges.numpy(), data.rows[held]).any()
        assert touching == (not inductive)
        assert np.isin(examples.given(held).graph.edges.numpy(), data.rows[held]).any()
    run = wonderland.fit(folder, out=tmp_path / "run", steps=4, threads=1, inductive=True)
    assert len(wonderland.load(run.folder).predict()) == 80


@pytest.mark.parametrize("batches", ["neighbours", "clusters"])
def test_large_graphs_are_learned_from_in_parts(tmp_path, batches):
    folder = weighted(tmp_path / "people")
    first, second = (
        wonderland.fit(folder, out=tmp_path / str(k), steps=12, threads=1, batches=batches).metrics for k in range(2)
    )
    assert first == second
    assert 0 <= first["accuracy"] <= 1


def test_groups_stay_together(tmp_path):
    folder = node_folder(tmp_path / "people")
    nodes = pd.read_csv(folder / "nodes.csv")
    nodes["family"] = np.arange(80) // 4
    nodes.to_csv(folder / "nodes.csv", index=False)
    data = wonderland.kinds.open(folder, group="family")
    assert "family" not in data.node_frame
    parts = KINDS["graph"].split(data, test=0.2, seed=0)
    families = [set((data.rows[rows] // 4).tolist()) for rows in parts.parts.values()]
    assert all(not a & b for i, a in enumerate(families) for b in families[:i])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda f: wonderland.kinds.open(node_folder(f / "a"), group="famly"), "The nodes of a have no column 'famly' to group by."),
        (lambda f: wonderland.fit(graph_folder(f / "b"), out=f / "r", batches="whole"), "batches (--batches) cuts one large graph; whole graphs are joined into batches by themselves."),
        (lambda f: wonderland.fit(graph_folder(f / "b"), out=f / "r", inductive=True), "inductive (--inductive) hides held-out nodes; here graphs are predicted, so leave it out."),
    ],
)  # fmt: skip
def test_options_that_do_not_fit(tmp_path, make, words):
    with pytest.raises(WonderlandError) as error:
        make(tmp_path)
    assert str(error.value) == words
