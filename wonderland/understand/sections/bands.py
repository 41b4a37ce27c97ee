"""Bands: the prediction along one column with its interval, for models that predict a standard deviation."""

from wonderland.understand import charts, page
from wonderland.understand.facts import Facts
from wonderland.understand.format import escape


def bands(facts: Facts) -> str:
    """A curve with its band for each column, the others held at a typical row."""
    drawn = facts.get("bands") or []
    figures = [
        page.figure(
            charts.band(
                curve["x"], curve["prediction"], curve["low"], curve["high"], curve.get("points") or (),
                title=f"Band along {curve['name']}", x_label=str(curve["name"]), y_label=str(facts.get("target") or ""),
            )
        )
        for curve in drawn
    ]  # fmt: skip
    if not figures:
        return ""
    text = "Predictions along one column with the interval of each row; intervals are wider where there is less to learn from."
    if len(drawn) > 1 or not drawn[0].get("points"):
        text += " The other columns are held at those of a typical row."
    return page.p(escape(text)) + page.pair("".join(figures[::2]), "".join(figures[1::2]))
