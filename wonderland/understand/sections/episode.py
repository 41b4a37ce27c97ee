"""One episode of a policy, as a moving picture."""

import re

from wonderland.understand import page
from wonderland.understand.facts import Facts
from wonderland.understand.format import escape, number

_GIF = re.compile(r"data:image/(?:gif|png);base64,[A-Za-z0-9+/]+={0,2}")
_LIMIT = 4_000_000


def episode(facts: Facts) -> str:
    """The picture with its return, or why there is none."""
    facts_of_episode = facts.get("episode") or {}
    image = facts_of_episode.get("image")
    if isinstance(image, str) and len(image) <= _LIMIT and _GIF.fullmatch(image):
        words = f"One episode with the best action of each moment: return {number(facts_of_episode.get('return'))} in {number(facts_of_episode.get('steps'))} steps."
        return f'<figure><img src="{image}" alt="{escape(words)}"><figcaption>{escape(words)}</figcaption></figure>'
    return page.p(escape(str(facts_of_episode["why"]))) if facts_of_episode.get("why") else ""
