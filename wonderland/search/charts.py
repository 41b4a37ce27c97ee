"""Charts of a study: parallel coordinates, and the learning curves of all trials."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from wonderland.search.space import Choice, Space
from wonderland.search.trial import Trial
from wonderland.understand import svg
from wonderland.understand.format import number

MOST_LINES, MOST_AXES = 200, 12


def parallel_coordinates(space: Space, trials: Sequence[Trial], best: Trial, title: str = "Settings and scores") -> str:
    """One line for each trial through its settings and its score at the first rung; the best is thick.

    The stronger the line, the better its rank. A setting that a trial does not have is passed at the bottom.
    """
    sound = sorted((t for t in trials if t.scores), key=lambda trial: (-trial.scores[0], trial.number))
    if not sound:
        return svg.empty_chart(title)
    sound = [sound[i] for i in svg.subsample(len(sound), MOST_LINES)]
    names = space.names[:MOST_AXES]
    wide = max(760.0, 92.0 * (len(names) + 1) + 40)
    top, bottom = 46.0, 236.0
    places = [46 + i * (wide - 92) / len(names) for i in range(len(names) + 1)]
    low, high = svg.span([trial.scores[0] for trial in sound], pad=0)
    scale = svg.Scale(low, high, bottom, top)
    parts = []
    for name, x in zip(names, places, strict=False):
        setting = space.settings[name]
        ends = (setting.choices[0], setting.choices[-1]) if isinstance(setting, Choice) else (setting.low, setting.high)
        parts += [svg.line(x, top, x, bottom, "a"), svg.text(x, 20, svg.fit_text(_short(name), 88), "c b")]
        parts += [
            svg.text(x, 36, svg.fit_text(_shown(ends[1]), 88), "m s c"),
            svg.text(x, bottom + 16, svg.fit_text(_shown(ends[0]), 88), "m s c"),
        ]
    x = places[-1]
    parts += [svg.line(x, top, x, bottom, "a"), svg.text(x, 20, "score", "c b")]
    parts += [svg.text(x, 36, number(high), "m s c"), svg.text(x, bottom + 16, number(low), "m s c")]
    for rank, trial in enumerate([*(t for t in sound if t is not best), best]):
        points = []
        for name, x in zip(names, places, strict=False):
            there = name in trial.settings
            share = space.settings[name].place(trial.settings[name]) if there else -0.05
            points.append((x, bottom - share * (bottom - top)))
        points.append((places[-1], scale(trial.scores[0])))
        path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
        chosen = trial is best
        strength = 1.0 if chosen else 0.08 + 0.5 * ((rank + 1) / len(sound)) ** 2
        style = ' style="stroke-width:3"' if chosen else ' style="stroke-width:1.2"'
        hint = svg.tooltip(f"trial {trial.number}: {describe(trial.settings)}; score {number(trial.scores[0], 4)}")
        parts.append(
            f'<path class="l{1 if chosen else 0}" stroke-opacity="{strength:.2f}"{style} d="{path}">{hint}</path>'
        )
    description = f"{len(sound)} trials over {len(names)} settings; the best is trial {best.number}."
    return svg.chart(parts, bottom + 26, title, description, width=wide)


def trial_curves(trials: Sequence[Trial], best: Trial, title: str = "Learning curves of all trials") -> str:
    """The score over steps for each trial; lines end where a trial was paused, and the best is thick."""
    drawn = [t for t in trials if len(t.curve) > 1 and t is not best]
    drawn = [drawn[i] for i in svg.subsample(len(drawn), MOST_LINES)] + ([best] if best.curve else [])
    points = [(x, y) for trial in drawn for x, y in trial.curve if math.isfinite(y)]
    if len(points) < 2:
        return svg.empty_chart(title, "Nothing to draw: trials were measured once only.")
    values = sorted(y for _, y in points)
    most = values[min(len(values) - 1, int(0.98 * len(values)))]  # a few that diverged do not flatten all others
    log = values[0] > 0 and most > 20 * values[0]
    low, high = (values[0] / 1.1, most * 1.1) if log else svg.span([values[0], most])
    y = svg.Scale(low, high, 232, 30, log=log)
    x = svg.Scale(*svg.span([a for a, _ in points], pad=0), svg.gutter(y.ticks()), svg.WIDTH - 14)
    parts = svg.axes(x, y, "step", "score", top=16)
    for trial in drawn:
        chosen = trial is best
        path = "M" + "L".join(f"{x(a):g} {y(b):g}" for a, b in trial.curve)
        style = ' style="stroke-width:2.6"' if chosen else ' stroke-opacity=".3" style="stroke-width:1.1"'
        hint = svg.tooltip(f"trial {trial.number}: {number(trial.curve[-1][1], 4)} after {trial.curve[-1][0]:g} steps")
        parts.append(f'<path class="l{1 if chosen else 0}"{style} d="{path}">{hint}</path>')
        if not chosen:
            parts.append(svg.dot(x(trial.curve[-1][0]), y(trial.curve[-1][1]), "f0", 1.8))
    return svg.chart(parts, 276, title, f"{len(drawn)} trials; the best is trial {best.number}.")


def describe(settings: Mapping[str, Any]) -> str:
    """Settings in a line."""
    return ", ".join(f"{name} {_shown(value)}" for name, value in settings.items())


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _short(name: str) -> str:
    return name.rpartition(".")[2]
