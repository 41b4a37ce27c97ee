"""Pictures of a run on images: augmented samples, and class activation maps."""

import re
from typing import Any

from wonderland.understand import page
from wonderland.understand.facts import Facts
from wonderland.understand.format import escape

_PNG = re.compile(r"data:image/png;base64,[A-Za-z0-9+/]+={0,2}")
_LIMIT, _MOST = 200_000, 12


def pictures(facts: Facts) -> str:
    """Rows of augmented images, and images beside the regions that speak for their predicted class."""
    rows = [list(row) for row in facts.get("augmented") or () if isinstance(row, list | tuple)]
    maps = [entry for entry in facts.get("activation") or () if isinstance(entry, dict)]
    body = ""
    if rows:
        lines = "".join(
            f"<div>{''.join(_image(image, 'augmented') for image in row[:_MOST])}</div>" for row in rows[:_MOST]
        )
        body += "<h3>Augmented images</h3>" + page.p(
            "The first column holds training images as they are, the others what the network is shown in the first epochs. "
            "A change that spoils what should be recognised has to be left out (--augment)."
        ) + lines  # fmt: skip
    if maps:
        cells = "".join(
            f'<figure style="display:inline-block;margin:4px">{_image(entry.get("image"), "image")}{_image(entry.get("map"), "activation map")}'
            f"<figcaption>{_words(entry)}</figcaption></figure>"
            for entry in maps[:_MOST]
        )
        body += "<h3>Where the network looks</h3>" + page.p(
            "Class activation maps (Grad-CAM) of test images: warm regions speak for the predicted class."
        ) + cells  # fmt: skip
    return body


def _words(entry: dict[str, Any]) -> str:
    predicted, true = (page.truncate(str(entry.get(name)), 30) for name in ("predicted", "true"))
    return escape(predicted if predicted == true else f"{predicted}, truly {true}")


def _image(link: Any, about: str) -> str:
    if not isinstance(link, str) or len(link) > _LIMIT or not _PNG.fullmatch(link):
        return ""
    return f'<img style="width:72px;margin:2px;image-rendering:pixelated" alt="{about}" src="{link}">'
