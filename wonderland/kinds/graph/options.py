"""Options of graphs."""

from dataclasses import dataclass

from wonderland.core.options import option
from wonderland.kinds.options import RowOptions


@dataclass(frozen=True)
class Options(RowOptions):
    """Nodes and edges: a folder with nodes.csv and edges.csv (graphs.csv for many graphs), GraphML, GML or edge lists."""

    of: str | None = option(
        help="what is predicted (default: graphs if graphs.csv has a target, nodes if nodes.csv has one, else links)",
        choices=("nodes", "links", "graphs"),
    )
    directed: bool = option(False, help="edges go one way only (default: they count both ways)")
