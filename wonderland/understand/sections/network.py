"""The graph: drawn, its degrees, and what simple methods reach on the same examples."""

from collections.abc import Mapping

from wonderland.understand import charts, page
from wonderland.understand.charts.network import network as drawn
from wonderland.understand.facts import Facts
from wonderland.understand.format import number, percent


def network(facts: Facts) -> str:
    """Baselines, the drawing, and how many neighbours nodes have."""
    return _baselines(facts) + _drawing(facts) + _degrees(facts)


def _baselines(facts: Facts) -> str:
    rows = [row for row in facts.get("baselines") or () if isinstance(row, Mapping)]
    if not rows:
        return ""
    measure = str(rows[0].get("measure", ""))
    show = percent if measure == "accuracy" else number
    cells = [[str(row.get("name", "")), page.Number(show(row.get("value")))] for row in rows]
    better = "higher is better" if measure == "accuracy" else "lower is better"
    return f"<h3>Beside simple methods</h3>{page.table(['method', f'{measure} on the test part, {better}'], cells, 'Baselines')}"


def _drawing(facts: Facts) -> str:
    given = facts.get("drawing") or {}
    if not given.get("places"):
        return ""
    shown, every = len(given["places"]), given.get("all") or 0
    words = (
        f"{number(shown)} of {number(every)} nodes, around the one with the most neighbours. " if shown < every else ""
    )
    rings = "Rings mark test nodes whose class is mistaken." if any(given.get("wrong") or ()) else ""
    return page.figure(drawn(given), words + rings, head="Drawn", wide=True)


def _degrees(facts: Facts) -> str:
    given = facts.get("degrees") or {}
    if not given:
        return ""
    return page.figure(
        charts.counts(given, title="Degrees", x_label="neighbours of a node", y_label="nodes"), head="Neighbours"
    )
