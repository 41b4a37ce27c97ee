"""The most confident mistakes or largest errors, as images or as rows."""

import re
from collections.abc import Mapping, Sequence

from wonderland.understand import page
from wonderland.understand.facts import Facts, is_known, predicts_values
from wonderland.understand.format import MISSING, escape, number, percent, real
from wonderland.understand.sections.sounds import player

_IMAGE = re.compile(r"data:image/(?:png|jpeg|webp|gif);base64,[A-Za-z0-9+/]+={0,2}")
_MAX_IMAGE_CHARACTERS, _MAX_MISTAKES = 60_000, 24


def mistakes(facts: Facts) -> str:
    """A gallery of images, or a table where there are no images."""
    examples = [m for m in facts.get("mistakes") or () if isinstance(m, Mapping)][:_MAX_MISTAKES]
    if not examples:
        return ""
    with_image = [m for m in examples if _image(m)]
    lead = "Wrong predictions with the highest probability. Check them first for wrong labels, unusual inputs and missing information."
    if predicts_values(facts):
        lead = "The predictions with the largest errors. Check them first for wrong labels and missing information."
    if with_image:
        return page.p(lead) + f'<div class="gallery">{"".join(_thumbnail(m) for m in with_image)}</div>'
    return page.p(lead) + _mistake_table(facts, examples)


def _image(mistake: Facts) -> str:
    image = mistake.get("image")
    return image if isinstance(image, str) and len(image) <= _MAX_IMAGE_CHARACTERS and _IMAGE.fullmatch(image) else ""


def _thumbnail(mistake: Facts) -> str:
    probability = f" <span>{percent(mistake['probability'], 0)}</span>" if is_known(mistake.get("probability")) else ""
    true, predicted = (page.truncate(_name(mistake.get(key)) or MISSING, 40) for key in ("true", "predicted"))
    path = f' title="{escape(mistake["path"])}"' if mistake.get("path") else ""
    alt = escape(f"true {true}, predicted {predicted}")
    return (
        f'<figure{path}><img src="{escape(_image(mistake))}" alt="{alt}" width="96" height="96">'
        f"<figcaption><b>{page.breakable(predicted)}</b>{probability}<br>true: {page.breakable(true)}</figcaption>"
        f"{player(mistake)}</figure>"
    )


def _mistake_table(facts: Facts, examples: Sequence[Facts]) -> str:
    target = str(facts.get("target"))
    keys = [key for key in dict.fromkeys(str(key) for m in examples for key in m.get("row") or {}) if key != target]
    ranked = facts.get("importance")
    ranked = ranked if isinstance(ranked, (list, tuple)) else []
    importance = {str(item.get("name")): real(item.get("value")) or 0.0 for item in ranked}
    keys = sorted(keys, key=lambda key: -importance.get(key, -1e300))
    shown, left = keys[:12], len(keys) - 12
    if predicts_values(facts):
        head = ["true", "predicted", "error"]
        rows = [[m.get("true"), m.get("predicted"), _difference(m)] for m in examples]
        if any(is_known(m.get("low")) and is_known(m.get("high")) for m in examples):
            head.append("interval")
            for row, m in zip(rows, examples, strict=True):
                row.append(page.Number(f"{number(m.get('low'))} to {number(m.get('high'))}"))
    else:
        head = ["true", "predicted", "probability"]
        rows = [
            [_name(m.get("true")), _name(m.get("predicted")), page.Number(percent(m.get("probability")))]
            for m in examples
        ]
    long = bool(facts.get("long_rows"))
    rows = [
        row + [_cell((m.get("row") or {}).get(key), long) for key in shown]
        for row, m in zip(rows, examples, strict=True)
    ]
    if any(m.get("words") for m in examples):
        head.append("words against the true answer")
        for row, m in zip(rows, examples, strict=True):
            words = [str(word.get("word")) for word in m.get("words") or () if isinstance(word, Mapping)]
            row.insert(3, ", ".join(words) or MISSING)
    hidden = "1 more column is" if left == 1 else f"{number(left)} more columns are"
    more = page.p(f"{hidden} not shown.", "quiet") if left > 0 else ""
    return page.table([*head, *shown], rows, "Mistakes", first=False) + more


def _cell(value: object, long: bool) -> object:
    """A cell of a table; with `long`, a text keeps up to 400 characters."""
    return page.Html(page.breakable(page.truncate(value, 400))) if long and isinstance(value, str) else value


def _name(value: object) -> str | None:
    return None if value is None else str(value)


def _difference(mistake: Facts) -> float | None:
    true, predicted = real(mistake.get("true")), real(mistake.get("predicted"))
    return None if true is None or predicted is None else predicted - true
