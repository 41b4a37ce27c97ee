"""Pictures of a run on images: augmented samples, activation and attention maps, and what layers give."""

import re
from typing import Any

from wonderland.understand import page
from wonderland.understand.facts import Facts
from wonderland.understand.format import escape

_PNG = re.compile(r"data:image/png;base64,[A-Za-z0-9+/]+={0,2}")
_LIMIT, _MOST = 200_000, 12


def pictures(facts: Facts) -> str:
    """Rows of augmented images, images beside the regions that speak for their class, and sheets of maps."""
    rows = [list(row) for row in facts.get("augmented") or () if isinstance(row, list | tuple)]
    maps = [entry for entry in facts.get("activation") or () if isinstance(entry, dict)]
    attention, sheets = (
        [entry for entry in facts.get(name) or () if isinstance(entry, dict)] for name in ("attention", "layers")
    )
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
        body += "<h3>Where the network looks</h3>" + page.p(
            "Class activation maps (Grad-CAM) of test images: warm regions speak for the predicted class."
        ) + _pairs(maps, "activation map")  # fmt: skip
    if attention:
        body += "<h3>Attention</h3>" + page.p(
            "The attention of all layers multiplied (rollout): from the warm patches, information reaches the answer."
        ) + _pairs(attention, "attention map")  # fmt: skip
    if sheets:
        body += "<h3>Inside the network</h3>" + page.p(
            "What single layers give for test images, one small picture for each channel (the first 64)."
        ) + "".join(_sheet(entry) for entry in sheets[:_MOST])  # fmt: skip
    return body


def _pairs(entries: list[dict[str, Any]], about: str) -> str:
    """Images beside their maps."""
    return "".join(
        f'<figure style="display:inline-block;margin:4px">{_image(entry.get("image"), "image")}{_image(entry.get("map"), about)}'
        f"<figcaption>{_words(entry)}</figcaption></figure>"
        for entry in entries[:_MOST]
    )


def _sheet(entry: dict[str, Any]) -> str:
    words = page.truncate(str(entry.get("words", "")), 80)
    image = _image(entry.get("image"), "maps of a layer", width=160)
    return f'<figure style="display:inline-block;margin:4px">{image}<figcaption>{escape(words)}</figcaption></figure>'


def _words(entry: dict[str, Any]) -> str:
    if "predicted" not in entry:
        return ""
    predicted, true = (page.truncate(str(entry.get(name)), 30) for name in ("predicted", "true"))
    return escape(predicted if predicted == true else f"{predicted}, truly {true}")


def _image(link: Any, about: str, width: int = 72) -> str:
    if not isinstance(link, str) or len(link) > _LIMIT or not _PNG.fullmatch(link):
        return ""
    return f'<img style="width:{width}px;margin:2px;image-rendering:pixelated" alt="{about}" src="{link}">'
