"""Importance of columns, words or pixels."""

from collections.abc import Mapping
from typing import Any

from wonderland.understand import charts, page
from wonderland.understand.facts import Facts, is_known
from wonderland.understand.format import escape, real

# Scores where lower is better: they rise when an important column is shuffled.
_LOSSES = frozenset({"log loss", "absolute error", "squared error", "loss", "MAE", "RMSE"})


def importance(facts: Facts) -> str:
    """Bars for columns, or a heat map for pixels."""
    values = facts.get("importance")
    if isinstance(values, Mapping):
        grid = _grid(values)
        if not grid:
            return ""
        text = page.p("Gradient times input of the true class's logit, averaged over test images.") + page.p(
            "The stronger the colour, the more replacing the pixel by its average would change the prediction. High values in the "
            "background or at a border suggest that the model uses a spurious feature.",
            "quiet",
        )
        return page.pair(page.figure(charts.heat_map(grid)), text)
    items = sorted((i for i in values or () if is_known(i.get("value"))), key=lambda i: -float(i["value"]))
    if not items:
        return ""
    score = str(facts.get("importance_score") or "score")
    change, verb = ("rise", "rises") if score in _LOSSES else ("drop", "drops")
    if facts.get("importance_of") == "word":
        svg = charts.bars(items, title="Word importance", x_label=f"{change} of {score}")
        text = page.p(f"How much the {escape(score)} of unseen texts {verb} when a word is masked, on average.")
        text += page.p(
            "Whiskers show the standard error of the mean; a whisker that reaches zero means that the value may be noise.",
            "quiet",
        )
        return page.pair(page.figure(svg), text)
    svg = charts.bars(items, title="Column importance", x_label=f"{change} of {score}")
    text = page.p(f"How much the {escape(score)} on unseen rows {verb} when one column is shuffled.")
    text += page.p(
        "Permutation importance. Whiskers show the standard deviation over repeats; a whisker that reaches zero means that the value "
        "may be noise. Correlated columns share their importance.",
        "quiet",
    )
    if len(items) > 20:
        left = len(items) - 20
        hidden = "least important column is" if left == 1 else f"{left} least important columns are"
        text += page.p(f"The {hidden} not drawn.", "quiet")
    if facts.get("importance_left"):
        text += page.p(
            f"{int(facts['importance_left']):,} columns whose first-order effect on the loss is smaller were not permuted.",
            "quiet",
        )
    return page.pair(page.figure(svg), text)


def _grid(pixels: Facts) -> list[list[Any]]:
    values = pixels.get("values") or []
    if values and isinstance(values[0], (list, tuple)):
        return [list(row) for row in values]
    width = int(real(pixels.get("width")) or 0)
    return [list(values[i : i + width]) for i in range(0, len(values), width)] if width > 0 else []
