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
    edges = [(a, b) for a, b in (facts.get("edges") or [])[:3000] if a < len(at) and b < len(at)]
    parts = [f"<style>{_style()}</style>", *_lines(edges, at, list(facts.get("attention") or []))]
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


def _lines(edges: list[tuple[int, int]], at: list[tuple[float, float]], attention: list[float]) -> list[str]:
    """Edges as lines, wider the more attention goes along them: four widths, one path each."""
    widths = (0.4, 0.8, 1.6, 2.8)
    paths = ["", "", "", ""]
    for e, (a, b) in enumerate(edges):
        weight = attention[e] if e < len(attention) else 1.0
        step = 1 if not attention else 0 if weight < 0.7 else 1 if weight < 1.3 else 2 if weight < 2 else 3
        paths[step] += f"M{at[a][0]:.0f} {at[a][1]:.0f}L{at[b][0]:.0f} {at[b][1]:.0f}"
    return [
        f'<path class="g" stroke-width="{width}" d="{path}"/>'
        for width, path in zip(widths, paths, strict=True)
        if path
    ]


def _class(code: int) -> str:
    return f"n{code % COLOURS}" if code >= 0 else "nx"


def _style() -> str:
    colours = (
        "212 62% 46%",
        "24 75% 50%",
        "150 60% 38%",
        "275 50% 52%",
        "340 70% 55%",
        "48 85% 45%",
        "195 70% 62%",
        "0 35% 32%",
    )
    dots = "".join(f"svg.wl .n{i}{{fill:hsl({colour})}}" for i, colour in enumerate(colours))
    return dots + "svg.wl .nx{fill:var(--muted)}svg.wl .ring{fill:none;stroke:var(--ink);stroke-width:1.6}"
