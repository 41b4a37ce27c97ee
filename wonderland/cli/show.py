"""What the shell shows: data before training, metrics after it."""

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

console = Console(soft_wrap=False)


def table(title: str, rows: list[dict[str, Any]], *, limit: int = 60) -> None:
    """Rows of equal keys as a table."""
    if not rows:
        return
    shown = Table(title=escape(title), title_justify="left", title_style="bold", header_style="bold")
    for name, value in rows[0].items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        shown.add_column(escape(str(name)), justify="right" if number else "left", overflow="fold")
    for row in rows[:limit]:
        shown.add_row(*(escape(_text(value)) for value in row.values()))
    console.print(shown)
    if len(rows) > limit:
        console.print(f"... and {len(rows) - limit} more")


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def noticed(findings: list[Any]) -> None:
    """What was found and repaired, a sentence each."""
    for finding in findings[:30]:
        console.print(f"[yellow]•[/yellow] {escape(finding.text)}", highlight=False)
    if len(findings) > 30:
        console.print(f"... and {len(findings) - 30} more")


def dataset(found: Any) -> None:
    """A dataset: its columns or classes, and what was noticed."""
    table(found.headline(), found.summary())
    noticed(found.findings)


def beginning(found: Any, plan: Any) -> None:
    """What is about to be learned, from what, and how."""
    dataset(found)
    sizes = ", ".join(f"{name} {len(rows):,}" for name, rows in plan.parts.parts.items() if len(rows))
    folds = f" in {plan.recipe.folds} folds" if plan.recipe.folds else ""
    console.print(f"Rows: {sizes}{folds}. {plan.describe()}", highlight=False)
    if plan.parts.note:
        console.print(f"[yellow]•[/yellow] {escape(plan.parts.note)}", highlight=False)


def measured(title: str, found: dict[str, Any]) -> None:
    """Metrics, calibration and coverage as one table."""
    rows = [{"measure": name.replace("_", " "), "value": value} for name, value in found["metrics"].items()]
    if "ece" in found:
        rows.append({"measure": "calibration error (ECE), before", "value": found["ece"]["before"]})
        rows.append({"measure": "calibration error (ECE), after", "value": found["ece"]["after"]})
    conformal = found["conformal"]
    what = "sets" if "mean_size" in conformal else "intervals"
    rows.append({"measure": f"coverage of {conformal['level']:.0%} {what}", "value": conformal["coverage"]})
    if "mean_size" in conformal:
        rows.append({"measure": "mean size of a set", "value": conformal["mean_size"]})
    else:
        rows.append({"measure": "mean width of an interval", "value": conformal["mean_width"]})
    table(title, rows)
    if conformal["note"]:
        console.print(f"[yellow]•[/yellow] {conformal['note']}", highlight=False)


def ending(run: Any) -> None:
    """The metrics of a finished run, and where to look next."""
    found = run.facts["measured"]["test"]
    measured(f"Test: {found['rows']:,} rows never seen in training", found)
    console.print(f"Report: {run.folder / 'report.html'}", highlight=False, soft_wrap=True)
    console.print(
        f"Predict: wonderland predict {run.folder} NEWDATA -o predictions.csv", highlight=False, soft_wrap=True
    )


def predictions(found: Any) -> None:
    """The first rows of a table of predictions."""
    rows = found.head(20).to_dict("records")
    table(
        f"{len(found):,} predictions",
        [{k: ", ".join(v) if isinstance(v, list) else v for k, v in r.items()} for r in rows],
    )
    if len(found) > len(rows):
        console.print(f"The first {len(rows)} are shown; -o FILE writes all of them.")
