"""The graph: drawn, and its degrees."""

from wonderland.understand import charts, page
from wonderland.understand.charts.network import network as drawn
from wonderland.understand.facts import Facts
from wonderland.understand.format import number


def network(facts: Facts) -> str:
    """The drawing, and how many neighbours nodes have."""
    return _drawing(facts) + _degrees(facts)


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
