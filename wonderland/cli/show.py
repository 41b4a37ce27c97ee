"""Output of the shell: tables, findings, metrics and progress, printed with rich."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from wonderland.core.errors import printable


class PlainConsole(Console):
    """A console that prints no control characters but its own: every text passes through here, cells of tables included."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text, "\n\t"), **options)


console = PlainConsole(soft_wrap=False, emoji=False)


def say(text: str, error: bool = False) -> None:
    """Print a line outside of tables, to the standard output or, for messages, to the standard error."""
    print(printable(text, "\n\t"), file=sys.stderr if error else None)


def table(title: str, rows: list[dict[str, Any]], *, limit: int = 60) -> None:
    """Print rows with the same keys as a table."""
    if not rows:
        return
    console.print(f"[bold]{escape(printable_cell(title))}[/bold]", highlight=False)
    shown = Table(header_style="bold")
    for name, value in rows[0].items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        shown.add_column(escape(printable_cell(str(name))), justify="right" if number else "left", overflow="fold")
    for row in rows[:limit]:
        shown.add_row(*(escape(printable_cell(value)) for value in row.values()))
    console.print(shown)
    if len(rows) > limit:
        console.print(f"... and {len(rows) - limit} more")


def printable_cell(value: Any) -> str:
    """A value as one line of text without control characters; numbers with four digits."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def counted(number: int, word: str) -> str:
    """A number with its noun: 1 row, 2 rows."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def print_findings(findings: list[Any], *, limit: int = 30) -> None:
    """Print findings, a sentence each."""
    for finding in findings[:limit]:
        note(finding.text)
    if len(findings) > limit:
        console.print(f"... and {len(findings) - limit} more: wonderland inspect shows all of them")


def dataset(data: Any) -> None:
    """Print a dataset: its columns or classes, and its findings."""
    table(data.headline(), data.summary())
    print_findings(data.findings)


def before_training(data: Any, plan: Any, finished: bool) -> None:
    """Print the dataset and the plan before training."""
    table(data.headline(), data.summary(), limit=20)
    print_findings(data.findings, limit=12)
    if finished:
        console.print("This run was finished before: nothing is trained again.", highlight=False)
        return
    counts = ((name, plan.examples.count(part)) for name, part in plan.parts.parts.items())
    sizes = ", ".join(f"{name} {count:,}" for name, count in counts if count)
    folds = f" in {plan.recipe.folds} folds" if plan.recipe.folds else ""
    console.print(f"{data.noun.capitalize()}: {sizes}{folds}. {escape(plan.describe())}", highlight=False)
    if plan.parts.note:
        note(plan.parts.note)


