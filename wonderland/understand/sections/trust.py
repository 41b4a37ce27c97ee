"""Calibration of probabilities, and conformal prediction sets and intervals."""

import math
from collections.abc import Mapping
from typing import Any

from wonderland.understand import charts, page
from wonderland.understand.facts import (
    Facts,
    choices,
    is_known,
    level_of,
    mean_size,
    noun,
    predicts_values,
    unseen_rows,
)
from wonderland.understand.format import escape, number, percent, real


def calibration(facts: Facts) -> str:
    """The reliability diagram, the calibration error and the temperature."""
    measured = facts.get("reliability") or {}
    if not measured.get("before") and not measured.get("after"):
        return ""
    svg = charts.reliability(measured.get("before"), measured.get("after"))
    paragraphs = [
        page.p(
            "Of the predictions with confidence 80 %, 80 % should be correct. Below the diagonal the model is overconfident."
        )
    ]
    rows = [
        [text, page.Number(number(measured[key], 2))]
        for key, text in (("ece_before", "Calibration error before"), ("ece_after", "Calibration error after"))
        if is_known(measured.get(key))
    ]
    temperature = real(measured.get("temperature"))
    if temperature is not None and temperature > 0:
        rows.append(["Temperature", page.Number(number(temperature))])
        paragraphs.append(
            page.p(_temperature(temperature, real(measured.get("ece_before")), real(measured.get("ece_after"))))
        )
    if rows:
        paragraphs.append(page.table([], rows, "Calibration"))
        paragraphs.append(
            page.p(
                "The expected calibration error (ECE) is the mean gap between confidence and accuracy, weighted by the number of examples.",
                "quiet",
            )
        )
    caption = (
        "Whiskers are 95 % confidence intervals; a whisker that reaches the diagonal means that the gap may be chance."
    )
    return page.pair(page.figure(svg, caption), "".join(paragraphs))


def _temperature(temperature: float, before: float | None, after: float | None) -> str:
    if 0.98 <= temperature <= 1.02:
        return "The temperature fitted on the validation part is close to one: confidences hardly change."
    effect = "above one lowers" if temperature > 1 else "below one raises"
    text = (
        f"Logits are divided by a temperature of {number(temperature)}, fitted on the validation part. A temperature "
        f"{effect} the confidence."
    )
    if before is not None and after is not None and after > before:
        text += " On the test part this did not lower the calibration error."
    return text


def conformal(facts: Facts) -> str:
    """Measured coverage against the level, set sizes, and coverage by level and by class."""
    result = facts.get("conformal") or {}
    if not (is_known(result.get("coverage")) or result.get("sizes") or result.get("levels")):
        return ""
    values = predicts_values(facts)
    kind = "interval" if values else f"set of {choices(facts)}"
    paragraphs = []
    if is_known(result.get("level")):
        article = "an" if values else "a"
        text = f"Each prediction comes with {article} {kind} that contains the true value with probability {level_of(result)}."
        paragraphs.append(page.p(text))
    paragraphs.append(
        page.table(
            [],
            [[name, page.Number(text)] for name, text in _conformal_rows(result, choices(facts))],
            "Conformal prediction",
        )
    )
    paragraphs.append(_expected_range(facts, result))
    empty = real(result.get("empty"))
    if empty:
        paragraphs.append(
            page.p(
                f"{number(empty)} {'set is' if empty == 1 else 'sets are'} empty: none of the {choices(facts)} "
                f"is plausible at this level. Such an input is unlike the calibration data, or ambiguous between "
                f"{choices(facts)}; have a person check it."
            )
        )
    if result.get("note"):
        paragraphs.append(page.p(escape(result["note"]), "quiet"))
    figures = []
    if result.get("sizes"):
        sizes = dict(sorted(dict(result["sizes"]).items(), key=lambda item: real(_as_number(item[0])) or 0.0))
        svg = charts.counts(sizes, title="Set sizes", x_label=f"{choices(facts)} in the set", y_label=noun(facts))
        figures.append(page.figure(svg, head="Set sizes"))
    if len(result.get("levels") or ()) > 1:
        svg = charts.coverage(result["levels"])
        figures.append(page.figure(svg, "On the diagonal, the coverage equals the level.", head="Other levels"))
    per_class = _per_class(facts, result)
    if per_class:
        svg = charts.bars(
            per_class,
            title="Coverage by class",
            x_label="measured coverage, lowest first",
            most=12,
            show=lambda v: percent(v, 0),
        )
        figures.append(page.figure(svg, head="Coverage by class"))
    return page.pair("".join(paragraphs) + "".join(figures[1::2]), "".join(figures[::2]))


def _as_number(text: Any) -> Any:
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def _conformal_rows(result: Facts, choices: str) -> list[tuple[str, str]]:
    rows = [
        ("Level", level_of(result) if is_known(result.get("level")) else None),
        ("Coverage on the test part", percent(result["coverage"]) if is_known(result.get("coverage")) else None),
        (f"Mean set size ({choices})", mean_size(result) if is_known(result.get("mean_size")) else None),
        (
            "Mean interval width",
            number(result["mean_width"]) if is_known(result.get("mean_width")) else None,
        ),
        ("Empty sets", number(result["empty"]) if is_known(result.get("empty")) else None),
    ]
    return [(name, text) for name, text in rows if text is not None]


def _expected_range(facts: Facts, result: Facts) -> str:
    """The 95 % range of the measured coverage, given the sizes of the calibration and test parts."""
    level, measured, rows = real(result.get("level")), real(result.get("coverage")), unseen_rows(facts)
    if level is None or measured is None or not rows or not 0 < level < 1:
        return ""
    calibration = real((facts.get("split") or {}).get("calibration"))
    margin = 1.96 * math.sqrt(level * (1 - level) * (1 / rows + (1 / (calibration + 2) if calibration else 0)))
    low, high = max(0.0, level - margin), min(1.0, level + margin)
    verdict = "is inside this range" if low <= measured <= high else "is above: the sets are larger than needed"
    if measured < low:
        verdict = "is below: calibration and test part may differ"
    sizes = f"{number(rows)} test" + (f" and {number(calibration)} calibration" if calibration else "")
    return page.p(
        f"With {sizes} examples, 95 % of measured coverages lie between {percent(low)} and {percent(high)}. "
        f"The measured {percent(measured)} {verdict}."
    )


def _per_class(facts: Facts, result: Facts) -> list[dict[str, Any]]:
    per_class = result.get("per_class") or {}
    names = [str(c) for c in facts.get("classes") or ()]
    if not isinstance(per_class, Mapping):
        per_class = {names[i] if i < len(names) else str(i): value for i, value in enumerate(per_class)}
    items = [{"name": name, "value": value} for name, value in per_class.items() if is_known(value)]
    return sorted(items, key=lambda item: float(item["value"]))
