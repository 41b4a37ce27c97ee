"""Sections of detection and segmentation: boxes and masks over images, precision-recall curves, the worst images, what is missed."""

import re
from collections.abc import Mapping
from typing import Any

from wonderland.understand import charts, page
from wonderland.understand.facts import Facts, is_known, level_of
from wonderland.understand.format import escape, number, percent

_IMAGE = re.compile(r"data:image/png;base64,[A-Za-z0-9+/]+={0,2}")
_LIMIT, _MOST = 400_000, 12


def vision_sections() -> tuple[Any, ...]:
    """The sections of a report on boxes or masks, in order."""
    from wonderland.understand.sections import Section, with_own

    own = {
        "errors": [
            Section("found", "Found", "Found in unseen images", examples),
            Section("precision", "Precision", "Precision and recall", precision),
        ],
        "conformal": [Section("missed", "Missed", "What is missed", missed)],
        "mistakes": [Section("mistakes", "Mistakes", "Images with the most mistakes", mistakes)],
    }
    return with_own(own)


def examples(facts: Facts) -> str:
    """Some images of the test part with what is true and what was found."""
    words = "True boxes are dashed, found ones are drawn with class and probability."
    if (facts.get("vision") or {}).get("by_class") is not None:
        words = "The true mask at the left, the found one at the right."
    return _gallery((facts.get("vision") or {}).get("examples"), words)


def mistakes(facts: Facts) -> str:
    """The images with the most faults."""
    return _gallery(
        (facts.get("vision") or {}).get("mistakes"),
        "Look for wrong annotations first: a missing box counts as a mistake of the model.",
    )


def precision(facts: Facts) -> str:
    """Precision-recall curves of classes and the area under each; for masks the IoU of each class."""
    recorded = facts.get("vision") or {}
    if recorded.get("by_class"):
        bars = charts.bars(
            recorded["by_class"],
            title="IoU by class",
            x_label="intersection over union",
            show=lambda value: number(value, 3),
        )
        return page.figure(bars, head="IoU by class")
    curves = recorded.get("precision") or {}
    if not curves.get("series"):
        return ""
    drawn = charts.curves(
        curves["series"],
        curves["recall"],
        title="Precision and recall",
        x_label="recall",
        y_label="precision",
        log=False,
        most=1.0,
    )
    text = "At an IoU of one half: of the boxes found until a share of the true ones is reached, how many are right."
    areas = sorted(
        (row for row in curves.get("areas") or () if is_known(row.get("value"))), key=lambda row: row["value"]
    )
    bars = charts.bars(
        areas,
        title="Average precision by class",
        x_label="average precision at IoU 0.5",
        show=lambda value: number(value, 3),
    )
    return page.pair(page.figure(drawn, text), page.figure(bars, head="Average precision by class"))


def missed(facts: Facts) -> str:
    """The threshold that bounds what is missed, and what was missed on the test part."""
    risk = (facts.get("vision") or {}).get("risk") or {}
    if not is_known(risk.get("coverage")) or not is_known(risk.get("level")):
        return ""
    noun = str(risk.get("of", "boxes"))
    asked = percent(1 - float(risk["level"]), 0)
    text = (
        f"Boxes with a low score are left out. The threshold was set on the calibration part so that at most {asked} of the true boxes of an "
        "image are missed on average over images like these."
        if noun == "boxes"
        else f"Each pixel has a set of classes: those above a threshold, which was set on the calibration part so that at most {asked} of the "
        "pixels of objects lack their true class, on average over images like these."
    )
    rows = [
        ["Asked", page.Number(f"at most {asked} missed")],
        ["Missed on the test part", page.Number(percent(1 - float(risk["coverage"])))],
        ["Level", page.Number(level_of(risk))],
        ["Threshold of the score", page.Number(number(risk.get("threshold")))],
        [
            "Boxes of an image, on average" if noun == "boxes" else "Classes in a set, on average",
            page.Number(number(risk.get("mean_size"), 3)),
        ],
    ]
    note = page.p(escape(str(risk["note"])), "quiet") if risk.get("note") else ""
    return page.p(escape(text)) + page.table([], rows, "Risk control") + note


def _gallery(pictures: Any, lead: str) -> str:
    shown = [row for row in pictures or () if isinstance(row, Mapping) and _fine(row.get("image"))][:_MOST]
    if not shown:
        return ""
    return page.p(escape(lead)) + f'<div class="gallery wide">{"".join(_figure(row) for row in shown)}</div>'


def _fine(image: Any) -> bool:
    return isinstance(image, str) and len(image) <= _LIMIT and bool(_IMAGE.fullmatch(image))


def _figure(row: Mapping[str, Any]) -> str:
    words, path = str(row.get("words", "")), str(row.get("path", ""))
    return (
        f'<figure title="{escape(path)}"><img src="{escape(row["image"])}" alt="{escape(words)}">'
        f"<figcaption>{escape(words)}</figcaption></figure>"
    )
