"""What simple methods, or parts of the model alone, reach on the same test examples."""

from collections.abc import Mapping

from wonderland.understand import page
from wonderland.understand.facts import Facts
from wonderland.understand.format import number, percent


def baselines(facts: Facts) -> str:
    """A table of methods with their score."""
    rows = [row for row in facts.get("baselines") or () if isinstance(row, Mapping)]
    if not rows:
        return ""
    measure = str(rows[0].get("measure", ""))
    show = percent if measure == "accuracy" else number
    cells = [[str(row.get("name", "")), page.Number(show(row.get("value")))] for row in rows]
    better = "higher is better" if measure == "accuracy" else "lower is better"
    return page.table(["method", f"{measure} on the test part, {better}"], cells, "Baselines")
