"""Graphs of every form go through what every kind of data does."""

from pathlib import Path

from tests.kinds.battery import Battery, data, home, run  # noqa: F401
from tests.kinds.graph.graphs import graph_folder, link_folder, node_folder


class TestNodes(Battery):
    kind = "graph"

    def make(self, folder: Path):
        return node_folder(folder / "people"), node_folder(folder / "others", seed=1)


class TestNumbersOfNodes(Battery):
    kind = "graph"

    def make(self, folder: Path):
        return node_folder(folder / "people", number=True), node_folder(folder / "others", seed=1, number=True)


class TestLinks(Battery):
    kind = "graph"

    def make(self, folder: Path):
        return link_folder(folder / "friends"), link_folder(folder / "friends")


class TestGraphs(Battery):
    kind = "graph"

    def make(self, folder: Path):
        return graph_folder(folder / "molecules"), graph_folder(folder / "more", seed=1, count=20)
