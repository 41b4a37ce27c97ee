"""The reliability diagram: accuracy against confidence."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from wonderland.understand import svg
from wonderland.understand.format import number, percent, real, wilson

Bin = Mapping[str, Any]


def reliability(
    before: Sequence[Bin] | None, after: Sequence[Bin] | None = None, *, title: str = "Reliability diagram"
) -> str:
    """Accuracy against confidence, before and after temperature scaling, with the number of examples below.

    Whiskers are 95 % confidence intervals of the last series; one that reaches the diagonal means that the gap may be chance.
    """
    groups = [("before", _bins(before), 1), ("after", _bins(after), 0)]
    groups = [(name, bins, colour) for name, bins, colour in groups if bins]
    if not groups:
        return svg.empty_chart(title, "Nothing to draw: no bins with examples.")
    if len(groups) == 1:
        groups = [("measured", groups[0][1], 0)]
    samples = {
        0: '<path class="l0" d="M0 0H25"/><circle class="f0" cx="12.5" r="3.6"/>',
        1: '<path class="l1 d" d="M0 0H25"/><path class="h1" d="M9 -3.5h7v7h-7z"/>',
    }
    entries = [
        (samples[colour], "after temperature scaling" if name == "after" else name) for name, _, colour in groups
    ]
    parts, top = svg.legend([*entries, ('<path class="a dd" d="M0 0H25"/>', "perfect")], 16)
    y = svg.Scale(0, 1, top + 258, top + 26)
    least = min(0.9, math.floor(10 * min(c for _, bins, _ in groups for c, _, _ in bins)) / 10)
    x = svg.Scale(max(0.0, least), 1, 44, svg.WIDTH - 14)
    ticks = [(i / 5, f"{20 * i}\xa0%") for i in range(6)]
    parts += [
        svg.line(x.start, y(v), x.end, y(v), "g") + svg.text(x.start - 6, y(v) + 4, label, "m s e")
        for v, label in ticks
    ]
    parts += [svg.text(8, top + 10, "accuracy", "m"), svg.line(x(x.low), y(x.low), x(1), y(1), "a dd")]
    for _, bins, colour in groups:
        parts += _reliability_line(bins, x, y, colour, whiskers=colour == 0)
    floor = y.start + 62
    parts += _count_bars(groups, x, y.start + 20, floor)
    parts += [svg.line(x.start, floor, x.end, floor, "a"), svg.text(x.start, y.start + 18, "examples", "m s")]
    marks = [(v, percent(v, 0)) for v, _ in x.ticks()]
    parts += [svg.text(x(v), floor + 16, label, "m s c" if v < 0.99 else "m s e") for v, label in marks]
    parts.append(svg.text((x.start + x.end) / 2, floor + 34, "confidence", "m c"))
    worst = max(groups[-1][1], key=lambda b: abs(b[0] - b[1]) * b[2])
    description = f"{len(groups[-1][1])} bins; the largest weighted gap: confidence {percent(worst[0])}, "
    description += f"accuracy {percent(worst[1])}"
    return svg.chart(parts, floor + 42, title, description)


def _bins(bins: Sequence[Bin] | None) -> list[tuple[float, float, float]]:
    values = [(real(b.get("confidence")), real(b.get("accuracy")), real(b.get("count"))) for b in bins or ()]
    kept = [(c, a, n) for c, a, n in values if c is not None and a is not None and n is not None and n > 0]
    return [kept[i] for i in svg.subsample(len(kept), 60)]


def _reliability_line(
    bins: list[tuple[float, float, float]], x: svg.Scale, y: svg.Scale, colour: int, whiskers: bool
) -> list[str]:
    parts = []
    for confidence, accuracy, count in bins if whiskers else ():
        low, high = wilson(min(max(accuracy, 0.0), 1.0), count)
        parts.append(f'<path class="l0" stroke-opacity=".45" d="M{x(confidence):g} {y(low):g}V{y(high):g}"/>')
    most = max(count for _, _, count in bins)
    if len(bins) > 1:
        path = "L".join(f"{x(c):g} {y(a):g}" for c, a, _ in bins)
        parts.append(f'<path class="l{colour}{" d" if colour else ""}" stroke-opacity=".55" d="M{path}"/>')
    for confidence, accuracy, count in bins:
        hint = svg.tooltip(f"confidence {percent(confidence)}, accuracy {percent(accuracy)}, {number(count)} examples")
        mark = svg.square if colour else svg.dot
        radius = 2.4 + 2.6 * math.sqrt(count / most)
        parts.append(mark(x(confidence), y(accuracy), "h1" if colour else "f0", radius, hint))
    return parts


def _count_bars(
    groups: list[tuple[str, list[tuple[float, float, float]], int]], x: svg.Scale, top: float, floor: float
) -> list[str]:
    """The number of examples of each bin as thin bars, side by side."""
    most = max(n for _, bins, _ in groups for _, _, n in bins)
    parts = []
    for place, (_, bins, colour) in enumerate(groups):
        shift = (place - (len(groups) - 1) / 2) * 6 - 2.5
        for confidence, _, count in bins:
            tall = max(1.0, round((floor - top - 4) * count / most, 1))
            left = min(max(x(confidence) + shift, x.start), x.end - 5)
            bar = svg.rect(
                left, floor - tall, 5, tall, "h1" if colour else "f0", inner=svg.tooltip(f"{number(count)} examples")
            )
            parts.append(bar)
    return parts
