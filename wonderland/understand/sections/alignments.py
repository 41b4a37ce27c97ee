"""Alignments: a spectrogram with the characters of its text where they begin."""

import re
from collections.abc import Mapping

from wonderland.understand import page
from wonderland.understand.facts import Facts
from wonderland.understand.format import escape
from wonderland.understand.sections.sounds import player

_PNG = re.compile(r"data:image/png;base64,[A-Za-z0-9+/]+={0,2}")
_LIMIT, _MOST = 200_000, 8


def alignments(facts: Facts) -> str:
    """Some recordings with their true texts, aligned by the model."""
    figures = [_figure(entry) for entry in list(facts.get("alignments") or ())[:_MOST] if isinstance(entry, Mapping)]
    figures = [figure for figure in figures if figure]
    if not figures:
        return ""
    lead = "The most likely alignment of true texts: each character stands where the model hears it begin."
    return page.p(lead) + "".join(figures)


def _figure(entry: Mapping) -> str:
    link, text, starts = entry.get("image"), str(entry.get("text") or ""), entry.get("starts") or []
    if not isinstance(link, str) or len(link) > _LIMIT or not _PNG.fullmatch(link) or len(starts) != len(text):
        return ""
    letters = "".join(
        f'<span style="position:absolute;left:{100 * float(start):.1f}%">{escape(letter)}</span>'
        for letter, start in zip(text[:80], starts[:80], strict=True)
        if isinstance(start, int | float) and 0 <= start <= 1
    )
    return (
        f'<figure style="max-width:28rem"><img src="{link}" alt="spectrogram" style="width:100%;height:6rem">'
        f'<div style="position:relative;height:1.5rem" aria-label="{escape(text[:80])}">{letters}</div>{player(entry)}</figure>'
    )
