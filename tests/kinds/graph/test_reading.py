"""Graphs in the forms of other programs: each is read as what it is."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
import torch

import wonderland
from wonderland.core import WonderlandError
from wonderland.kinds.graph.tables import Tables

RING = [(i, (i + 1) % 12) for i in range(12)]


def opened(source, **options):
    return wonderland.kinds.open(source, **options)


def ring(networkx, **cells):
    graph = networkx.Graph(RING)
    for name, values in cells.items():
        networkx.set_node_attributes(graph, dict(enumerate(values)), name)
    return graph


def words_of(call) -> str:
    with pytest.raises(WonderlandError) as told:
        call()
    return str(told.value)


def test_a_label_that_names_each_node_is_no_target():
    networkx = pytest.importorskip("networkx")
    data = opened(ring(networkx, label=[f"Person {i}" for i in range(12)]))
    assert (data.of, data.target) == ("links", None)
    assert "Column 'label' of the nodes holds another text for each of them, so it is a name and no target." in [
        finding.text for finding in data.findings
    ]
    assert opened(ring(networkx, y=list(range(12)))).task == "regression"


def test_gml_without_labels_or_with_repeated_edges(tmp_path):
    pytest.importorskip("networkx")
    nodes = "".join(f"node [ id {i} value {i % 2} ]\n" for i in range(12))
    edges = "".join(f"edge [ source {a} target {b} ]\n" for a, b in [*RING, RING[0]])
    (tmp_path / "ring.gml").write_text(f"graph [\n{nodes}{edges}]\n")
    data = opened(tmp_path / "ring.gml", target="value")
    assert (data.classes, data.pairs.shape[1]) == (["0", "1"], 12)
    labelled = nodes.replace(" value", ' label "ä" value')
    (tmp_path / "same.gml").write_text(f"graph [\n{labelled}{edges}]\n", encoding="utf-8")
    assert opened(tmp_path / "same.gml", target="value").ids[:2] == ["0", "1"]


def test_gexf_and_json_of_nodes_and_links(tmp_path):
    networkx = pytest.importorskip("networkx")
    graph = ring(networkx, side=["ab"[i % 2] for i in range(12)])
    networkx.write_gexf(graph, tmp_path / "ring.gexf")
    (tmp_path / "ring.json").write_text(json.dumps(networkx.node_link_data(graph, edges="edges")))
    rows = {"nodes": [{"data": {"id": i, "side": "ab"[i % 2]}} for i in range(12)]}
    rows["edges"] = [{"data": {"source": a, "target": b}} for a, b in RING]
    (tmp_path / "cytoscape.json").write_text(json.dumps({"elements": rows}))
    places = {"nodes": [{"name": f"n{i}", "side": "ab"[i % 2], "at": [1]} for i in range(12)]}
    places["links"] = [{"source": a, "target": b} for a, b in RING]
    (tmp_path / "d3.json").write_text(json.dumps(places))
    for name in ("ring.gexf", "ring.json", "cytoscape.json", "d3.json"):
        data = opened(tmp_path / name, target="side")
        assert (data.classes, data.pairs.shape[1]) == (["a", "b"], 12), name
    (tmp_path / "half.json").write_text('{"nodes": [{"id": 1}], "links": [{"source": 1}]}')
    assert words_of(lambda: opened(tmp_path / "half.json")) == (
        f"{tmp_path / 'half.json'}: a link has no source or no target."
    )


def test_citations_as_they_are_published(tmp_path):
    content = "".join(f"{100 + i}\t{i % 2}\t0\t1\tclass_{i % 2}\n" for i in range(12))
    (tmp_path / "papers.content").write_text(content)
    (tmp_path / "papers.cites").write_text("".join(f"{100 + a}\t{100 + b}\n" for a, b in RING))
    for source in (tmp_path, tmp_path / "papers.content", tmp_path / "papers.cites"):
        data = opened(source)
        assert (data.classes, data.features.shape, data.pairs.shape[1]) == (["class_0", "class_1"], (12, 3), 12)
    (tmp_path / "papers.content").write_text(content + "112\tx\t0\t1\tclass_0\n")
    assert words_of(lambda: opened(tmp_path)).endswith(
        "papers.content holds something other than numbers between the id and the class of a line."
    )


@pytest.mark.parametrize(
    ("lines", "weight"),
    [("{a} {b} {{}}", None), ("{a} {b} {{'weight': 2.5}}", 2.5), ("{a} {b} {{'kind': 'x', 'weight': 2}}", 2.0)],
)
def test_edges_as_networkx_writes_them(tmp_path, lines, weight):
    text = "".join(lines.format(a=a, b=b) + "\n" for a, b in RING)
    (tmp_path / "ring.edgelist").write_text(text)
    (tmp_path / "ring.txt").write_text(text)
    (tmp_path / "ring.edges.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("ring.edgelist", "ring.txt", "ring.edges.gz"):
        data = opened(tmp_path / name, kind="graph")
        assert data.pairs.shape[1] == 12
        assert (None if data.graph.weight is None else float(data.graph.weight[0])) == weight


def test_vectors_of_nodes_are_features():
    networkx = pytest.importorskip("networkx")
    graph = ring(networkx, y=[0, 1] * 6, x=list(np.eye(12)), extra=[{"a": 1}] * 12)
    data = opened(graph)
    assert (data.features.shape, list(data.node_frame)) == ((12, 12), ["extra"])


def test_more_of_torch_geometric():
    pyg = pytest.importorskip("torch_geometric.data")
    edges = torch.tensor(RING + [(b, a) for a, b in RING]).t()
    masks = {f"{name}_mask": (torch.arange(12) % 3 == k)[:, None].expand(12, 2) for k, name in enumerate(("train", "val", "test"))}  # fmt: skip
    data = opened(pyg.Data(edge_index=edges, num_nodes=12, y=torch.eye(2)[torch.arange(12) % 2], **masks))
    assert (data.classes, data.assigned.tolist()) == (["0", "1"], [0, 1, 3] * 4)
    assert "The masks hold 2 splits; the first is used." in [finding.text for finding in data.findings]
    several = torch.ones(12, 3)
    assert words_of(lambda: opened(pyg.Data(edge_index=edges, num_nodes=12, y=several))) == (
        "y holds 3 numbers for each node, and one is learned at a time: keep one column of y."
    )
    many = [pyg.Data(x=torch.randn(12, 2), edge_index=edges, y=torch.arange(12) % 2) for _ in range(3)]
    assert (opened(many).of, opened(many).graph.graphs) == ("nodes", 3)
    whole = [pyg.Data(x=torch.randn(12, 2), edge_index=edges, y=torch.tensor([i % 2])) for i in range(10)]
    whole[3] = pyg.Data(x=torch.zeros(0, 2), edge_index=edges[:, :0], y=torch.tensor([1]))
    assert opened(pyg.Batch.from_data_list(whole)).of == "graphs"
    assert words_of(lambda: opened(pyg.HeteroData())).startswith("Graphs with several types of nodes are not learned")


def test_tables_by_other_names_and_frames_of_edges(tmp_path):
    pd.DataFrame({"id": range(12), "label": list("ab") * 6}).to_csv(tmp_path / "vertices.csv", index=False)
    edges = pd.DataFrame(RING, columns=["source", "target"])
    edges.astype(float).to_csv(tmp_path / "links.csv", index=False)
    data = opened(tmp_path)
    assert (data.of, data.pairs.shape[1]) == ("nodes", 12)
    assert opened(edges, kind="graph").pairs.shape[1] == 12


def test_nodes_may_be_numbered_anew_in_each_graph():
    nodes = pd.DataFrame([(g, i) for g in "uv" for i in range(3)], columns=["graph", "id"])
    edges = pd.DataFrame([(g, i, (i + 1) % 3) for g in "uv" for i in range(3)], columns=["graph", "source", "target"])
    graphs = pd.DataFrame({"id": list("uv"), "label": list("ab")})
    for given in (nodes, None):
        tables = Tables(given, edges, graphs)
        assert sorted(tables.nodes["id"]) == ["u/0", "u/1", "u/2", "v/0", "v/1", "v/2"]
        assert list(tables.edges) == ["source", "target"]
        assert tables.edges["source"].astype(str).tolist() == ["u/0", "u/1", "u/2", "v/0", "v/1", "v/2"]
    assert words_of(lambda: Tables(None, edges.drop(columns="graph"), graphs)) == (
        "graph has graphs and no nodes.csv, which says which graph each node belongs to."
    )
