"""Graphs: several small networks side by side, weighted by what they reach on held-out examples."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import Spec, WonderlandError
from wonderland.core.memory import available_bytes
from wonderland.core.recipe import Ensemble, Recipe
from wonderland.data.source import Glimpse
from wonderland.kinds.graph.baselines import graph_baselines, link_baselines, node_baselines
from wonderland.kinds.graph.citation_files import citation_files
from wonderland.kinds.graph.drawing import drawing
from wonderland.kinds.graph.encoder import GraphEncoder
from wonderland.kinds.graph.forms import is_graph
from wonderland.kinds.graph.graphs import Graphs
from wonderland.kinds.graph.insight import inside
from wonderland.kinds.graph.links import PAIR_FEATURES
from wonderland.kinds.graph.molecules import smiles_column
from wonderland.kinds.graph.node_link import looks_like_node_link
from wonderland.kinds.graph.options import Options as GraphOptions
from wonderland.kinds.graph.reading import FILES, is_table, read_tables
from wonderland.kinds.graph.tables import table_of
from wonderland.kinds.graph.tu_folder import tu_name
from wonderland.kinds.kind import Claim, Kind, task_spec
from wonderland.models.graph_net import GraphNet, LinkNet, NodeNet, WholeGraphNet
from wonderland.models.mpnn import MPNN
from wonderland.optim import Adam
from wonderland.train.learner import GradientDescent

OF_TABLES = (
    "test",
    "column",
    "time",
    "keep",
    "drop",
    "blend",
    "task",
)  # options with which a table of molecules is read as a table
LARGE = 300_000  # edges, from where fewer networks learn
LINK_BYTES = 2600  # what an edge takes at most where links are learned: pairs, messages, answers and simple methods


@dataclass(frozen=True)
class Choice:
    """Networks and numbers of a recipe; `decay` is what each network sees."""

    nets: list[Spec]
    variants: int
    steps: int
    batch: int
    lr: float
    decay: float
    every: int


def alike(dataset: Graphs, parts: Any) -> bool:
    """Whether neighbours are alike: among training nodes, edges join equal classes more often than chance would.

    With fewer than ten such edges it is taken for granted. Numbers are compared by the correlation over edges.
    """
    assert dataset.y is not None
    y = dataset.y[parts.train]
    place = np.full(len(dataset.ids), -1, np.int64)
    place[dataset.rows[parts.train]] = np.arange(len(y))
    source, target = place[dataset.graph.edges.numpy()]
    kept = (source >= 0) & (target >= 0) & (source != target)
    if kept.sum() < 20:  # both directions
        return True
    a, b = y[source[kept]], y[target[kept]]
    if dataset.classes is None:
        return bool(a.std() > 0 and np.corrcoef(a, b)[0, 1] > 0.3)
    chance = float((np.bincount(y) / len(y) @ np.bincount(y)) / len(y))
    return float((a == b).mean()) > chance + 0.3 * (1 - chance)


class GraphKind(Kind):
    """Nodes and edges, in a folder of tables, a file, or memory."""

    name = "graph"
    Options = GraphOptions
    models = ("models.GraphNet",)
    typical = {"features": 32, "outputs": 4}  # noqa: RUF012

    def claims(self, glimpse: Glimpse, asked: Mapping[str, Any]) -> Claim | None:
        if glimpse.path is None:
            why = "" if isinstance(glimpse.source, str) else is_graph(glimpse.source)
            return Claim(0.98, why) if why else self._molecules(glimpse, asked)
        if glimpse.path.is_dir():
            if table_of(glimpse.path, "edges"):
                return Claim(0.97, "it is a folder with a table of edges")
            if citation_files(glimpse.path):
                return Claim(0.97, "it holds a citation graph as NAME.content and NAME.cites")
            return (
                Claim(0.97, "it holds a set of graphs in files of the TU collection") if tu_name(glimpse.path) else None
            )
        ending = next((each for each in FILES if glimpse.path.name.lower().endswith(each)), None)
        if ending is not None:
            return Claim(0.97, f"it ends in {ending}")
        if not is_table(glimpse.path):
            return None
        if glimpse.suffix == ".json" and looks_like_node_link(glimpse.samples):
            return Claim(0.97, "it holds a list of nodes and a list of links")
        return self._molecules(glimpse, asked)

    def _molecules(self, glimpse: Glimpse, asked: Mapping[str, Any]) -> Claim | None:
        """A table with a column of molecules, where nothing is asked that only tables have."""
        if any(asked.get(name) is not None and asked[name] is not False for name in OF_TABLES) or (
            glimpse.path is not None and not self._names_smiles(glimpse, asked)
        ):
            return None
        frame = glimpse.frame
        if frame is None:
            return None
        column = asked.get("smiles") or smiles_column(frame)
        return (
            None
            if column is None or column == asked.get("target")
            else Claim(0.985, f"its column {str(column)!r} holds molecules")
        )

    @staticmethod
    def _names_smiles(glimpse: Glimpse, asked: Mapping[str, Any]) -> bool:
        """Whether a file may have a column of molecules: texts show it at their start, and are not read for it otherwise."""
        binary = glimpse.suffix not in (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson")
        return bool(asked.get("smiles")) or binary or b"smiles" in glimpse.samples[0].lower()

    def open(self, glimpse: Glimpse, options: GraphOptions, test: Glimpse | None = None) -> Graphs:
        self.refuse_test(test, "a graph is split by a column of its tables (--split), or by itself")
        source = glimpse.path if glimpse.path is not None else glimpse.source
        if glimpse.path is None and glimpse.frame is not None and not is_graph(source):
            source = glimpse.frame
        return Graphs(read_tables(source, options.smiles), options)

    def encoder(self, dataset: Graphs, parts: Any) -> GraphEncoder:
        return GraphEncoder.fit(dataset, parts)

    def read_encoder(self, saved: Any, tensors: dict[str, Tensor]) -> GraphEncoder:
        return GraphEncoder.from_json(saved, tensors)

    def recipe(self, dataset: Graphs, parts: Any, encoder: GraphEncoder, task: Any) -> Recipe:
        choose = {"nodes": self._nodes, "links": self._links, "graphs": self._graphs}[dataset.of]
        choice = choose(dataset, encoder, parts)
        count = len(choice.nets)
        return Recipe(
            model=GraphNet.spec(features=encoder.features, outputs=task.outputs, nets=choice.nets),
            task=task_spec(task),
            learner=GradientDescent.spec(),
            # The loss is the mean over networks, so that each sees its decay as many times stronger.
            optimizer=Adam.spec(weight_decay=choice.decay / count, betas=[0.9, 0.999]),
            schedule=Spec("optim.constant", {}),
            steps=choice.steps,
            batch_size=choice.batch,
            lr=choice.lr,
            clip=None,
            evaluate_every=choice.every,
            patience=30,
            ensemble=Ensemble(members=count, variants=choice.variants),
        )

    def _nodes(self, dataset: Graphs, encoder: GraphEncoder, parts: Any) -> Choice:
        if encoder.batches != "whole":
            return self._sampled_nodes(encoder, parts)
        rows, large = len(parts.train), dataset.graph.edges.shape[1] > LARGE
        few = rows <= 2000
        dim, drop, edge = (64, 0.6, encoder.edges.width) if few else (128, 0.4, encoder.edges.width)
        shape = {"dim": dim, "dropout": drop}
        propagated, plain = NodeNet.spec(layer="appnp", **shape), NodeNet.spec(layer="gcn", **shape)
        attention = NodeNet.spec(layer="gat", dim=64, heads=8, dropout=drop, attention_dropout=drop, edge_dim=edge)
        # Neighbours that are alike are averaged over; where they are not, a node is kept apart from them, and the weights of the
        # networks are found on held-out nodes.
        if alike(dataset, parts):
            nets = [propagated, plain, *([] if large else [attention])]
        else:
            apart = NodeNet.spec(layer="sage", residual=True, **shape)
            nets = [apart, NodeNet.spec(layer="mlp", **shape), plain, *([] if large else [attention])]
        return Choice(
            nets, 1 if alike(dataset, parts) else len(nets), 200 if large else 400, rows, 0.01, 1e-3 if few else 1e-5, 5
        )

    def _sampled_nodes(self, encoder: GraphEncoder, parts: Any) -> Choice:
        """Two layers, as deep as neighbours are sampled; every training node about twenty times."""
        rows = len(parts.train)
        batch = max(1, min(1024, rows // 4))
        shape = {"dim": 128, "dropout": 0.3}
        nets = [NodeNet.spec(layer="sage", **shape), NodeNet.spec(layer="gcn", **shape)]
        steps = min(max(200, 20 * (rows // batch)), 4000)
        return Choice(nets, 2, steps, batch, 0.003, 1e-5, max(5, steps // 20))

    def _links(self, dataset: Graphs, encoder: GraphEncoder, parts: Any) -> Choice:
        edges, free = dataset.pairs.shape[1], available_bytes()
        if edges * LINK_BYTES > free:
            raise WonderlandError(
                f"Learning which nodes of {dataset.name} are joined takes up to {edges * LINK_BYTES / 2**30:.1f} GiB of memory for "
                f"{edges:,} edges, and {free / 2**30:.1f} GiB are free: give a part of the edges, or a column of the nodes to learn."
            )
        shared = {"directed": dataset.directed, "pair_dim": PAIR_FEATURES}
        nets = [LinkNet.spec(layer="gcn", dim=64, **shared), LinkNet.spec(layer="sage", dim=64, **shared)]
        if encoder.batches == "neighbours":
            return Choice(nets, 2, 300, max(16, min(512, len(parts.train) // 4)), 0.005, 1e-5, 20)
        return Choice(nets, 2, 300, max(16, min(4096, len(parts.train) // 4)), 0.005, 1e-5, 5)

    def _graphs(self, dataset: Graphs, encoder: GraphEncoder, parts: Any) -> Choice:
        edge, rows = encoder.edges.width, len(parts.train)
        nets = [
            WholeGraphNet.spec(layer="gin", dim=32, depth=4, edge_dim=edge, readout=["sum"]),
            WholeGraphNet.spec(
                layer="gin", dim=32, depth=3, edge_dim=edge, readout=["mean", "max"], virtual=True, residual=True
            ),
            WholeGraphNet.spec(layer="mlp", dim=32, depth=1, readout=["sum", "mean"]),
        ]
        if edge:
            nets.append(MPNN.spec(dim=64, rounds=3, edge_dim=edge, dropout=0.1))
        batch = next(size for least, size in ((4000, 128), (600, 64), (0, 32)) if rows >= least)
        epoch = max(1, rows // batch)
        return Choice(nets, len(nets), min(epoch * 120, 6000), batch, 0.01, 1e-5, max(2, epoch))

    def facts(self, run: Any, plan: Any) -> dict[str, Any]:
        """The graph drawn, its degrees, baselines, and how alike nodes become from layer to layer."""
        dataset, examples, parts = plan.dataset, plan.examples, plan.parts
        count = None if plan.task.classes is None else len(plan.task.classes)
        if dataset.of == "links":
            beside = link_baselines(examples, parts)
        else:
            beside = (node_baselines if dataset.of == "nodes" else graph_baselines)(examples, parts, count)
        degree = torch.bincount(examples.graph.edges[1], minlength=examples.graph.nodes).numpy()
        measure = "accuracy" if count is not None else "rmse"
        model = {"name": "this model", "measure": measure, "value": run.metrics[measure]}
        looked = inside(run, plan)
        shares = looked.pop("shares", None)
        facts = {
            **looked,
            "noun": dataset.noun,
            "columns_title": "The graph in numbers",
            "baselines": [model, *beside],
            "degrees": degrees(degree),
        }
        if dataset.of != "graphs":
            facts["drawing"] = drawing(run, plan, shares)
        return facts


def degrees(degree: np.ndarray) -> dict[str, int]:
    """How many nodes have how many neighbours, in steps that double."""
    counts = {"0": int((degree == 0).sum()), "1": int((degree == 1).sum())}
    low = 2
    while low <= max(2, int(degree.max(initial=0))):
        high = low * 2 - 1
        counts[f"{low} to {high}"] = int(((degree >= low) & (degree <= high)).sum())
        low *= 2
    return counts


KIND = GraphKind()
