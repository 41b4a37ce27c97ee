"""Forecasts with their intervals, and how large errors are at each step ahead."""

from wonderland.understand import charts, page
from wonderland.understand.facts import Facts
from wonderland.understand.format import escape, percent


def forecast(facts: Facts) -> str:
    """The steps to come of a few series, after their last test window."""
    recorded = facts.get("forecast") or {}
    examples = recorded.get("examples") or ()
    if not examples:
        return ""
    drawn = [
        page.figure(
            charts.forecast(one["history"], one["pieces"], one["labels"], title=str(one["name"])),
            head=page.truncate(str(one["name"]), 60),
        )
        for one in examples
    ]
    level = percent(recorded["level"], 0) if recorded.get("level") else ""
    about = page.p(
        f"The last test window, beside what then happened, and the steps to come, with {escape(level)} intervals."
    )
    choice = facts.get("choice")
    told_choice = page.p(escape(str(choice))) if choice else ""
    pairs = [page.pair(*drawn[first : first + 2]) for first in range(0, len(drawn), 2)]
    return told_choice + about + "".join(pairs)


def backtest(facts: Facts) -> str:
    """Mean absolute errors and coverage by step ahead, with naive forecasts beside the model."""
    recorded = facts.get("forecast") or {}
    steps = {
        name: values
        for name, values in (recorded.get("steps") or {}).items()
        if any(value is not None for value in values)
    }
    if not steps:
        return ""
    if facts.get("season") == 1:
        steps.pop("seasonal naive", None)
    along = list(range(1, len(next(iter(steps.values()))) + 1))
    left = page.figure(
        charts.curves(steps, along, title="Error by step", x_label="steps ahead", y_label="mean absolute error"),
        "Every window of the test part; the origin rolls on by one step.",
        head="Error by step ahead",
    )
    cover = recorded.get("coverage") or []
    level = recorded.get("level") or 0.9
    lines = {"coverage": cover, "level": [level] * len(along)}
    chart = charts.curves(
        lines, along, title="Coverage by step", x_label="steps ahead", y_label="share inside", most=1.0
    )
    right = page.figure(
        chart,
        f"Intervals at the {percent(level, 0)} level; the share of true values inside.",
        head="Coverage by step ahead",
    )
    return page.pair(left, right)