@contextmanager
def byte_progress(label: str, total: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar for long work in a terminal; yields a function to call with the number of bytes done."""
    if quiet or not console.is_terminal:
        yield lambda done: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("[bold]{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as live:
        task = live.add_task(label, total=total)
        yield lambda done: live.update(task, completed=min(done, total))


def note(text: str) -> None:
    """Print a note."""
    console.print(f"[yellow]•[/yellow] {escape(printable_cell(text))}", highlight=False)


def evaluation_table(title: str, evaluation: dict[str, Any]) -> None:
    """Print metrics, calibration and coverage as one table, with warnings."""
    rows = [{"measure": name.replace("_", " "), "value": value} for name, value in evaluation["metrics"].items()]
    if common := evaluation.get("most_frequent"):
        rows.insert(1, {"measure": f"share of the most frequent class, {common['class']!r}", "value": common["share"]})
    if "ece" in evaluation:
        rows.append({"measure": "calibration error (ECE), before", "value": evaluation["ece"]["before"]})
        rows.append({"measure": "calibration error (ECE), after", "value": evaluation["ece"]["after"]})
    conformal = evaluation["conformal"]
    noun = "sets" if "mean_size" in conformal else "intervals"
    if of := conformal.get("of"):  # boxes or pixels, of which a share may be missed
        rows.append(
            {"measure": f"{of} found, where {conformal['level']:.0%} was asked", "value": conformal["coverage"]}
        )
        sizes = {
            "boxes": "boxes in an image",
            "pixels": "classes in the set of a pixel",
            "words": "tags in the set of a word",
            "answers": "answers in the set of a question",
        }
        size = f"{sizes.get(of, f'{of} in a set')}, on average"
        rows.append({"measure": size, "value": conformal["mean_size"]})
    elif "coverage" in conformal:
        rows.append({"measure": f"coverage of {conformal['level']:.0%} {noun}", "value": conformal["coverage"]})
    if worst := conformal.get("worst"):
        label = f"coverage of class {worst['name']!r}, the least ({counted(worst['rows'], 'row')})"
        rows.append({"measure": label, "value": worst["coverage"]})
    if worst := conformal.get("worst_group"):
        label = f"coverage of {worst['of']} {worst['name']!r}, the least ({counted(worst['rows'], 'row')})"
        rows.append({"measure": label, "value": worst["coverage"]})
    if "mean_size" in conformal and not conformal.get("of"):
        rows.append({"measure": "mean size of a set", "value": conformal["mean_size"]})
    if "mean_width" in conformal:
        rows.append({"measure": "mean width of an interval", "value": conformal["mean_width"]})
    if conformal.get("empty"):
        rows.append({"measure": "empty sets (no class plausible)", "value": conformal["empty"]})
    rows += decision_rows(evaluation)
    table(title, rows)
    if parts := evaluation.get("parts"):
        note(blend(parts))
    for text in warnings_about(evaluation):
        note(text)


def blend(parts: list[dict[str, Any]]) -> str:
    """What each part of the model reaches alone, and its share in the prediction, in a sentence."""
    words = []
    for part in parts:
        values = ", ".join(f"{name.replace('_', ' ')} {printable_cell(value)}" for name, value in part["metrics"].items()
                           if name in ("accuracy", "log_loss", "rmse") and value is not None)  # fmt: skip
        words.append(f"{part['name']} alone {values}, share {part['share']:.0%}")
    return f"Parts of the model, with shares chosen on validation rows: {'; '.join(words)}."


def decision_rows(evaluation: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of the table about thresholds, costs and abstention, where they were asked for."""
    rows = []
    if decided := evaluation.get("decided_by"):
        rows.append(
            {"measure": f"{decided['metric'].replace('_', ' ')}, by tuned thresholds", "value": decided["value"]}
        )
        rows.append({"measure": f"{decided['metric'].replace('_', ' ')}, by the most probable class",
                     "value": decided["most_probable"]})  # fmt: skip
    if cost := evaluation.get("cost"):
        rows.append({"measure": "mean cost of the cheapest decisions", "value": cost["chosen"]})
        if "most_probable" in cost:
            rows.append({"measure": "mean cost of the most probable class", "value": cost["most_probable"]})
    if abstention := evaluation.get("abstention"):
        rows.append({"measure": "share answered, the rest is left to a person", "value": abstention["answered"]})
        rows.append({"measure": "wrong among the answers", "value": abstention["risk"]})
        rows.append(
            {"measure": f"bound of that share (asked {abstention['asked']:g}), 95 % sure", "value": abstention["bound"]}
        )
    return rows


def warnings_about(evaluation: dict[str, Any]) -> list[str]:
    """Warnings about an evaluation: low coverage, or a model no better than a constant."""
    conformal, rows = evaluation["conformal"], evaluation["rows"]
    warnings = [conformal["note"]] if conformal.get("note") else []
    level, coverage = conformal.get("level"), conformal.get("coverage")
    if (
        rows
        and level is not None
        and coverage is not None
        and coverage < level - 3 * (level * (1 - level) / rows) ** 0.5 - 0.01
    ):
        warnings.append(
            f"Coverage is {conformal['coverage']:.1%} where {level:.0%} was asked, less than chance alone explains. wonderland shift "
            "tests whether rows differ from those of the fit."
        )
    if "abstention" in evaluation and not evaluation["abstention"]["answered"]:
        warnings.append(
            f"No answer is sure enough for a risk of {evaluation['abstention']['asked']:g}: every row is left to a person. "
            "Allow a larger risk, or add rows."
        )
    common = evaluation.get("most_frequent")
    accuracy = evaluation["metrics"].get("accuracy")
    if common and accuracy is not None and accuracy <= common["share"]:
        warnings.append(
            f"Always predicting {common['class']!r} would be right {common['share']:.1%} of the time: the model is no better. "
            "Look at the balanced accuracy."
        )
    if evaluation["metrics"].get("r2") is not None and evaluation["metrics"]["r2"] <= 0:
        warnings.append("Always predicting the mean would be as good: the model explains nothing of these rows.")
    return warnings


def leaderboard(run: Any) -> None:
    """Print the run beside simple methods."""
    from wonderland.road.facts import training_seconds
    from wonderland.road.leaderboard import read_leaderboard, seconds_of

    board = read_leaderboard(run.folder)
    if board is None:
        return
    taken = {"this model": training_seconds(run.folder)} | seconds_of(run.folder)
    rows = []
    for entry in board["rows"]:
        row: dict[str, Any] = {"method": entry["name"]}
        row |= {name.replace("_", " "): value for name, value in entry["metrics"].items()}
        first = next(iter(entry.get("differences", {}).items()), None)
        row["difference"] = "" if first is None else "{value:+.3g} [{low:+.3g}, {high:+.3g}]".format(**first[1])
        row["seconds"] = taken.get(entry["name"])
        rows.append(row)
    compared = [name for entry in board["rows"] for name in entry.get("differences", ())]
    measure = next(iter([*compared, *board["rows"][0]["metrics"], "metric"])).replace("_", " ")
    table(f"Leaderboard on the same test rows (difference of {measure}: this model minus the method)", rows)
    if board["sentence"]:
        note(board["sentence"])


def after_training(run: Any) -> None:
    """Print the metrics of a run that is measured."""
    from wonderland.road.facts import records, training_seconds

    record = run.record["measured"]["test"]
    evaluation_table(f"Test: {counted(record['rows'], run.task.unit)} not used in training", record)
    rows, spent, planned = records(run.folder / "metrics.jsonl"), training_seconds(run.folder), run.recipe.steps
    done = rows[-1]["step"] if rows else planned
    if spent and rows:
        early = f", stopped early of {planned:,}: the validation part got no better" if done < planned else ""
        console.print(f"Trained {done:,} {'step' if done == 1 else 'steps'}{early}, in {spent:.3g} s.", highlight=False)
    leaderboard(run)


def after_report(run: Any) -> None:
    """Print where the report is, and the next command."""
    console.print(f"Report: {escape(str(run.folder / 'report.html'))}", highlight=False, soft_wrap=True)
    text, command = run.task.next_commands(shlex.quote(str(run.folder)))[0]
    console.print(escape(f"{text}: {command}"), highlight=False, soft_wrap=True)


def shift(result: Any) -> None:
    """Print the tests of shift, the most certain changes first, and the answer."""
    tests = sorted((*result.columns, *result.predictions), key=lambda test: (test.corrected, -test.statistic))
    rows = [{"column": test.name, "moved": test.statistic, "p, corrected": test.corrected} for test in tests]
    table(f"{counted(result.new_rows, 'row')} against {result.old_rows:,} calibration rows", rows, limit=20)
    for test in result.changed[:10]:
        note(test.words)
    for text in result.notes:
        note(text)
    say(result.sentence)


def predictions(frame: Any) -> None:
    """The first rows of a table of predictions; with many classes, probabilities are left out."""
    without_probabilities = [name for name in frame.columns if not name.startswith("p(")]
    columns = list(frame.columns) if len(frame.columns) - len(without_probabilities) <= 3 else without_probabilities
    rows = frame[columns].head(20).to_dict("records")
    shown = [{name: ", ".join(cell) if isinstance(cell, list) else cell for name, cell in row.items()} for row in rows]
    table(counted(len(frame), "prediction"), shown)
    if len(frame) > len(rows):
        console.print(f"The first {len(rows)} are shown; -o FILE writes all of them.")
