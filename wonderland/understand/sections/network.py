"""The graph: drawn, its degrees, how alike nodes become from layer to layer, and where attention goes."""

from wonderland.understand import charts, page
from wonderland.understand.charts.network import network as drawn
from wonderland.understand.facts import Facts
from wonderland.understand.format import number, percent


def network(facts: Facts) -> str:
    """The drawing, how many neighbours nodes have, and what the layers do."""
    return _drawing(facts) + _degrees(facts) + _smoothing(facts) + _attention(facts)


def _drawing(facts: Facts) -> str:
    given = facts.get("drawing") or {}
    if not given.get("places"):
        return ""
    shown, every = len(given["places"]), given.get("all") or 0
    words = (
        f"{number(shown)} of {number(every)} nodes, around the one with the most neighbours. " if shown < every else ""
    )
    rings = "Rings mark test nodes whose class is mistaken." if any(given.get("wrong") or ()) else ""
    widths = (
        "Wider edges carry more attention than an equal weight of all neighbours." if given.get("attention") else ""
    )
    return page.figure(drawn(given), " ".join(filter(None, (words.strip(), rings, widths))), head="Drawn", wide=True)


def _degrees(facts: Facts) -> str:
    given = facts.get("degrees") or {}
    if not given:
        return ""
    return page.figure(
        charts.counts(given, title="Degrees", x_label="neighbours of a node", y_label="nodes"), head="Neighbours"
    )


def _smoothing(facts: Facts) -> str:
    given = facts.get("smoothing") or {}
    if not isinstance(given, dict) or not given:
        return ""
    chart = charts.curves(
        given, title="Nodes become alike", x_label="layer", y_label="mean cosine of two nodes", log=False, most=1.0
    )
    words = (
        "The mean cosine between the vectors of two nodes, before the first layer (0) and after each. Near 1 all nodes look the same: "
        "more layers would smooth away what tells them apart."
    )
    return page.figure(chart, words, head="Smoothing by layers")


def _attention(facts: Facts) -> str:
    rows = [row for row in facts.get("attention") or () if isinstance(row, dict)]
    if not rows:
        return ""
    classes = any("same class" in row for row in rows)
    head = [
        "network",
        "layer",
        "on the node itself",
        "evenness",
        *(["on its class", "at equal weights"] if classes else []),
    ]
    cells = [
        [str(row.get("network", "")), page.Number(number(row.get("layer"))), page.Number(percent(row.get("itself"))), page.Number(percent(row.get("evenness"))),
         *([page.Number(percent(row.get("same class"))), page.Number(percent(row.get("same class, even weights")))] if classes else [])]
        for row in rows
    ]  # fmt: skip
    words = "Where attention goes, mean over heads and nodes. Evenness is 100 % where all neighbours weigh the same."
    words += (
        " The last two columns are the share of a node's neighbours that falls on its own class." if classes else ""
    )
    strongest = [row for row in facts.get("strongest") or () if isinstance(row, dict)]
    most = [
        [
            str(row.get("from", "")),
            str(row.get("to", "")),
            page.Number(percent(row.get("weight"))),
            page.Number(percent(row.get("even"))),
        ]
        for row in strongest
    ]
    listed = page.table(["from", "to", "weight", "equal weight"], most, "Strongest edges") if most else ""
    return page.p(words) + page.table(head, cells, "Attention") + listed
