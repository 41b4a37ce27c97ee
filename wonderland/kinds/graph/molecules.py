"""Molecules: a table with a column of SMILES becomes a set of graphs, atoms as nodes and bonds as edges."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError, nearest, need
from wonderland.data.dataset import Finding, counted
from wonderland.kinds.graph.tables import Tables

NAMES = ("smiles", "canonical_smiles", "isomeric_smiles")
SAME = "same molecule"  # the column of canonical SMILES: rows of one molecule stay in one part
LONGEST = 5000  # letters of one SMILES


def smiles_column(frame: Any) -> str | None:
    """The column that is called SMILES."""
    return next((column for column in frame.columns if str(column).strip().casefold() in NAMES), None)


def read_molecules(frame: Any, column: str | None, name: str, origin: dict[str, Any]) -> Tables:
    """The graphs of the molecules of a table; the other columns are those of the graphs.

    Atoms are described by element, charge, neighbours, hydrogens, hybridisation, rings and aromaticity, bonds by order, conjugation
    and rings. Rows that cannot be read are left out and counted.
    """
    chosen = smiles_column(frame) if column is None else column
    if chosen is None or chosen not in frame.columns:
        known = [str(each) for each in frame.columns]
        raise WonderlandError(f"{name} has no column {chosen or 'smiles'!r} of molecules.{nearest(str(chosen), known)}")
    chem = need(
        "rdkit.Chem",
        extra="molecules",
        why=f"to read the molecules of column {str(chosen)!r} (or read it as a table: --kind table)",
    )
    log = need("rdkit.RDLogger", extra="molecules", why="to read molecules")
    log.DisableLog("rdApp.*")
    texts = ["" if cell is None or cell is pd.NA or cell != cell else str(cell).strip() for cell in frame[chosen]]
    molecules = [_parsed(chem, text) for text in texts]
    kept = [row for row, molecule in enumerate(molecules) if molecule is not None]
    findings = _left_out(texts, molecules, str(chosen))
    if not kept:
        raise WonderlandError(f"Column {str(chosen)!r} of {name} holds no molecule that can be read as SMILES.")
    ids = _unique([texts[row] for row in kept], kept)
    atoms: dict[str, list[Any]] = {}
    bonds: dict[str, list[Any]] = {"source": [], "target": []}
    for place, row in enumerate(kept):
        _add(molecules[row], place, ids[place], atoms, bonds)
    graphs = frame.iloc[kept].drop(columns=[chosen]).reset_index(drop=True)
    graphs = graphs.drop(columns=[each for each in graphs if str(each).strip().casefold() in ("id", "graph")])
    graphs.insert(0, "id", ids)
    graphs[SAME] = [chem.MolToSmiles(molecules[row]) for row in kept]
    several = graphs[SAME].duplicated().any()
    return Tables(
        pd.DataFrame(atoms),
        pd.DataFrame(bonds),
        graphs,
        name,
        origin,
        directed=False,
        findings=findings,
        smiles=str(chosen),
        group=SAME if several else None,
    )


def _parsed(chem: Any, text: str) -> Any:
    """The molecule, or None for a text that is none."""
    molecule = chem.MolFromSmiles(text) if text and len(text) <= LONGEST else None
    return molecule if molecule is not None and molecule.GetNumAtoms() else None


def _left_out(texts: Sequence[str], molecules: Sequence[Any], column: str) -> list[Finding]:
    lost = [row for row, molecule in enumerate(molecules) if molecule is None]
    if not lost:
        return []
    rows, verb = counted(len(lost), "row has", "rows have"), "is" if len(lost) == 1 else "are"
    text = f"{rows} a cell of {column!r} that is no molecule, such as {texts[lost[0]][:40]!r} in row {lost[0] + 1}, and {verb} left out."
    return [Finding("molecules", column, len(lost), text)]


def _unique(texts: Sequence[str], rows: Sequence[int]) -> list[str]:
    """SMILES as names of graphs; those that come again carry the number of their row."""
    seen: set[str] = set()
    names = []
    for text, row in zip(texts, rows, strict=True):
        names.append(f"{text} (row {row + 1})" if text in seen else text)
        seen.add(text)
    return names


def _add(molecule: Any, place: int, name: str, atoms: dict[str, list[Any]], bonds: dict[str, list[Any]]) -> None:
    """The atoms and bonds of one molecule, appended to the columns."""
    for atom in molecule.GetAtoms():
        row = {
            "id": f"{place}/{atom.GetIdx()}",
            "graph": name,
            "element": atom.GetSymbol(),
            "neighbours": f"{atom.GetDegree()} neighbours",
            "hydrogens": f"{atom.GetTotalNumHs()} hydrogens",
            "charge": float(atom.GetFormalCharge()),
            "hybridisation": str(atom.GetHybridization()),
            "aromatic": float(atom.GetIsAromatic()),
            "in a ring": float(atom.IsInRing()),
            "mass": atom.GetMass(),
        }
        for key, value in row.items():
            atoms.setdefault(key, []).append(value)
    for bond in molecule.GetBonds():
        row = {
            "source": f"{place}/{bond.GetBeginAtomIdx()}",
            "target": f"{place}/{bond.GetEndAtomIdx()}",
            "order": str(bond.GetBondType()),
            "conjugated": float(bond.GetIsConjugated()),
            "in a ring": float(bond.IsInRing()),
        }
        for key, value in row.items():
            bonds.setdefault(key, []).append(value)


def counted_atoms(tables: Tables) -> tuple[np.ndarray, list[str]]:
    """How many atoms of each element each molecule has (graphs, elements), and the elements."""
    table = pd.crosstab(tables.nodes["graph"], tables.nodes["element"])
    table = table.reindex(tables.graphs["id"], fill_value=0)
    return table.to_numpy(np.float64), [str(name) for name in table.columns]
