"""Molecules and sets in the form of the TU collection: what becomes of them, what is left out, and what is refused."""

import importlib

import numpy as np
import pandas as pd
import pytest

import wonderland
from wonderland.core import WonderlandError
from wonderland.kinds import KINDS
from wonderland.kinds.graph.molecules import counted_atoms

CARBONS = ["C" * n + end for n in range(1, 13) for end in ("", "O", "N", "(=O)O")]


def table(**more) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "mass": [14 * len(s) % 11 for s in CARBONS],
            "smiles": CARBONS,
            "energy": [0.5 * len(s) + ("O" in s) for s in CARBONS],
            **more,
        }
    )


def words_of(make):
    with pytest.raises(WonderlandError) as error:
        make()
    return str(error.value)


def test_a_table_of_molecules_is_a_set_of_graphs(tmp_path):
    pytest.importorskip("rdkit")
    table().to_csv(tmp_path / "energies.csv", index=False)
    data = wonderland.kinds.open(tmp_path / "energies.csv", target="energy")
    assert (data.kind, data.of, len(data), data.task) == ("graph", "graphs", len(CARBONS), "regression")
    assert data.graph_ids[3] == "C(=O)O"
    assert data.graph.sizes[:4].tolist() == [1, 2, 2, 3]
    assert list(data.edge_frame) == ["order", "conjugated", "in a ring"]
    assert data.groups is None
    atoms, elements = counted_atoms(data.tables)
    assert (elements, atoms[3].tolist()) == (["C", "N", "O"], [1.0, 0.0, 2.0])
    run = wonderland.fit(tmp_path / "energies.csv", target="energy", out=tmp_path / "run", steps=4, threads=1)
    made = wonderland.load(run.folder).predict(pd.DataFrame({"smiles": ["CCO", "c1ccccc1", "no molecule"]}))
    assert made["graph"].tolist() == ["CCO", "c1ccccc1"]


def test_rows_of_one_molecule_stay_together_and_odd_cells_are_left_out():
    pytest.importorskip("rdkit")
    frame = table()
    frame.loc[0, "smiles"], frame.loc[1, "smiles"], frame.loc[5, "smiles"] = "OCC", None, "C1CC"
    data = wonderland.kinds.open(frame, target="energy")
    same = [i for i, name in enumerate(data.graph_ids) if name in ("OCC", "CCO")]
    assert data.groups[same[0]] == data.groups[same[1]] if len(same) == 2 else data.groups is None
    said = [finding.text for finding in data.findings]
    assert "2 rows have a cell of 'smiles' that is no molecule, such as '' in row 2, and are left out." in said
    parts = KINDS["graph"].split(
        wonderland.kinds.open(pd.concat([table(), table()]), target="energy"), test=0.2, seed=0
    )
    doubled = [set((rows % len(CARBONS)).tolist()) for rows in parts.parts.values()]
    assert all(not a & b for i, a in enumerate(doubled) for b in doubled[:i])


def test_a_table_asked_for_as_a_table_stays_one(monkeypatch):
    frame = table()
    assert wonderland.kinds.open(frame, target="energy", kind="table").kind == "table"
    assert wonderland.kinds.open(frame, target="energy", drop=["smiles"]).kind == "table"
    monkeypatch.setattr(importlib, "import_module", _without("rdkit.Chem", importlib.import_module))
    assert words_of(lambda: wonderland.kinds.open(frame, target="energy")) == (
        "rdkit is needed to read the molecules of column 'smiles' (or read it as a table: --kind table): "
        "pip install 'wonderland[molecules]'."
    )


def _without(name, load):
    def blocked(module, *rest):
        if module == name:
            raise ImportError(name)
        return load(module, *rest)

    return blocked


def test_columns_that_hold_no_molecules():
    pytest.importorskip("rdkit")
    frame = pd.DataFrame({"smiles": ["?", ""], "energy": [1.0, 2.0]})
    assert words_of(lambda: wonderland.kinds.open(frame, target="energy")) == (
        "Column 'smiles' of table holds no molecule that can be read as SMILES."
    )
    assert words_of(lambda: wonderland.kinds.open(table(), kind="graph", target="energy", smiles="smile")) == (
        "table has no column 'smile' of molecules. Did you mean 'smiles'?"
    )


def tu(folder, **files):
    folder.mkdir(exist_ok=True)
    rows = {"A": "1, 2\n2, 1\n3, 4\n4, 3\n", "graph_indicator": "1\n1\n2\n2\n", "graph_labels": "1\n-1\n", "node_labels": "0\n1\n0\n0\n",
            "node_attributes": "0.5, 1\n0.25, 2\n1, 3\n2, 4\n", "edge_labels": "0\n0\n1\n1\n"} | files  # fmt: skip
    for name, text in rows.items():
        if text is not None:
            (folder / f"SET_{name}.txt").write_text(text)
    return folder


def test_a_folder_of_the_tu_collection(tmp_path):
    data = wonderland.kinds.open(tu(tmp_path / "set"))
    assert (data.name, data.of, data.classes, data.graph.graphs, data.pairs.shape[1]) == (
        "SET",
        "graphs",
        ["-1", "1"],
        2,
        2,
    )
    assert list(data.node_frame) == ["label 1", "attribute 1", "attribute 2"]
    assert data.node_frame["label 1"].tolist() == ["node label 0", "node label 1", "node label 0", "node label 0"]
    np.testing.assert_allclose(data.node_frame["attribute 1"], [0.5, 0.25, 1, 2])


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"A": "1, 9\n"}, "SET_A.txt names node 9, but SET_graph_indicator.txt has 4 nodes, numbered from 1."),
        ({"A": "1, 2, 3\n"}, "SET_A.txt has 3 numbers in a line, where an edge has two ends."),
        ({"A": "1, b\n"}, "SET_A.txt holds something other than numbers set apart by commas."),
        ({"node_labels": "0\n"}, "SET_node_labels.txt has 1 lines for 4 nodes."),
        ({"graph_indicator": "1\nnan\n2\n2\n"}, "SET_graph_indicator.txt: line 2 has no number where one belongs."),
    ],
)
def test_faults_of_such_a_folder(tmp_path, files, words):
    assert words_of(lambda: wonderland.kinds.open(tu(tmp_path / "set", **files))) == words
