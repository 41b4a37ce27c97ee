"""The report of a study: one HTML page in the form of the report of a run."""

from collections.abc import Mapping
from typing import Any

from wonderland.search.charts import describe, parallel_coordinates, trial_curves
from wonderland.search.importance import importance
from wonderland.search.pareto import pareto_front
from wonderland.search.study import Study
from wonderland.search.trial import Trial
from wonderland.understand import page
from wonderland.understand.charts import bars, duration, escape, number, percent, scatter, size


def render(study: Study, facts: Mapping[str, Any] | None = None) -> str:
    """One self-contained page. `facts`: title, kind, watch (what the score is), metrics of the winner on the test part, disk bytes."""
    facts, best = facts or {}, study.best
    written = [
        ("winner", "Winner", "The winner", _winner(study, best, facts)),
        ("settings", "Settings", "Settings and scores", _settings(study, best)),
        ("rungs", "Curves", "Learning curves", _curves(study, best)),
        ("front", "Front", "Score against cost", _front(study)),
        ("price", "Price", "What it took", _price(study, facts)),
        ("trials", "Trials", "All trials", _trials(study)),
    ]
    title = str(facts.get("title") or "A study")
    return page.frame(f"Search: {title}", _header(study, best, title, facts), [row for row in written if row[3]])


def verdict(study: Study, best: Trial, facts: Mapping[str, Any]) -> str:
    """The study in one sentence, as plain text."""
    watch = facts.get("watch") or "score"
    failed = sum(trial.failed is not None for trial in study.trials)
    lost = f"; {failed} of them failed" if failed else ""
    return f"Trial {best.number} of {len(study.trials)} has the smallest {watch}, {number(best.score, 4)}{lost}."


def _header(study: Study, best: Trial, title: str, facts: Mapping[str, Any]) -> str:
    words = ("Wonderland search", facts.get("kind"), type(study.tuner).__name__)
    eyebrow = " · ".join(escape(word) for word in words if word)
    return (
        f'<header><p class="eyebrow">{eyebrow}</p><h1>{page.breakable(title)}</h1>'
        f'<p class="verdict">{escape(verdict(study, best, facts))}</p></header>'
    )


def _winner(study: Study, best: Trial, facts: Mapping[str, Any]) -> str:
    rows = [[name, _value(best.settings.get(name))] for name in study.space.names if name in best.settings]
    chosen = page.table(["setting", "value"], rows, "Settings of the winner")
    metrics = [
        [str(name), value] for name, value in (facts.get("metrics") or {}).items() if isinstance(value, int | float)
    ]
    measured = page.table(["on the test part", "value"], metrics, "Test metrics of the winner")
    note = "The winner was chosen by the validation part alone; the test part was read once, after the choice."
    return page.pair(chosen, measured) + (page.p(escape(note), "quiet") if metrics else "")


def _value(value: Any) -> Any:
    return value if isinstance(value, str) or value is None or isinstance(value, bool) else float(f"{value:.6g}")


def _settings(study: Study, best: Trial) -> str:
    lines = page.figure(
        parallel_coordinates(study.space, study.trials, best),
        "A line for each trial, from setting to setting to its score at the first rung (smaller is better). The winner is thick.",
        wide=True,
    )
    shares = importance(study.space, study.trials)
    if not shares:
        return lines + page.p(
            "With fewer than six measured trials, the importance of settings is not estimated.", "quiet"
        )
    weights = page.figure(
        bars(
            shares, title="Importance of settings", x_label="share of the spread of ranks", show=lambda v: percent(v, 0)
        ),
        "What each setting explains by itself, less what chance would give; interactions are not seen.",
        head="Importance",
    )
    first = shares[0]["name"]
    known = [
        (trial.settings[first], trial.scores[0]) for trial in study.trials if trial.scores and first in trial.settings
    ]
    if any(isinstance(x, str | bool) for x, _ in known):
        return lines + weights
    points = scatter(
        [x for x, _ in known],
        [y for _, y in known],
        title=f"Score by {first}",
        x_label=first,
        y_label="score at the first rung",
    )
    return lines + page.pair(weights, page.figure(points, "One point for each trial.", head=f"Score by {first}"))


def _curves(study: Study, best: Trial) -> str:
    rungs = len(study.tuner.shares)
    about = f" Of {rungs} rungs; a line that ends early belongs to a trial that was paused." if rungs > 1 else ""
    return page.figure(
        trial_curves(study.trials, best), f"The score over steps, a line for each trial; the winner is thick.{about}"
    )


def _front(study: Study) -> str:
    """The trials that no other beats in both objectives; empty with one objective."""
    known = [trial for trial in study.trials if trial.scores and trial.cost is not None]
    front = pareto_front(study.trials)
    if len(known) < 2 or not front:
        return ""
    name = str(study.about.get("against") or "cost")
    points = scatter(
        [float(trial.cost or 0) for trial in known],
        [trial.scores[-1] for trial in known],
        title=f"Score by {name}",
        x_label=name,
        y_label="score",
    )
    rows = [[trial.number, trial.score, _value(trial.cost), describe(trial.settings)] for trial in front]
    table = page.table(["trial", "score", name, "settings"], rows, "Trials that no other beats in both")
    return page.figure(points, "One point for each trial.") + table


def _price(study: Study, facts: Mapping[str, Any]) -> str:
    trials, shares = study.trials, study.tuner.shares
    spent = sum(shares[trial.rung] for trial in trials if trial.scores)
    rows: list[list[Any]] = [
        ["trials", len(trials)],
        ["failed", sum(trial.failed is not None for trial in trials)],
        *([["begun again, their machine lost", lost]] if (lost := sum(trial.restarts for trial in trials)) else []),
        ["steps of training", sum(trial.steps[-1] for trial in trials if trial.steps)],
        ["time of all trials together", page.Html(escape(duration(sum(trial.seconds for trial in trials))))],
        ["whole trainings that this amounts to", round(spent, 2)],
    ]
    if facts.get("disk") is not None:
        rows.append(["disk", page.Html(escape(size(facts["disk"])))])
    table = page.table(["", ""], rows, "Price")
    if len(shares) < 2:
        return table
    counts = [
        [f"{percent(share, 0)} of a training", sum(trial.rung >= k for trial in trials)]
        for k, share in enumerate(shares)
    ]
    return page.pair(table, page.table(["rung", "trials that reached it"], counts, "Rungs"))


def _trials(study: Study) -> str:
    order = sorted(study.trials, key=lambda trial: (-trial.rung, trial.score, trial.number))
    rows = []
    for trial in order:
        state = trial.state if trial.failed is None else f"failed: {trial.failed}"
        score = None if not trial.scores else trial.scores[-1]
        rows.append(
            [
                trial.number,
                score,
                trial.rung + 1,
                trial.steps[-1] if trial.steps else None,
                describe(trial.settings),
                state,
            ]
        )
    return page.table(["trial", "score", "rungs", "steps", "settings", "state"], rows, "All trials")
