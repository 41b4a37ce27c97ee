"""A network: nodes as dots in the colours of their classes, edges as lines, mistakes ringed."""

from collections.abc import Mapping
from typing import Any

from wonderland.understand import svg

SIDE = 640
COLOURS = 8


def network(facts: Mapping[str, Any], title: str = "The graph") -> str:
    """Dots at places in [0, 1] joined by edges; see `drawing` in the facts of a run."""
    places = facts.get("places") or []
    if not places:
        return svg.empty_chart(title)
    names, classes = list(facts.get("names") or []), list(facts.get("classes") or [])
    wrong, legend = list(facts.get("wrong") or []), list(facts.get("class_names") or [])
    at = [(12 + x * (SIDE - 24), 12 + y * (SIDE * 0.72 - 24)) for x, y in places]
    lines = "".join(
        f"M{at[a][0]:.0f} {at[a][1]:.0f}L{at[b][0]:.0f} {at[b][1]:.0f}"
        for a, b in (facts.get("edges") or [])[:3000]
        if a < len(at) and b < len(at)
    )
    parts = [f"<style>{_style()}</style>", f'<path class="g" stroke-width=".8" d="{lines}"/>']
    for i, (x, y) in enumerate(at):
        code = classes[i] if i < len(classes) else -1
        words = names[i] if i < len(names) else str(i)
        if 0 <= code < len(legend):
            words += f": {legend[code]}"
        missed = i < len(wrong) and wrong[i]
        ring = f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="7.5"/>' if missed else ""
        parts.append(
            f"<g>{ring}{svg.dot(x, y, _class(code), 4.2)}{svg.tooltip(words + (' (mistaken)' if missed else ''))}</g>"
        )
    bottom, left = SIDE * 0.72 + 6, 12.0
    for code, name in enumerate(legend[:COLOURS]):
        label = svg.fit_text(name, 150)
        wide = 22 + svg.text_width(label)
        if left + wide > SIDE - 12:
            left, bottom = 12.0, bottom + 20
        parts.append(svg.dot(left + 5, bottom + 10, _class(code), 4.2) + svg.text(left + 14, bottom + 14, label, "s"))
        left += wide
    said = f"{len(places)} nodes and {len(facts.get('edges') or [])} edges"
    return svg.chart(parts, bottom + 26, title, said, SIDE)


def _class(code: int) -> str:
    return f"n{code % COLOURS}" if code >= 0 else "nx"


def _style() -> str:
    hues = (212, 24, 160, 268, 340, 48, 190, 100)
    dots = "".join(f"svg.wl .n{i}{{fill:hsl({hue} 62% 46%)}}" for i, hue in enumerate(hues))
    return dots + "svg.wl .nx{fill:var(--muted)}svg.wl .ring{fill:none;stroke:var(--ink);stroke-width:1.6}"
