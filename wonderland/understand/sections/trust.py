"""Whether confidence can be trusted, and sets and intervals with a promise."""

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
    """The reliability diagram, and what the temperature did."""
    found = facts.get("reliability") or {}
    if not found.get("before") and not found.get("after"):
        return ""
    svg = charts.reliability(found.get("before"), found.get("after"))
    said = [
        page.p(
            "Of the answers that the model calls 80 % sure, 80 % should be right. Below the diagonal it is overconfident."
        )
    ]
    rows = [
        [text, page.Number(number(found[key], 2))]
        for key, text in (("ece_before", "Calibration error before"), ("ece_after", "Calibration error after"))
        if is_known(found.get(key))
    ]
    temperature = real(found.get("temperature"))
    if temperature is not None and temperature > 0:
        rows.append(["Temperature", page.Number(number(temperature))])
        said.append(page.p(_temperature(temperature, real(found.get("ece_before")), real(found.get("ece_after")))))
    if rows:
        said.append(page.table([], rows, "Calibration"))
        said.append(
            page.p("Calibration error (ECE) is the mean gap of confidence and accuracy, weighted by examples.", "quiet")
        )
    caption = "Whiskers are 95 % intervals: a point whose whisker meets the diagonal may be off by chance."
    return page.pair(page.figure(svg, caption), "".join(said))


def _temperature(temperature: float, before: float | None, after: float | None) -> str:
    if 0.98 <= temperature <= 1.02:
        return "The temperature found on the validation part is close to one: confidence stays nearly as it was."
    way = "above one lowers" if temperature > 1 else "below one raises"
    text = (
        f"Logits are divided by a temperature of {number(temperature)}, found on the validation part. A temperature "
        f"{way} the stated confidence."
    )
    if before is not None and after is not None and after > before:
        text += " On the test part this did not lower the error."
    return text


def conformal(facts: Facts) -> str:
    """Coverage against its promise, sizes of sets, and coverage by level and by class."""
    found = facts.get("conformal") or {}
    if not (is_known(found.get("coverage")) or found.get("sizes") or found.get("levels")):
        return ""
    values = predicts_values(facts)
    what = "interval" if values else f"set of {choices(facts)}"
    said = []
    if is_known(found.get("level")):
        article = "an" if values else "a"
        text = f"Each prediction comes with {article} {what} made to hold the truth {level_of(found)} of the time."
        said.append(page.p(text))
    said.append(
        page.table(
            [],
            [[name, page.Number(text)] for name, text in _conformal_rows(found, choices(facts))],
            "Conformal prediction",
        )
    )
    said.append(_chance(facts, found))
    empty = real(found.get("empty"))
    if empty:
        said.append(
            page.p(
                f"{number(empty)} {'set is' if empty == 1 else 'sets are'} empty. That is an answer as well: none of the "
                f"{choices(facts)} is as likely as the level demands, so the input is unlike the calibration data or lies "
                f"between {choices(facts)}. Have a person look at it."
            )
        )
    if found.get("note"):
        said.append(page.p(escape(found["note"]), "quiet"))
    figures = []
    if found.get("sizes"):
        sizes = dict(sorted(dict(found["sizes"]).items(), key=lambda item: real(_as_number(item[0])) or 0.0))
        svg = charts.counts(sizes, title="Set sizes", x_label=f"{choices(facts)} in the set", y_label=noun(facts))
        figures.append(page.figure(svg, head="Set sizes"))
    if len(found.get("levels") or ()) > 1:
        svg = charts.coverage(found["levels"])
        figures.append(page.figure(svg, "On the diagonal, the promise is kept at every level.", head="Other levels"))
    per_class = _per_class(facts, found)
    if per_class:
        svg = charts.bars(
            per_class,
            title="Coverage by class",
            x_label="measured coverage, lowest first",
            most=12,
            show=lambda v: percent(v, 0),
        )
        figures.append(page.figure(svg, head="Coverage by class"))
    return page.pair("".join(said) + "".join(figures[1::2]), "".join(figures[::2]))


def _as_number(text: Any) -> Any:
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def _conformal_rows(found: Facts, what: str) -> list[tuple[str, str]]:
    rows = [
        ("Level asked for", level_of(found) if is_known(found.get("level")) else None),
        ("Coverage measured on the test part", percent(found["coverage"]) if is_known(found.get("coverage")) else None),
        (f"{what.capitalize()} in a set, on average", mean_size(found) if is_known(found.get("mean_size")) else None),
        (
            "Width of an interval, on average",
            number(found["mean_width"]) if is_known(found.get("mean_width")) else None,
        ),
        ("Empty sets", number(found["empty"]) if is_known(found.get("empty")) else None),
    ]
    return [(name, text) for name, text in rows if text is not None]


def _chance(facts: Facts, found: Facts) -> str:
    """What the measured coverage may be by chance alone, from the sizes of the calibration and test parts."""
    level, measured, rows = real(found.get("level")), real(found.get("coverage")), unseen_rows(facts)
    if level is None or measured is None or not rows or not 0 < level < 1:
        return ""
    calibration = real((facts.get("split") or {}).get("calibration"))
    reach = 1.96 * math.sqrt(level * (1 - level) * (1 / rows + (1 / (calibration + 2) if calibration else 0)))
    low, high = max(0.0, level - reach), min(1.0, level + reach)
    kept = "is inside, as it should be" if low <= measured <= high else "is above: the sets are wider than needed"
    if measured < low:
        kept = "is below: calibration and test part may differ"
    given = f"{number(rows)} test" + (f" and {number(calibration)} calibration" if calibration else "")
    return page.p(
        f"With {given} examples, chance alone allows {percent(low)} to {percent(high)}. "
        f"The measured {percent(measured)} {kept}."
    )


def _per_class(facts: Facts, found: Facts) -> list[dict[str, Any]]:
    given = found.get("per_class") or {}
    names = [str(c) for c in facts.get("classes") or ()]
    if not isinstance(given, Mapping):
        given = {names[i] if i < len(names) else str(i): value for i, value in enumerate(given)}
    items = [{"name": name, "value": value} for name, value in given.items() if is_known(value)]
    return sorted(items, key=lambda item: float(item["value"]))
