"""Sections of generative models: samples, the nearest training examples beside them, and how columns compare."""

import re
from typing import Any

from wonderland.understand import charts, page
from wonderland.understand.facts import Facts, is_known
from wonderland.understand.format import escape, number, percent

_IMAGE = re.compile(r"data:image/png;base64,[A-Za-z0-9+/]+={0,2}")
_LIMIT = 4_000_000


def generated_sections() -> tuple[Any, ...]:
    """The sections of a report on a generative model, in order."""
    from wonderland.understand.sections import Section, with_own

    own = {
        "samples": [
            Section("samples", "Samples", "Samples", samples),
            Section("copies", "Copies", "Beside the nearest training examples", copies),
            Section("marginals", "Columns", "Columns of samples and of unseen rows", columns),
        ]
    }
    return with_own(own)


def samples(facts: Facts) -> str:
    """Samples as a sheet of images or a table of rows."""
    recorded = facts.get("generated") or {}
    words = "Drawn from the model, not chosen."
    if recorded.get("labels"):
        words += f" Classes take turns, in the order {', '.join(map(str, recorded['labels'][:12]))}."
    if is_known(recorded.get("recognised")):
        words += (
            f" A classifier that learned from training images names the class that was asked for in "
            f"{percent(recorded['recognised'])} of samples ({percent(recorded['recognised_real'])} of unseen images)."
        )
    rows = recorded.get("rows") or []
    if rows:
        head = list(rows[0])
        return page.table(head, [[page.show(row.get(name)) for name in head] for row in rows], "Samples") + page.p(
            escape(words)
        )
    return _picture(recorded.get("sheet"), words)


def copies(facts: Facts) -> str:
    """Pairs of a sample and its nearest training example, and the share of samples that are nearer to training than to held-out rows."""
    recorded = facts.get("generated") or {}
    if not is_known(recorded.get("memorised")):
        return ""
    share = (
        f"{percent(recorded['memorised'])} of samples lie nearer to a training example than to an unseen one, of as many of each; "
        "about half do where nothing is copied."
    )
    if recorded.get("pairs"):
        return _picture(recorded["pairs"], "Each sample above, its nearest training image below. " + share)
    words = (
        f" {percent(recorded['exact'])} of samples repeat a training row exactly."
        if is_known(recorded.get("exact"))
        else ""
    )
    return page.p(escape(share + words))


def columns(facts: Facts) -> str:
    """How far the distribution of each column of samples is from that of unseen rows."""
    recorded = facts.get("generated") or {}
    if not recorded.get("marginals"):
        return ""
    bars = charts.bars(
        recorded["marginals"],
        title="Distance of each column",
        x_label="largest difference of distribution functions (0 is equal, 1 apart)",
        show=lambda value: number(value, 3),
    )
    caption = "Columns that differ most first."
    if is_known(recorded.get("correlations")):
        caption += f" Correlations of numbers differ by {number(recorded['correlations'], 3)} on average."
    return page.figure(bars, caption, head="Distance of each column")


def _picture(image: Any, words: str) -> str:
    if not isinstance(image, str) or len(image) > _LIMIT or not _IMAGE.fullmatch(image):
        return ""
    return f'<figure><img src="{image}" alt="{escape(words)}"><figcaption>{escape(words)}</figcaption></figure>'
