"""What happens inside a trained network of a graph: how alike nodes become layer by layer, and where attention goes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core.graph import Graph
from wonderland.core.pattern import SparseRows
from wonderland.nn.graph import GAT, GATv2

PAIRS = 4000  # pairs of nodes that are compared
MOST = 3_000_000  # edges, up to which a network is looked into
GRAPHS = 64  # of a set of graphs, so many test graphs are looked into
NAMES = {
    "gcn": "GCN",
    "gat": "GAT",
    "gatv2": "GATv2",
    "sage": "GraphSAGE",
    "gin": "GIN",
    "appnp": "APPNP",
    "mlp": "MLP",
}


def inside(run: Any, plan: Any) -> dict[str, Any]:
    """Facts of the networks of a run: `smoothing`, `attention`, and for the drawing the attention along edges."""
    nets, examples = getattr(run.model, "nets", None), plan.examples
    if nets is None or examples.graph.edges.shape[1] > MOST:
        return {}
    test = plan.parts.parts["test"]
    given = examples.given(np.asarray(test[:GRAPHS] if examples.of == "graphs" else test))
    titles = _titles(plan.recipe.model, len(nets))
    classes = _classes(plan.dataset, given.graph) if examples.of == "nodes" else None
    run.model.eval()
    smoothing, attention, shares = {}, [], None
    with torch.no_grad():
        for title, net in zip(titles, nets, strict=True):
            layers = _layers(net)
            if layers is None:
                continue
            with recorded(layers) as record:
                net(given)
            states = [given.x, *(output for _, output in record)]
            curve = [_alike(state, given.graph) for state in states]
            if len(curve) > 2:
                smoothing[title] = [round(each, 4) for each in curve]
            for number, (layer, (arguments, _)) in enumerate(zip(layers, record, strict=True), 1):
                if isinstance(layer, GAT | GATv2):
                    graph, share, _ = layer.shares(*arguments)
                    attention.append({"network": title, "layer": number, **_summary(graph, share.mean(1), classes)})
                    shares = (graph, share.mean(1))
    facts: dict[str, Any] = {"smoothing": smoothing} if smoothing else {}
    if attention and shares is not None:
        facts |= {
            "attention": attention,
            "strongest": _strongest(*shares, plan.dataset) if examples.of != "graphs" else [],
        }
        facts["shares"] = shares
    return facts


@contextmanager
def recorded(layers: list[nn.Module]) -> Iterator[list[tuple[tuple[Any, ...], Tensor]]]:
    """What each layer is given and gives, in the order of the calls."""
    record: list[tuple[tuple[Any, ...], Tensor]] = []

    def note(_: nn.Module, given: Any, output: Any) -> None:
        record.append((given, output))

    hooks = [layer.register_forward_hook(note) for layer in layers]
    try:
        yield record
    finally:
        for hook in hooks:
            hook.remove()


def _layers(net: nn.Module) -> list[nn.Module] | None:
    """The layers of a network, each called once; None for one that is made otherwise."""
    layers = getattr(net, "layers", None) or getattr(getattr(net, "stack", None), "layers", None)
    return (
        None
        if layers is None
        else [*layers, *([p] if isinstance(p := getattr(net, "propagate", None), nn.Module) else [])]
    )


def _titles(model: Any, count: int) -> list[str]:
    """Names of the networks, numbered where two have one name."""
    specs = (getattr(model, "arguments", None) or {}).get("nets") or [None] * count
    titles: list[str] = []
    for spec in specs:
        layer = getattr(spec, "arguments", {}).get("layer", "gcn") if spec is not None else "network"
        name = str(getattr(spec, "name", "")).removeprefix("models.")
        title = "MPNN" if name == "MPNN" else NAMES.get(layer, str(layer))
        titles.append(title if title not in titles else f"{title} {1 + sum(each.startswith(title) for each in titles)}")
    return titles


def _alike(state: Tensor | SparseRows, graph: Graph) -> float:
    """The mean cosine between two nodes of one graph, over pairs that are drawn at random."""
    draw = torch.Generator().manual_seed(0)
    first = torch.randint(0, graph.nodes, (PAIRS,), generator=draw)
    start, of = graph.sizes.cumsum(0) - graph.sizes, graph.node_graph[first]
    second = start[of] + (torch.rand(PAIRS, generator=draw) * graph.sizes[of]).long()
    first, second = first[first != second], second[first != second]
    if not len(first):
        return 1.0
    rows = [
        (state.rows(each).dense() if isinstance(state, SparseRows) else state[each]).double()
        for each in (first, second)
    ]
    return float(F.cosine_similarity(rows[0], rows[1]).mean())


def _classes(dataset: Any, graph: Graph) -> Tensor | None:
    codes = dataset.node_classes()
    return None if codes is None or len(codes) != graph.nodes else torch.from_numpy(codes)


def _summary(graph: Graph, share: Tensor, classes: Tensor | None) -> dict[str, float]:
    """Where the attention of nodes that have neighbours goes, and how evenly: 1 is the same weight for each."""
    row, column = graph.pattern.row, graph.pattern.column
    own, count = row == column, graph.pattern.count
    several = count > 1
    nodes = max(1, int(several.sum()))
    entropy = torch.zeros(graph.nodes).index_add_(0, row, -(share * share.clamp(min=1e-12).log()))
    even = (entropy[several] / count[several].float().log()).mean() if bool(several.any()) else torch.tensor(1.0)
    summary = {"itself": float(share[own & several[row]].sum()) / nodes, "evenness": float(even)}
    if classes is not None:
        known = several[row] & (classes[row] >= 0) & (classes[column] >= 0) & ~own
        equal = known & (classes[row] == classes[column])
        summary["same class"] = float(share[equal].sum() / share[known].sum().clamp(min=1e-12))
        summary["same class, even weights"] = float(
            (1 / count[row[equal]]).sum() / (1 / count[row[known]]).sum().clamp(min=1e-12)
        )
    return summary


def _strongest(graph: Graph, share: Tensor, dataset: Any, most: int = 10) -> list[dict[str, Any]]:
    """Edges that weigh most in comparison with equal weights of all neighbours."""
    row, column = graph.pattern.row, graph.pattern.column
    lift = (share * graph.pattern.count[row]).masked_fill(row == column, 0.0)
    top = lift.topk(min(most, len(lift))).indices.tolist()
    return [{"from": dataset.ids[int(column[e])], "to": dataset.ids[int(row[e])], "weight": round(float(share[e]), 4),
             "even": round(1 / int(graph.pattern.count[row[e]]), 4)} for e in top if float(lift[e]) > 0]  # fmt: skip


def along(edges: list[list[int]], nodes: Tensor, graph: Graph, share: Tensor) -> list[float]:
    """The attention along drawn edges, both directions averaged, times the neighbours there are: 1 is an equal weight."""
    keys = graph.pattern.row * graph.nodes + graph.pattern.column
    lift = share * graph.pattern.count[graph.pattern.row]
    ends = nodes[torch.tensor(edges, dtype=torch.long).reshape(-1, 2)]
    shares = torch.zeros(len(ends))
    for a, b in ((0, 1), (1, 0)):
        place = torch.searchsorted(keys, ends[:, a] * graph.nodes + ends[:, b]).clamp(max=len(keys) - 1)
        hit = keys[place] == ends[:, a] * graph.nodes + ends[:, b]
        shares += torch.where(hit, lift[place], 0.0) / 2
    return [round(each, 3) for each in shares.tolist()]
