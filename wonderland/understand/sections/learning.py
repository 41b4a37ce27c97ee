"""Learning curves, and their values at the best and the last step."""

from collections.abc import Mapping, Sequence
from typing import Any

from wonderland.understand import charts, page
from wonderland.understand.facts import Facts, is_known
from wonderland.understand.format import escape, number
from wonderland.understand.sections.summary import SHARES, metric_name


def learning(facts: Facts) -> str:
    """The learning curves, two in a row; a single one in a row has a table of its values beside it."""
    curves = facts.get("curves") or []
    drawn = [curve for curve in ([curves] if isinstance(curves, Mapping) else list(curves))[:6] if _series(curve)]
    return page.pair(*map(_curve, drawn), _curve_table(drawn[-1]) if len(drawn) % 2 else "")


def _series(curve: Facts) -> dict[str, Sequence[Any]]:
    series = {name: v for name, v in curve.items() if name != "steps" and isinstance(v, (list, tuple))}
    return {name: values for name, values in series.items() if any(is_known(v) for v in values)}


def _curve(curve: Facts) -> str:
    name, unit = str(curve.get("name") or "loss"), str(curve.get("unit") or "step")
    svg = charts.curves(
        _series(curve),
        curve.get("steps"),
        title=f"{name} over {unit}s",
        x_label=unit,
        log=curve.get("log"),
        best=curve.get("best"),
        most=1.0 if name in SHARES else None,
    )
    return page.figure(svg, head=metric_name(name))


def _curve_table(curve: Facts) -> str:
    """The values at the best and at the last step."""
    unit, series = str(curve.get("unit") or "step"), _series(curve)
    steps = list(curve.get("steps") or range(max(map(len, series.values()))))
    points_of = {
        name: [(s, v) for s, v in zip(steps, values, strict=False) if is_known(v)] for name, values in series.items()
    }
    head, rows = (
        ["", f"last {unit}"],
        [[name, page.Number(number(points[-1][1]))] for name, points in points_of.items() if points],
    )
    note = ""
    if is_known(curve.get("best")):
        best = float(curve["best"])
        head.insert(1, f"{unit} {number(best)}")
        for row in rows:
            row.insert(1, page.Number(number(min(points_of[row[0]], key=lambda p: abs(float(p[0]) - best))[1])))
        note = page.p(f"The weights of {escape(unit)} {number(best)}, the best on the validation part, were kept.")
    return "<h3>Values</h3>" + note + page.table(head, rows, "Values of the learning curves")
