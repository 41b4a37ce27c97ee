"""The table: who solved what, and what it took."""

from collections.abc import Sequence

from examples.proving_ground.contest import Result
from examples.proving_ground.tasks import Task

HEAD = ("task", "mixer", "score", "solved", "steps", "seconds", "batch MB", "parameters", "state")


def lines(tasks: Sequence[Task], results: Sequence[Result]) -> list[tuple[str, ...]]:
    """One line a task and mixer, in the order of the tasks."""
    found = []
    for task in tasks:
        for result in (one for one in results if one.task == task.name):
            found.append(
                (
                    task.name,
                    result.mixer,
                    show(result.scores),
                    "yes" if task.reached(result.scores[""]) else "",
                    f"{result.steps:,}",
                    f"{result.seconds:.0f}",
                    f"{result.megabytes:.0f}",
                    f"{result.parameters:,}",
                    f"{result.state:,}",
                )
            )
    return found


def show(scores: dict[str, float]) -> str:
    """The score at the training length, and the others behind it with their names."""
    rest = ", ".join(f"{name}: {value:.3f}" for name, value in scores.items() if name)
    number = scores[""]
    return (f"{number:.4f}" if number < 0.1 else f"{number:.3f}") + (f" ({rest})" if rest else "")


def text(rows: Sequence[tuple[str, ...]]) -> str:
    """The table for a terminal and for Markdown alike."""
    table = [HEAD, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(HEAD))]
    aligned = ["| " + " | ".join(_set(cell, widths[i], i) for i, cell in enumerate(row)) + " |" for row in table]
    rule = (
        "|" + "|".join("-" * (width + 1) + ("-" if i in (0, 1, 2, 3) else ":") for i, width in enumerate(widths)) + "|"
    )
    return "\n".join([aligned[0], rule, *aligned[1:]])


def _set(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column < 4 else cell.rjust(width)


def verdicts(tasks: Sequence[Task], results: Sequence[Result]) -> list[tuple[bool, str]]:
    """Each stated number whose mixer took part: whether it was reached, and a sentence."""
    scores = {(one.task, one.mixer): one.scores for one in results}
    told = []
    for task in tasks:
        for claim in task.claims:
            if (had := scores.get((task.name, claim.mixer))) is not None:
                value = had[claim.at]
                met = claim.holds(value)
                told.append((met, f"{task.name}: {claim.words()} - {'reached' if met else 'MISSED'}, {value:.4f}"))
    return told
