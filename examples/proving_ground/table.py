"""The table of scores and costs."""

from collections.abc import Sequence

from examples.proving_ground.contest import Result
from examples.proving_ground.tasks import Task

HEAD = ("task", "mixer", "score", "solved", "steps", "seconds", "batch MB", "parameters", "state")


def lines(tasks: Sequence[Task], results: Sequence[Result]) -> list[tuple[str, ...]]:
    """One line a task and mixer, in the order of the tasks."""
    rows = []
    for task in tasks:
        for result in (one for one in results if one.task == task.name):
            rows.append(
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
    return rows


def show(scores: dict[str, float]) -> str:
    """The score at the training length, followed by the named others."""
    rest = ", ".join(f"{name}: {value:.3f}" for name, value in scores.items() if name)
    number = scores[""]
    return (f"{number:.4f}" if number < 0.1 else f"{number:.3f}") + (f" ({rest})" if rest else "")


def glance(tasks: Sequence[Task], results: Sequence[Result]) -> str:
    """Mixers by tasks: the score at the training length, with a star if it counts as solved."""
    scores = {(one.task, one.mixer): one.scores[""] for one in results}

    def cell(task: Task, mixer: str) -> str:
        score = scores.get((task.name, mixer))
        return "" if score is None else show({"": score}) + " *" * task.reached(score)

    mixers = dict.fromkeys(one.mixer for one in results)
    rows = [(mixer, *(cell(task, mixer) for task in tasks)) for mixer in mixers]
    return text(rows, ("mixer", *(task.name for task in tasks)), len(tasks) + 1)


def text(rows: Sequence[tuple[str, ...]], head: Sequence[str] = HEAD, words: int = 4) -> str:
    """A table for a terminal and for Markdown alike; the first columns hold words, the others numbers."""
    table = [tuple(head), *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    aligned = [
        "| "
        + " | ".join(
            cell.ljust(width) if i < words else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        + " |"
        for row in table
    ]
    rule = "|" + "|".join("-" * (width + 1) + ("-" if i < words else ":") for i, width in enumerate(widths)) + "|"
    return "\n".join([aligned[0], rule, *aligned[1:]])


def verdicts(tasks: Sequence[Task], results: Sequence[Result]) -> list[tuple[bool, str]]:
    """Each stated number whose mixer took part: whether it was reached, and a sentence."""
    scores = {(one.task, one.mixer): one.scores for one in results}
    verdicts_ = []
    for task in tasks:
        for claim in task.claims:
            if (had := scores.get((task.name, claim.mixer))) is not None:
                value = had[claim.at]
                met = claim.holds(value)
                verdicts_.append((met, f"{task.name}: {claim.words()} - {'reached' if met else 'MISSED'}, {value:.4f}"))
    return verdicts_
