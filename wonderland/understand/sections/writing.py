"""What a language model writes, which tokens it takes for alike, and where it looks."""

from collections.abc import Mapping

from wonderland.understand import charts, page
from wonderland.understand.facts import Facts
from wonderland.understand.format import escape, number


def samples(facts: Facts) -> str:
    """Texts the model wrote, each after what it was given."""
    found = [one for one in facts.get("samples") or () if isinstance(one, Mapping) and one.get("text")][:6]
    if not found:
        return ""
    lead = page.p("Written by the model, token by token. What it was given stands in front, in grey.")
    return lead + "".join(_sample(one) for one in found)


def _sample(one: Facts) -> str:
    heat = one.get("temperature")
    about = (
        "always the likeliest token" if heat == 0 else f"temperature {heat:g}" if isinstance(heat, int | float) else ""
    )
    given = escape(page.cut(str(one.get("prompt") or ""), 400))
    text = escape(page.cut(str(one.get("text")), 2000))
    before = f'<span class="given">{given}</span>' if given else ""
    return f'<figure class="sample"><pre tabindex="0">{before}{text}</pre><figcaption>{escape(about)}</figcaption></figure>'


def neighbours(facts: Facts) -> str:
    """Tokens and their nearest neighbours by the angle of their vectors."""
    found = [one for one in facts.get("neighbours") or () if isinstance(one, Mapping) and one.get("near")][:24]
    if not found:
        return ""
    rows = []
    for one in found:
        near = [n for n in one["near"] if isinstance(n, Mapping)][:6]
        words = ", ".join(
            f"{escape(page.cut(str(n.get('token')), 30))}&nbsp;({number(n.get('cosine'), 2)})" for n in near
        )
        rows.append([page.Html(f"<b>{escape(page.cut(str(one.get('token')), 30))}</b>"), page.Html(words)])
    lead = page.p(
        "Tokens that the model treats alike have vectors that point the same way; in brackets the cosine of the angle."
    )
    return lead + page.table(["token", "nearest neighbours"], rows, "Nearest neighbours")


def attention(facts: Facts) -> str:
    """Maps of a few heads."""
    found = [one for one in facts.get("attention") or () if isinstance(one, Mapping) and one.get("weights")][:8]
    if not found:
        return ""
    figures = [
        page.figure(
            charts.attention(
                one.get("tokens") or (),
                one["weights"],
                title=f"Attention of layer {one.get('layer')}, head {one.get('head')}",
            ),
            head=f"Layer {one.get('layer')}, head {one.get('head')}",
        )
        for one in found
    ]
    lead = page.p(
        "Each row is a token that looks back; the stronger the colour, the more of its attention goes there. · is a space, ↵ a line end."
    )
    return lead + "".join(page.pair(*figures[i : i + 2]) for i in range(0, len(figures), 2))
