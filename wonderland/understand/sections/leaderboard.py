"""The leaderboard: the model beside simple methods, on the same test rows."""

from typing import Any

from wonderland.understand import page
from wonderland.understand.facts import Facts, is_known
from wonderland.understand.format import escape, number, percent
from wonderland.understand.sections.summary import SHARES, metric_name


def leaderboard(facts: Facts) -> str:
    """A table of methods and measures, with intervals of the differences, and what follows from them."""
    board = facts.get("leaderboard") or {}
    rows = board.get("rows") or []
    if len(rows) < 2:
        return ""
    measures = list(rows[0].get("metrics") or {})
    differences = list(rows[1].get("differences") or {})
    head = ["", *map(metric_name, measures), *(f"difference of {_words(name)}" for name in differences)]
    cells = []
    for row in rows:
        shown: list[Any] = [row.get("name", "")]
        shown += [page.Number(_value(name, row.get("metrics", {}).get(name))) for name in measures]
        shown += [page.Number(_gap(name, (row.get("differences") or {}).get(name))) for name in differences]
        cells.append(shown)
    text = board.get("sentence") or (
        "This model is better than each of the methods in at least one measure, and worse in none, by 95 % intervals."
    )
    note = (
        "All methods are fitted to the rows that this model used for training and calibration, at their defaults, and measured on the "
        "same test rows. Differences are this model's value minus that of the method, with 95 % intervals of the paired difference. "
        "Nothing of the other methods is kept."
    )
    return page.p(escape(text)) + page.table(head, cells, "This model and simple methods") + page.p(note, "quiet")


def _words(name: str) -> str:
    shown = metric_name(name)
    return shown if shown.isupper() else shown.lower()


def _value(name: str, value: Any) -> str:
    if not is_known(value):
        return ""
    return percent(value) if name in SHARES else number(value)


def _gap(name: str, gap: Any) -> str:
    if not gap or not is_known(gap.get("value")):
        return ""
    if name in SHARES:
        value, low, high = (f"{100 * gap[key]:+.1f}" for key in ("value", "low", "high"))
        return f"{value} points [{low}, {high}]"
    value, low, high = (number(gap[key], 3) for key in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"
