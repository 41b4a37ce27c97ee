"""Prediction intervals against true values, and their measured coverage."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from wonderland.understand import svg
from wonderland.understand.format import number, percent, real


def intervals(examples: Sequence[Mapping[str, Any]], *, title: str = "Predicted against true", limit: int = 150) -> str:
    """Predictions over true values for {true, predicted, low, high}: bars are intervals; hollow squares lie outside of them."""
    values = [(real(e.get("true")), real(e.get("predicted")), _bounds(e)) for e in examples or ()]
    points = sorted(((t, p, bounds) for t, p, bounds in values if t is not None and p is not None), key=lambda p: p[:2])
    points = [points[i] for i in svg.subsample(len(points), limit)]
    if not points:
        return svg.empty_chart(title)
    bounded = any(bounds for _, _, bounds in points)
    y_range = svg.span([v for true, predicted, bounds in points for v in (true, predicted, *bounds)], pad=0.03)
    x_range = svg.span([p[0] for p in points], pad=0.03)
    low, high = max(x_range[0], y_range[0]), min(x_range[1], y_range[1])
    entries = [('<circle class="f0" cx="12" r="3"/>', "prediction")]
    if bounded:
        entries = [
            ('<path class="l0" stroke-opacity=".5" d="M12 -7V7"/>' + entries[0][0], "inside the interval"),
            ('<path class="l1" stroke-opacity=".6" d="M12 -7V7"/><path class="h1" d="M9 -3h6v6h-6z"/>', "outside"),
        ]
    parts, top = svg.legend([*entries, ('<path class="a dd" d="M0 0H25"/>', "perfect")], 16)
    y = svg.Scale(*y_range, top + 312, top + 24)
    x = svg.Scale(*x_range, svg.gutter(y.ticks()), svg.WIDTH - 14)
    parts += [*svg.axes(x, y, "true value", "predicted value"), svg.line(x(low), y(low), x(high), y(high), "a dd")]
    missed = 0
    for true, predicted, bounds in points:
        outside = bool(bounds) and not bounds[0] <= true <= bounds[1]
        missed += outside
        px, py = x(true), y(predicted)
        hint = f"true {number(true)}, predicted {number(predicted)}"
        bar = ""
        if bounds:
            path = f"M{px:g} {y(bounds[0]):g}V{y(bounds[1]):g}"
            bar = f'<path class="l{int(outside)}" stroke-opacity=".38" style="stroke-width:1.4" d="{path}"/>'
            hint += f", interval {number(bounds[0])} to {number(bounds[1])}"
        mark = svg.square(px, py, "h1", 3) if outside else svg.dot(px, py, "f0", 2.8)
        parts.append(f"<g>{bar}{mark}{svg.tooltip(hint)}</g>")
    description = f"{len(points)} examples" + (f", {missed} outside their interval" if bounded else "")
    return svg.chart(parts, y.start + 44, title, description)


def _bounds(example: Mapping[str, Any]) -> tuple[float, ...]:
    """Both ends of an interval, or an empty tuple."""
    low, high = real(example.get("low")), real(example.get("high"))
    return () if low is None or high is None else (low, high)


def coverage(points: Sequence[Mapping[str, Any]], *, title: str = "Coverage by level") -> str:
    """Measured coverage against the nominal level, for {level, coverage} pairs."""
    values = [(real(p.get("level")), real(p.get("coverage"))) for p in points or ()]
    pairs = sorted((a, b) for a, b in values if a is not None and b is not None)
    pairs = [pairs[i] for i in svg.subsample(len(pairs), 60)]
    if not pairs:
        return svg.empty_chart(title)
    low = max(0.0, min(0.9, math.floor(10 * min(min(p) for p in pairs) - 0.5) / 10))
    y, x = svg.Scale(low, 1, 250, 30), svg.Scale(low, 1, 48, svg.WIDTH - 20)
    ticks = [(value, percent(value, 0)) for value, _ in x.ticks()]
    parts = svg.axes(x, y, "nominal level", "measured coverage", x_ticks=ticks, y_ticks=ticks, top=16)
    parts.append(svg.line(x(low), y(low), x(1), y(1), "a dd"))
    if len(pairs) > 1:
        parts.append(f'<path class="l0" d="M{"L".join(f"{x(a):g} {y(b):g}" for a, b in pairs)}"/>')
    for level, measured in pairs:
        hint = svg.tooltip(f"level {percent(level)}: measured {percent(measured)}")
        parts.append(svg.dot(x(level), y(measured), "f0", inner=hint))
    description = "; ".join(f"level {percent(a)}, measured {percent(b)}" for a, b in pairs[:10])
    return svg.chart(parts, 294, title, description)
