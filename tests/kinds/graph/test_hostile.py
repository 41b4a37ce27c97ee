"""Odd and hostile graphs: each gives the right answer or a sentence."""

import numpy as np
import pandas as pd
import pytest
import torch

import wonderland
from tests.kinds.graph.graphs import node_folder
from wonderland.core import WonderlandError
from wonderland.core.graph import Graph
from wonderland.kinds.graph import edge_lists
from wonderland.kinds.graph import kind as graph_kind
from wonderland.kinds.graph.edge_lists import memory_needed
from wonderland.kinds.graph.tables import Tables


def opened(nodes=None, edges=None, **options):
    return wonderland.kinds.open(Tables(nodes, edges), **options)


def labelled(ids) -> pd.DataFrame:
    return pd.DataFrame(
        {"id": list(ids), "size": np.arange(len(ids)) % 5, "label": ["xy"[i % 2] for i in range(len(ids))]}
    )


def chain(ids) -> pd.DataFrame:
    return pd.DataFrame({"source": list(ids)[:-1], "target": list(ids)[1:]})


def said(data) -> list[str]:
    return [finding.text for finding in data.findings]


@pytest.mark.parametrize(
    "ids",
    [
        [-5, -1, 0, 3, 10**12, 7, 8, 9],
        ["-5", "a b", "", "ä", "x/y", "1e3", "0x1", "None"],
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
        ["1", "01", "001", "1.0", "+1", " 2", "3", "4"],
    ],
)
def test_ids_are_names_whatever_they_look_like(ids):
    data = opened(labelled(ids), chain(ids))
    assert data.graph.edges.shape[1] == 14
    assert len(set(data.ids)) == 8
    assert data.graph.components().max() == 0


def test_edges_that_name_nodes_beyond_the_table_are_left_out_and_said():
    edges = pd.DataFrame({"source": [0, 1, 2, 99, -1], "target": [1, 2, 3, 0, 5]})
    data = opened(labelled(range(8)), edges)
    assert "2 edges name nodes that graph does not have, such as '99', and are left out." in said(data)
    assert data.pairs.shape[1] == 3


def test_features_that_are_missing_or_infinite_are_filled_and_said(tmp_path):
    nodes = labelled(range(40)).astype({"size": float})
    nodes.loc[[3, 4], "size"] = np.nan
    run = wonderland.fit(Tables(nodes, chain(range(40))), out=tmp_path / "run", steps=4, threads=1)
    assert np.isfinite(run.predict()["probability"]).all()
    nodes.loc[5, "size"] = np.inf
    made = run.predict(Tables(nodes.drop(columns="label"), chain(range(40))))
    assert np.isfinite(made["probability"]).all()
    assert "3 cells of the nodes had no value and were filled in." in [finding.text for finding in run.noticed]


def test_features_in_arrays_may_have_gaps(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    x[2, 1] = np.nan
    tables = Tables(labelled(range(40)).drop(columns="size"), chain(range(40)), features=x)
    run = wonderland.fit(tables, out=tmp_path / "run", steps=4, threads=1)
    assert np.isfinite(run.predict()["probability"]).all()


def test_many_components_and_isolated_nodes(tmp_path):
    nodes = labelled(range(60))
    pairs = pd.DataFrame({"source": range(0, 40, 2), "target": range(1, 40, 2)})
    data = opened(nodes, pairs)
    summary = {row["what"]: row["value"] for row in data.summary()}
    assert (summary["connected components"], summary["isolated nodes"]) == ("40", "20")
    run = wonderland.fit(Tables(nodes, pairs), out=tmp_path / "run", steps=4, threads=1)
    assert len(run.predict()) == 60


def test_nodes_are_named_once_and_graphs_have_nodes(tmp_path):
    with pytest.raises(
        WonderlandError, match=r"^The nodes of graph name '1' twice, in rows 1 and 3\. Ids are unique\.$"
    ):
        opened(pd.DataFrame({"id": [1, 2, "1"], "label": list("xyx")}), chain([1, 2]))
    folder = tmp_path / "empty"
    folder.mkdir()
    (folder / "edges.csv").write_text("source,target\n")
    with pytest.raises(WonderlandError, match=r"^empty has no nodes\.$"):
        wonderland.kinds.open(folder)
    (folder / "edges.csv").write_text("")
    with pytest.raises(WonderlandError, match=r"edges\.csv is empty"):
        wonderland.kinds.open(folder)


def test_loops_alone_and_repeated_edges():
    loops = pd.DataFrame({"source": list("abab"), "target": list("abab")})
    data = opened(labelled("abcdefgh"), loops)
    assert data.graph.edges.shape[1] == 2
    assert "2 edges repeat another one and count once." in said(data)


def test_a_large_file_says_its_memory_before_it_is_read(tmp_path, monkeypatch, capsys):
    path = tmp_path / "large.edgelist"
    path.write_text("1 2\n" * 5000)
    assert memory_needed(path) == []
    monkeypatch.setattr(edge_lists, "LARGE_FILE", 1000)
    monkeypatch.setattr(edge_lists, "available_bytes", lambda: 8 << 30)
    monkeypatch.delenv("WONDERLAND_QUIET", raising=False)
    (finding,) = memory_needed(path)
    words = "large.edgelist holds about 5,000 edges: reading them takes up to 0.0 GiB of memory, and 8.0 GiB are free."
    assert finding.text == words
    assert capsys.readouterr().err == f"wonderland: {words}\n"


def test_links_of_more_edges_than_memory_are_refused_before_they_are_learned(tmp_path, monkeypatch):
    monkeypatch.setattr(graph_kind, "available_bytes", lambda: 100_000)
    with pytest.raises(WonderlandError) as told:
        wonderland.fit(Tables(None, chain(range(60))), out=tmp_path / "run", steps=1, threads=1)
    assert str(told.value) == (
        "Learning which nodes of graph are joined takes up to 0.0 GiB of memory for 59 edges, and 0.0 GiB are free: give a part of "
        "the edges, or a column of the nodes to learn."
    )


@pytest.mark.parametrize(
    "text", ["1 2\n3 4\n", "1,2\n3,4", "# edges\n1\t2\n\n3\t4 # last\n", "1;2;0.5\n3;4;1e-3\n", "% x\n1 , 2\n3 , 4\n"]
)
def test_lists_of_edges_in_any_hand(tmp_path, text):
    path = tmp_path / "some.edges"
    path.write_text(text)
    frame, _ = edge_lists.read_edge_list(path)
    assert frame[["source", "target"]].to_numpy().tolist() == [["1", "2"], ["3", "4"]]
    assert ("weight" in frame) == (";" in text)


def test_new_data_may_be_frames(tmp_path):
    folder = node_folder(tmp_path / "people")
    run = wonderland.fit(folder, out=tmp_path / "run", steps=4, threads=1)
    assert len(run.predict(pd.read_csv(folder / "nodes.csv").head(3).drop(columns="label"))) == 3


def test_a_graph_in_memory_is_a_source():
    graph = Graph.undirected([(i, i + 1) for i in range(20)], weight=torch.rand(20))
    data = wonderland.kinds.open(graph)
    assert (data.of, data.pairs.shape[1], data.directed) == ("links", 20, False)
    torch.testing.assert_close(data.graph.adjacency(), graph.adjacency())
