"""Recordings: a spectrogram to look at, and an audio element to listen to."""

import re
from collections.abc import Mapping
from typing import Any

from wonderland.understand import page
from wonderland.understand.facts import Facts
from wonderland.understand.format import escape

_AUDIO = re.compile(r"data:audio/wav;base64,[A-Za-z0-9+/]+={0,2}")
_PNG = re.compile(r"data:image/png;base64,[A-Za-z0-9+/]+={0,2}")
_MOST_CHARACTERS, _MOST = 200_000, 12


def player(example: Mapping[str, Any]) -> str:
    """An audio element for the recording of an example; empty where it has none."""
    link = example.get("audio")
    if not isinstance(link, str) or len(link) > _MOST_CHARACTERS or not _AUDIO.fullmatch(link):
        return ""
    name = escape(page.truncate(str(example.get("path") or "recording"), 60))
    return f'<audio controls preload="none" aria-label="{name}" style="width:100%;min-width:7rem;height:2rem" src="{link}"></audio>'


def sounds(facts: Facts) -> str:
    """Some recordings with their answers."""
    examples = [example for example in facts.get("sounds") or () if isinstance(example, Mapping)][:_MOST]
    figures = [
        f"<figure>{_picture(example)}<figcaption><b>{page.breakable(page.truncate(str(example.get('true')), 60))}</b></figcaption>"
        f"{player(example)}</figure>"
        for example in examples
        if player(example)
    ]
    if not figures:
        return ""
    lead = "Training recordings as log-mel spectrograms: time runs to the right, pitch upwards, bright is loud."
    return page.p(lead) + f'<div class="gallery">{"".join(figures)}</div>'


def _picture(example: Mapping[str, Any]) -> str:
    link = example.get("image")
    if not isinstance(link, str) or len(link) > _MOST_CHARACTERS or not _PNG.fullmatch(link):
        return ""
    return f'<img src="{link}" alt="spectrogram" width="96" height="96">'
