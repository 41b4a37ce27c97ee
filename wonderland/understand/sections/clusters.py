"""Clusters of the test part by the vectors of the model, with the words that tell each from the others."""

from collections.abc import Mapping

from wonderland.understand import page
from wonderland.understand.facts import Facts
from wonderland.understand.format import percent


def clusters(facts: Facts) -> str:
    """A table of clusters: words, size, the most frequent class, and an example."""
    rows = [row for row in facts.get("clusters") or () if isinstance(row, Mapping)]
    if not rows:
        return ""
    grouped = all("group" in row for row in rows)
    head = ["words", "texts", *(["most frequent class", "its share"] if grouped else []), "nearest to the centre"]
    cells = [
        [
            ", ".join(map(str, row.get("words") or ())) or "(no words of its own)",
            row.get("size"),
            *([str(row.get("group")), page.Number(percent(row.get("share")))] if grouped else []),
            str((row.get("examples") or [""])[0]),
        ]
        for row in rows
    ]
    lead = (
        "Texts of the test part in groups, by the vectors that the model computes before its last layer (k-means). The words are those "
        "that occur in a group at least twice as often as in all texts."
    )
    return page.p(lead) + page.table(head, cells, "Clusters of texts", first=False)
