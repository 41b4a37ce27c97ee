"""What the model looks at: columns, or pixels."""

from collections.abc import Mapping
from typing import Any

from wonderland.understand import charts, page
from wonderland.understand.facts import Facts, is_known
from wonderland.understand.format import escape, real

# Scores of which less is better: they rise when a column that matters is shuffled.
_LOSSES = frozenset({"log loss", "absolute error", "squared error", "loss", "MAE", "RMSE"})


def importance(facts: Facts) -> str:
    """Bars for columns, or a heat map for pixels."""
    found = facts.get("importance")
    if isinstance(found, Mapping):
        grid = _grid(found)
        if not grid:
            return ""
        text = page.p(
            "How strongly each pixel moves the score of the right class, averaged over test images."
        ) + page.p(
            "Strong colour: replacing the pixel by its average would change the answer most. A map that lights up in the "
            "background or at a border is a warning that the model reads something it should not.",
            "quiet",
        )
        return page.pair(page.figure(charts.heat_map(grid)), text)
    items = sorted((i for i in found or () if is_known(i.get("value"))), key=lambda i: -float(i["value"]))
    if not items:
        return ""
    score = str(facts.get("importance_score") or "score")
    way, verb = ("rise", "rises") if score in _LOSSES else ("drop", "drops")
    if facts.get("importance_of") == "word":
        svg = charts.bars(items, title="Word importance", x_label=f"{way} of {score}")
        text = page.p(f"How much the {escape(score)} of unseen texts {verb} where a word is hidden, on average.")
        text += page.p("Whiskers show the spread of the mean; a bar within its whisker of zero may be noise.", "quiet")
        return page.pair(page.figure(svg), text)
    svg = charts.bars(items, title="Column importance", x_label=f"{way} of {score}")
    text = page.p(f"How much the {escape(score)} on unseen rows {verb} when one column is shuffled.")
    text += page.p(
        "Whiskers show the spread over repeats; a bar within its whisker of zero may be noise. Columns that carry the same "
        "information share their importance.",
        "quiet",
    )
    if len(items) > 20:
        left = len(items) - 20
        several = "least important column is" if left == 1 else f"{left} least important columns are"
        text += page.p(f"The {several} not drawn.", "quiet")
    return page.pair(page.figure(svg), text)


def _grid(found: Facts) -> list[list[Any]]:
    values = found.get("values") or []
    if values and isinstance(values[0], (list, tuple)):
        return [list(row) for row in values]
    wide = int(real(found.get("width")) or 0)
    return [list(values[i : i + wide]) for i in range(0, len(values), wide)] if wide > 0 else []
