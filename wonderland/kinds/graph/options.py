"""Options of graphs."""

from dataclasses import dataclass

from wonderland.core.options import option
from wonderland.kinds.options import RowOptions

BATCHES = ("whole", "neighbours", "clusters")


@dataclass(frozen=True)
class Options(RowOptions):
    """Nodes and edges: a folder with nodes.csv and edges.csv (graphs.csv for many graphs), GraphML, GML, edge lists, or SMILES."""

    of: str | None = option(
        help="what is predicted (default: graphs if graphs.csv has a target, nodes if nodes.csv has one, else links)",
        choices=("nodes", "links", "graphs"),
    )
    directed: bool = option(False, help="edges go one way only (default: they count both ways)")
    group: str | None = option(
        help="nodes or graphs with the same value stay in one part of the split", metavar="COLUMN"
    )
    inductive: bool = option(
        False,
        help="held-out nodes and their edges are not in the graph that is learned from (default: they are, without their targets)",
    )
    batches: str | None = option(
        help="a step sees the whole graph, sampled neighbours of some nodes, or clusters (default: whole up to 3 million edges, then neighbours)",
        choices=BATCHES,
    )
    smiles: str | None = option(
        help="the column of a table that holds molecules (default: the one called smiles)", metavar="COLUMN"
    )
