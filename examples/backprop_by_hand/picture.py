"""The computational graph as a picture: values flow right, gradients left."""

from wonderland.understand import svg

WIDE, TALL = 560, 234
BOXES = {
    "x": (36, 96),
    "z": (146, 96),
    "h": (246, 96),
    "o": (346, 96),
    "L": (436, 96),
    "J": (524, 96),
    "W₁": (92, 192),
    "W₂": (300, 150),
    "s": (436, 192),
}
ARROWS = [
    ("x", "z"),
    ("z", "h"),
    ("h", "o"),
    ("o", "L"),
    ("L", "J"),
    ("W₁", "z"),
    ("W₂", "o"),
    ("W₁", "s"),
    ("W₂", "s"),
    ("s", "J"),
]
BACK = {
    ("h", "z"): "∂h ⊙ φ′(z)",
    ("o", "h"): "W₂ᵀ ∂o",
    ("L", "o"): "∂L/∂o",
    ("z", "x"): "W₁ᵀ ∂z",
}


def graph() -> str:
    """The graph of the objective, with the gradient on each edge."""
    parts = [
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" style="fill:var(--muted)"/></marker>'
        '<marker id="back" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" style="fill:var(--s1)"/></marker></defs>'
    ]
    for start, end in ARROWS:
        parts.append(_arrow(BOXES[start], BOXES[end], "a", "tip"))
    for (start, end), words in BACK.items():
        (a, b), (c, _) = BOXES[start], BOXES[end]
        way = f"M{a - 6:g} {b - 17:g}Q{(a + c) / 2:g} {b - 44:g} {c + 8:g} {b - 18:g}"
        parts.append(f'<path class="l1 d" marker-end="url(#back)" style="stroke-width:1.3" d="{way}"/>')
        parts.append(svg.text((a + c) / 2, b - 38, words, "s c", ' style="fill:var(--s1)"'))
    parts.append(svg.text(92, 224, "∂W₁ = ∂z xᵀ + λW₁", "s c", ' style="fill:var(--s1)"'))
    parts.append(svg.text(300, 181, "∂W₂ = ∂o hᵀ + λW₂", "s c", ' style="fill:var(--s1)"'))
    for name, (a, b) in BOXES.items():
        parts.append(f'<circle class="h0" cx="{a}" cy="{b}" r="16"/>' + svg.text(a, b + 4.5, name, "b c"))
    parts.append(svg.text(14, 22, "z = W₁x,  h = φ(z),  o = W₂h,  J = L(o, y) + s,  s = ½λ(‖W₁‖² + ‖W₂‖²)"))
    return svg.chart(parts, TALL, "Backpropagation through one hidden layer", "Values forward, gradients back", WIDE)


def _arrow(start: tuple[float, float], end: tuple[float, float], classes: str, tip: str) -> str:
    (a, b), (c, d) = start, end
    length = ((c - a) ** 2 + (d - b) ** 2) ** 0.5
    u, v = (c - a) / length, (d - b) / length
    way = f"M{a + 17 * u:.1f} {b + 17 * v:.1f}L{c - 18 * u:.1f} {d - 18 * v:.1f}"
    return f'<path class="{classes}" marker-end="url(#{tip})" d="{way}"/>'
