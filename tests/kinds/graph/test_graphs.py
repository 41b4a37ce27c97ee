"""Graphs from every form: what is read, what is said of it, what is refused, and that nothing leaks."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

import wonderland
from tests.kinds.graph.graphs import graph_folder, link_folder, node_folder
from wonderland.core import WonderlandError
from wonderland.core.graph import Graph
from wonderland.kinds import KINDS
from wonderland.kinds.graph.baselines import subtree_counts
from wonderland.kinds.graph.drawing import chosen, force_layout
from wonderland.kinds.graph.encoder import messages
from wonderland.kinds.graph.kind import alike
from wonderland.kinds.graph.links import pair_features
from wonderland.kinds.graph.tables import Tables
from wonderland.kinds.options import KindOptions


def opened(source, **options):
    return wonderland.kinds.open(source, **options)


def fitted(source, out, **options):
    return wonderland.fit(source, out=out, steps=4, threads=1, **options)


def frames(**changes):
    made = {
        "nodes": pd.DataFrame({"id": list("abcdefgh"), "size": range(8), "label": list("xyxyxyxy")}),
        "edges": pd.DataFrame({"source": list("abcdefg"), "target": list("bcdefgh")}),
    }
    return Tables(**(made | changes))


def words_of(make):
    with pytest.raises(WonderlandError) as error:
        make()
    return str(error.value)


# What is read


def test_a_folder_of_nodes(tmp_path):
    data = opened(node_folder(tmp_path / "people"))
    assert data.of == "nodes"
    assert data.classes == ["blue", "red"]
    assert list(data.node_frame) == ["age", "town"]
    assert data.graph.is_undirected
    assert data.graph.in_order
    said = [finding.text for finding in data.findings]
    assert "Column 'label' of the nodes is taken as the target by its name." in said
    assert "Edges count in both directions; --directed lets them go from source to target only." in said
    assert data.headline().endswith("nodes to predict, binary, 2 classes")


def test_many_graphs(tmp_path):
    data = opened(graph_folder(tmp_path / "molecules"))
    assert data.of == "graphs"
    assert len(data) == 60
    assert data.graph.graphs == 60
    assert list(data.edge_frame) == ["bond"]
    assert data.example(0)["graph"] == "g0"


def test_edges_alone_are_links(tmp_path):
    data = opened(link_folder(tmp_path / "friends"))
    assert data.of == "links"
    assert data.classes == ["no link", "link"]
    assert np.bincount(data.y).tolist() == [len(data) // 2] * 2
    joined = {tuple(sorted(pair)) for pair in data.rows[data.y == 1].tolist()}
    apart = {tuple(sorted(pair)) for pair in data.rows[data.y == 0].tolist()}
    assert not joined & apart
    assert len(apart) == (data.y == 0).sum()


def test_classes_of_edges():
    edges = pd.DataFrame(
        {
            "u": list("abcdefgh") * 3,
            "v": list("bcdefgha") + list("cdefghab") + list("defghabc"),
            "label": list("pq") * 12,
        }
    )
    data = opened(Tables(None, edges))
    assert (data.of, data.target, data.classes, len(data)) == ("links", "label", ["p", "q"], 24)


def test_direction_and_weights():
    edges = pd.DataFrame({"source": list("abcdefg"), "target": list("bcdefgh"), "weight": np.arange(7) + 0.5})
    plain, directed = opened(frames(edges=edges)), opened(frames(edges=edges), directed=True)
    assert plain.graph.edges.shape[1] == 14
    assert directed.graph.edges.shape[1] == 7
    assert sorted(directed.graph.weight.tolist()) == (np.arange(7) + 0.5).tolist()
    assert directed.graph.edges.t().tolist()[0] == [0, 1]
    negative = opened(frames(edges=edges.assign(weight=-1.0)))
    assert negative.graph.weight is None
    assert list(negative.edge_frame) == ["weight"]


def test_ids_may_be_numbers_or_words_in_any_column():
    data = opened(
        Tables(
            pd.DataFrame({"node": [10, 20, 30], "y": [1.5, 2.5, 3.5]}),
            pd.DataFrame({"x": [10.0, 20.0], "z": [20.0, 30.0]}),
        )
    )
    assert data.ids == ["10", "20", "30"]
    assert data.task == "regression"
    assert data.graph.edges.shape[1] == 4


def test_the_split_of_a_column(tmp_path):
    folder = node_folder(tmp_path / "people")
    nodes = pd.read_csv(folder / "nodes.csv")
    nodes["part"] = (["train"] * 5 + ["val"] * 2 + ["test"] * 2 + [""]) * 8
    nodes.to_csv(folder / "nodes.csv", index=False)
    data = opened(folder, split="part")
    parts = KINDS["graph"].split(data, test=0.2, seed=0)
    assert [len(part) for part in parts.parts.values()] == [40, 8, 8, 16]
    assert "part" not in data.node_frame
    assert opened(folder).assigned is not None  # known by its name and cells


def test_other_forms(tmp_path):
    networkx, sparse = pytest.importorskip("networkx"), pytest.importorskip("scipy.sparse")
    club = networkx.karate_club_graph()
    networkx.write_graphml(club, tmp_path / "club.graphml")
    networkx.write_gml(club, tmp_path / "club.gml")
    networkx.write_edgelist(club, tmp_path / "club.edgelist", data=False)
    sources = [club, tmp_path / "club.graphml", tmp_path / "club.gml", tmp_path / "club.edgelist"]
    sources.append(sparse.csr_array(networkx.to_scipy_sparse_array(club)))
    for source in sources:
        data = opened(source)
        assert data.kind == "graph"
        assert data.graph.nodes == 34
        assert data.pairs.shape[1] == 78
    assert opened(club, target="club").classes == ["Mr. Hi", "Officer"]
    many = [networkx.path_graph(4) for _ in range(12)]
    for number, graph in enumerate(many):
        graph.graph["label"] = "ab"[number % 2]
    assert opened(many).of == "graphs"


def test_graphs_of_torch_geometric():
    data_of = pytest.importorskip("torch_geometric.data").Data
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    masks = {f"{name}_mask": torch.arange(12) % 3 == k for k, name in enumerate(("train", "val", "test"))}
    one = opened(data_of(x=torch.randn(12, 3), edge_index=edges, y=torch.arange(12) // 3 % 2, **masks))
    assert one.assigned.tolist() == [0, 1, 3] * 4
    assert one.features.shape == (12, 3)
    assert one.pairs.shape[1] == 2
    many = [
        data_of(x=torch.randn(3, 2), edge_index=edges, y=torch.tensor([i % 2]), edge_attr=torch.randn(4, 1))
        for i in range(10)
    ]
    several = opened(many)
    assert (several.of, several.classes, several.graph.graphs) == ("graphs", ["0", "1"], 10)


# What is repaired, and what is refused


def test_what_is_left_out_is_said():
    edges = pd.DataFrame({"source": list("abcdefga"), "target": ["b", "c", "d", "e", "f", "g", "zz", "b"]})
    said = [finding.text for finding in opened(frames(edges=edges)).findings]
    assert "1 edge names a node that graph does not have, such as 'zz', and is left out." in said
    assert "1 edge repeats another one and counts once." in said
    assert words_of(lambda: opened(frames(edges=edges), strict=True)).startswith(
        "Strict mode stops here. 1 edge names a node"
    )


def test_nodes_without_a_target_are_predicted_only(tmp_path):
    folder = node_folder(tmp_path / "people")
    nodes = pd.read_csv(folder / "nodes.csv")
    nodes.loc[::4, "label"] = np.nan
    nodes.to_csv(folder / "nodes.csv", index=False)
    data = opened(folder)
    assert len(data) == 60
    assert "20 of 80 nodes have no 'label': they are not learned from, only predicted." in [
        f.text for f in data.findings
    ]
    assert len(fitted(folder, tmp_path / "run").predict()) == 80


def test_missing_cells_are_filled_and_said(tmp_path):
    folder = node_folder(tmp_path / "people")
    nodes = pd.read_csv(folder / "nodes.csv")
    nodes.loc[:2, "age"] = np.nan
    nodes.to_csv(folder / "nodes.csv", index=False)
    run = fitted(node_folder(tmp_path / "whole"), tmp_path / "run")
    run.predict(folder)
    assert [finding.text for finding in run.noticed if finding.repair] == [
        "3 cells of the nodes had no value and were filled in."
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"nodes": pd.DataFrame({"id": list("aba"), "label": list("xyx")})}, "The nodes of graph name 'a' twice, in rows 1 and 3. Ids are unique."),
        ({"nodes": pd.DataFrame({"id": ["a", None], "label": list("xy")})}, "Row 2 of the nodes of graph has no id."),
        ({"edges": pd.DataFrame({"source": ["a", None], "target": ["b", "c"]})}, "An edge of graph has no source (row 2 of the edges)."),
        ({"edges": pd.DataFrame({"source": ["a"]})}, "The edges of graph have one column, where an edge has two ends."),
        ({"nodes": pd.DataFrame({"id": [], "label": []})}, "graph has no nodes."),
        ({"nodes": None}, "graph has 7 edges: too few to learn which nodes are joined."),
        ({"edges": pd.DataFrame({"source": ["a"], "target": ["b"], "weight": [np.inf]})}, "A weight of an edge of graph is missing or infinite: fill it in, or drop the column."),
        ({"graphs": pd.DataFrame({"id": ["g"], "label": ["x"]})}, "The nodes of graph need a column graph that says which graph each belongs to."),
    ],
)  # fmt: skip
def test_tables_that_cannot_be(changes, words):
    assert words_of(lambda: opened(frames(**changes))) == words


def test_other_faults(tmp_path):
    assert (
        words_of(lambda: opened(frames(), target="labels"))
        == "The nodes of graph have no column 'labels'. Did you mean 'label'?"
    )
    assert (
        words_of(lambda: opened(frames(), of="graphs"))
        == "graph has no graphs.csv, which says what is known of each graph."
    )
    assert words_of(lambda: opened(frames(), split="parts")).startswith("There is no column 'parts' to split by.")
    nodes = pd.DataFrame({"id": list("ab"), "graph": ["g", "h"]})
    assert words_of(lambda: opened(frames(nodes=nodes, graphs=pd.DataFrame({"id": ["g"], "label": ["x"]})))) == (
        "Node 'b' belongs to graph 'h', which graphs.csv does not have."
    )
    graphs = pd.DataFrame({"id": ["g", "h"], "label": ["x", "y"]})
    edge = pd.DataFrame({"source": ["a"], "target": ["b"]})
    assert (
        words_of(lambda: opened(frames(nodes=nodes, graphs=graphs, edges=edge)))
        == "An edge joins 'a' and 'b', which are nodes of two graphs."
    )
    (tmp_path / "lonely.edgelist").write_text("a b\nc\n")
    assert (
        words_of(lambda: opened(tmp_path / "lonely.edgelist"))
        == f"{tmp_path / 'lonely.edgelist'}: line 2 names one node, where an edge has two."
    )
    (tmp_path / "wide.edgelist").write_text("a b x y\n")
    assert "line 1 has 4 cells. A list of edges has two ids in each line" in words_of(
        lambda: opened(tmp_path / "wide.edgelist")
    )
    (tmp_path / "bad.gml").write_text("graph [ node [")
    assert words_of(lambda: opened(tmp_path / "bad.gml")).startswith(f"{tmp_path / 'bad.gml'} cannot be read as gml: ")
    (tmp_path / "bomb.graphml").write_text('<!DOCTYPE x [<!ENTITY a "b">]><graphml/>')
    assert (
        words_of(lambda: opened(tmp_path / "bomb.graphml"))
        == f"{tmp_path / 'bomb.graphml'} declares entities of its own, so it is not read."
    )


def test_a_graph_without_edges(tmp_path):
    folder = node_folder(tmp_path / "people")
    (folder / "edges.csv").write_text("source,target\n")
    data = opened(folder)
    assert "people has no edges: each node is judged by itself." in [finding.text for finding in data.findings]
    assert fitted(folder, tmp_path / "run").metrics["accuracy"] >= 0


# Predictions


def test_the_stored_graph_answers_for_all_its_nodes(tmp_path):
    run = fitted(node_folder(tmp_path / "people"), tmp_path / "run")
    table = wonderland.load(run.folder).predict()
    assert table["node"].tolist() == [f"n{i}" for i in range(80)]
    again = run.predict(tmp_path / "people")
    np.testing.assert_allclose(again["probability"], table["probability"], rtol=1e-5)


def test_new_nodes_are_joined_to_the_stored_graph(tmp_path):
    folder = node_folder(tmp_path / "people")
    run = fitted(folder, tmp_path / "run")
    new = tmp_path / "new"
    new.mkdir()
    pd.DataFrame({"id": ["new"], "age": [0.5], "town": ["north"]}).to_csv(new / "nodes.csv", index=False)
    pd.DataFrame({"source": ["new", "new"], "target": ["n0", "n1"]}).to_csv(new / "edges.csv", index=False)
    table = run.predict(new)
    assert table["node"].tolist() == ["new"]
    # The same as if the node had been in the graph from the start.
    nodes, edges = pd.read_csv(folder / "nodes.csv"), pd.read_csv(folder / "edges.csv")
    whole = Tables(
        pd.concat([nodes, pd.read_csv(new / "nodes.csv")]), pd.concat([edges, pd.read_csv(new / "edges.csv")])
    )
    everyone = run.predict(whole)
    assert float(everyone["probability"].iloc[-1]) == pytest.approx(float(table["probability"].iloc[0]), abs=1e-5)


def test_pairs_of_stored_nodes(tmp_path):
    run = fitted(link_folder(tmp_path / "friends"), tmp_path / "run")
    asked = tmp_path / "asked.edgelist"
    asked.write_text("0 1\n0 40\n")
    table = run.predict(asked)
    assert table[["source", "target"]].to_numpy().tolist() == [["0", "1"], ["0", "40"]]
    asked.write_text("0 nobody\n")
    assert (
        words_of(lambda: run.predict(asked))
        == "The graph of this run has no node 'nobody': a pair is asked of nodes that were there."
    )


def test_new_graphs(tmp_path):
    run = fitted(graph_folder(tmp_path / "molecules"), tmp_path / "run")
    assert len(run.predict(graph_folder(tmp_path / "more", seed=3, count=7))) == 7
    assert (
        words_of(run.predict)
        == "This run keeps no graph, so there is nothing to predict without new data: name a folder or a file."
    )


def test_what_a_model_does_not_know(tmp_path):
    run = fitted(node_folder(tmp_path / "people"), tmp_path / "run")
    other = node_folder(tmp_path / "other")
    nodes = pd.read_csv(other / "nodes.csv")
    nodes.assign(label=nodes["label"].replace("red", "green")).to_csv(other / "nodes.csv", index=False)
    assert words_of(lambda: run.evaluate(other)) == "other has the class 'green', which this model does not know."
    nodes.drop(columns="label").to_csv(other / "nodes.csv", index=False)
    assert words_of(lambda: run.evaluate(other)) == "other has no column 'label' to compare with."
    nodes.drop(columns="age").to_csv(other / "nodes.csv", index=False)
    assert words_of(lambda: run.predict(other)) == "The nodes lack column 'age', which this model was trained with."


# Leakage


def test_held_out_links_are_no_messages(tmp_path):
    data = opened(link_folder(tmp_path / "friends"))
    kind = KINDS["graph"]
    parts = kind.split(data, test=0.2, seed=0)
    encoder = kind.encoder(data, parts)
    examples = encoder.examples(data)
    there = {tuple(sorted(pair)) for pair in examples.graph.edges.t().tolist()}
    for name in ("validation", "calibration", "test"):
        held = {tuple(sorted(pair)) for pair in data.rows[parts.parts[name]].tolist()}
        assert not held & there, name
    train = data.rows[parts.train][data.y[parts.train] == 1]
    assert {tuple(sorted(pair)) for pair in train.tolist()} == there
    assert messages(data, parts).sum() == examples.graph.edges.shape[1]
    batch = examples.shuffled(parts.train, size=10, seed=0).batch(0, 0)
    asked = {tuple(sorted(pair)) for pair in batch["x"].rows.tolist()}
    assert not asked & {tuple(sorted(pair)) for pair in batch["x"].graph.edges.t().tolist()}


def test_neither_labels_nor_columns_of_the_test_part_reach_the_encoder(tmp_path):
    folder = node_folder(tmp_path / "people")
    kind, data = KINDS["graph"], opened(folder)
    parts = kind.split(data, test=0.2, seed=0)
    before = kind.encoder(data, parts).to_json()
    data.node_frame.loc[data.rows[parts.test], "age"] = 1e6
    assert kind.encoder(data, parts).to_json() == before
    assert "label" not in json.dumps(before["nodes"])


def test_features_of_pairs_do_not_tell_the_pair_itself():
    graph = Graph.undirected([(0, 1), (1, 2), (0, 2), (2, 3)])
    without = Graph.undirected([(1, 2), (0, 2), (2, 3)])
    pair = np.array([[0, 1]])
    torch.testing.assert_close(pair_features(graph, pair), pair_features(without, pair))
    made = pair_features(graph, pair)[0]
    assert made[0] == pytest.approx(np.log(2))  # one common neighbour
    assert made[2] == pytest.approx(1 / 3)


# Smaller pieces


def test_neighbours_that_are_alike(tmp_path):
    data = opened(node_folder(tmp_path / "people"))
    parts = KINDS["graph"].split(data, test=0.2, seed=0)
    assert alike(data, parts)
    data.y = np.random.default_rng(0).integers(0, 2, len(data))
    assert not alike(data, parts)


def test_subtrees_tell_a_path_from_a_star():
    path, star = Graph.undirected([(0, 1), (1, 2), (2, 3)]), Graph.undirected([(0, 1), (0, 2), (0, 3)])
    whole = Graph.batch([path, star, path])
    rows = subtree_counts(whole, torch.ones(12, 1)).dense()
    torch.testing.assert_close(rows[0], rows[2])
    assert not torch.allclose(rows[0], rows[1])


def test_a_drawing_keeps_to_the_square():
    graph = Graph.undirected([(0, 1), (1, 2)], 5)
    place = force_layout(graph)
    assert place.shape == (5, 2)
    assert place.min() == 0
    assert place.max() == 1
    assert len(chosen(Graph.undirected(torch.stack([torch.zeros(400).long(), torch.arange(1, 401)])))) == 220


def test_a_model_by_name_and_a_module_of_ones_own(tmp_path):
    folder = node_folder(tmp_path / "people")
    assert fitted(folder, tmp_path / "named", model="NodeNet(layer='gat', heads=2)").metrics

    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 2)

        def forward(self, given):
            return self.layer(given.x)[given.rows]

    assert fitted(folder, tmp_path / "own", model=Own()).metrics


def test_the_report_shows_the_graph(tmp_path):
    run = fitted(node_folder(tmp_path / "people"), tmp_path / "run")
    page = (run.folder / "report.html").read_text()
    assert 'id="network"' in page
    for words in ("label propagation", "MLP of the node", "this model", "Neighbours", "<title>The graph</title>"):
        assert words in page
    assert issubclass(KINDS["graph"].Options, KindOptions)


def test_a_table_of_edges_is_a_graph(tmp_path):
    ring = np.arange(40)
    pd.DataFrame({"Source": ring, "Target": (ring + 1) % 40}).to_csv(tmp_path / "edges.csv", index=False)
    opened = wonderland.kinds.open(tmp_path / "edges.csv", kind="graph")
    assert (opened.kind, opened.task) == ("graph", "binary")
