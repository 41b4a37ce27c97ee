"""What the shell shows: data before training, metrics after it."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

console = Console(soft_wrap=False, emoji=False)


def table(title: str, rows: list[dict[str, Any]], *, limit: int = 60) -> None:
    """Rows of equal keys as a table."""
    if not rows:
        return
    console.print(f"[bold]{escape(_text(title))}[/bold]", highlight=False)
    shown = Table(header_style="bold")
    for name, value in rows[0].items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        shown.add_column(escape(_text(str(name))), justify="right" if number else "left", overflow="fold")
    for row in rows[:limit]:
        shown.add_row(*(escape(_text(value)) for value in row.values()))
    console.print(shown)
    if len(rows) > limit:
        console.print(f"... and {len(rows) - limit} more")


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        shown = value.replace("\n", "↵")
        return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in shown)
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def counted(number: int, word: str) -> str:
    """A number with its noun: 1 row, 2 rows."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def noticed(findings: list[Any], *, limit: int = 30) -> None:
    """What was found and repaired, a sentence each."""
    for finding in findings[:limit]:
        note(finding.text)
    if len(findings) > limit:
        console.print(f"... and {len(findings) - limit} more: wonderland inspect shows all of them")


def dataset(found: Any) -> None:
    """A dataset: its columns or classes, and what was noticed."""
    table(found.headline(), found.summary())
    noticed(found.findings)


def beginning(found: Any, plan: Any, finished: bool) -> None:
    """What is about to be learned, from what, and how."""
    table(found.headline(), found.summary(), limit=20)
    noticed(found.findings, limit=12)
    if finished:
        console.print("This run was finished before: nothing is trained again.", highlight=False)
        return
    counts = ((name, plan.examples.count(part)) for name, part in plan.parts.parts.items())
    sizes = ", ".join(f"{name} {count:,}" for name, count in counts if count)
    folds = f" in {plan.recipe.folds} folds" if plan.recipe.folds else ""
    console.print(f"{found.noun.capitalize()}: {sizes}{folds}. {escape(plan.describe())}", highlight=False)
    if plan.parts.note:
        note(plan.parts.note)


@contextmanager
def working(label: str, total: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A bar for long work in a terminal; gives a function to be told how many bytes are done."""
    if quiet or not console.is_terminal:
        yield lambda done: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("[bold]{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as live:
        task = live.add_task(label, total=total)
        yield lambda done: live.update(task, completed=min(done, total))


def note(text: str) -> None:
    """A sentence that deserves attention."""
    console.print(f"[yellow]•[/yellow] {escape(_text(text))}", highlight=False)


def measured(title: str, found: dict[str, Any]) -> None:
    """Metrics, calibration and coverage as one table."""
    rows = [{"measure": name.replace("_", " "), "value": value} for name, value in found["metrics"].items()]
    if "ece" in found:
        rows.append({"measure": "calibration error (ECE), before", "value": found["ece"]["before"]})
        rows.append({"measure": "calibration error (ECE), after", "value": found["ece"]["after"]})
    conformal = found["conformal"]
    what = "sets" if "mean_size" in conformal else "intervals"
    if "coverage" in conformal:
        rows.append({"measure": f"coverage of {conformal['level']:.0%} {what}", "value": conformal["coverage"]})
    if "mean_size" in conformal:
        rows.append({"measure": "mean size of a set", "value": conformal["mean_size"]})
    elif "mean_width" in conformal:
        rows.append({"measure": "mean width of an interval", "value": conformal["mean_width"]})
    if conformal.get("empty"):
        rows.append({"measure": "empty sets (no class plausible)", "value": conformal["empty"]})
    table(title, rows)
    for text in remarks(found):
        note(text)


def remarks(found: dict[str, Any]) -> list[str]:
    """What a careful reader would say of these numbers."""
    said = [found["conformal"]["note"]] if found["conformal"]["note"] else []
    conformal, rows = found["conformal"], found["rows"]
    level = conformal["level"]
    if conformal["coverage"] < level - 3 * (level * (1 - level) / rows) ** 0.5 - 0.01:
        said.append(
            f"Coverage is {conformal['coverage']:.1%} where {level:.0%} was asked: these rows differ from those the model "
            "was calibrated on, so its sets and intervals promise too much here."
        )
    common = found.get("most_frequent")
    if common and found["metrics"]["accuracy"] <= common["share"]:
        said.append(
            f"Always saying {common['class']!r} would be right {common['share']:.1%} of the time: the model is no better. "
            "Look at the balanced accuracy."
        )
    if found["metrics"].get("r2") is not None and found["metrics"]["r2"] <= 0:
        said.append("Always answering the mean would do as well: the model explains nothing of these rows.")
    return said


def ending(run: Any) -> None:
    """The metrics of a finished run, and where to look next."""
    from wonderland.road.facts import records, training_seconds

    record = run.record["measured"]["test"]
    measured(f"Test: {counted(record['rows'], run.task.unit)} never seen in training", record)
    rows, spent, planned = records(run.folder / "metrics.jsonl"), training_seconds(run.folder), run.recipe.steps
    done = rows[-1]["step"] if rows else planned
    if spent:
        early = f", stopped early of {planned:,}: the validation part got no better" if done < planned else ""
        console.print(f"Trained {done:,} steps{early}, in {spent:.3g} s.", highlight=False)
    console.print(f"Report: {escape(str(run.folder / 'report.html'))}", highlight=False, soft_wrap=True)
    text, command = run.task.next_commands(shlex.quote(str(run.folder)))[0]
    console.print(escape(f"{text}: {command}"), highlight=False, soft_wrap=True)


def predictions(found: Any) -> None:
    """The first rows of a table of predictions; probabilities of many classes are for files."""
    few = [name for name in found.columns if not name.startswith("p(")]
    columns = list(found.columns) if len(found.columns) - len(few) <= 3 else few
    rows = found[columns].head(20).to_dict("records")
    shown = [{name: ", ".join(cell) if isinstance(cell, list) else cell for name, cell in row.items()} for row in rows]
    table(counted(len(found), "prediction"), shown)
    if len(found) > len(rows):
        console.print(f"The first {len(rows)} are shown; -o FILE writes all of them.")
