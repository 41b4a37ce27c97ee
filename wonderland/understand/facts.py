"""Reading the facts of a run, any of which may be missing."""

from collections.abc import Mapping
from typing import Any

from wonderland.understand.format import number, percent, real

Facts = Mapping[str, Any]


def is_known(value: Any) -> bool:
    """Whether a value is a finite number."""
    return real(value) is not None and not isinstance(value, bool)


def predicts_values(facts: Facts) -> bool:
    """Whether numbers were predicted, not classes."""
    return bool(facts.get("values", not facts.get("answers") and "mae" in scores(facts)))


def scores(facts: Facts) -> Facts:
    """The metrics of the test part."""
    return (facts.get("metrics") or {}).get("test") or {}


def unseen_rows(facts: Facts) -> float | None:
    """How many rows the test part has."""
    rows = real((facts.get("split") or {}).get("test"))
    if rows is None and facts.get("confusion"):
        rows = sum(real(v) or 0.0 for row in facts["confusion"] for v in row)
    return rows or None


def noun(facts: Facts) -> str:
    """The plural name of examples: "rows", "images", ..."""
    return str(facts.get("noun") or "rows")


def choices(facts: Facts) -> str:
    """The elements of conformal sets: "classes" or "tokens"."""
    return str(facts.get("choices") or "classes")


def unseen(facts: Facts) -> str:
    """The test part as text: "30 unseen rows"."""
    rows = unseen_rows(facts)
    return f"{number(rows)} unseen {noun(facts)}" if rows else f"unseen {noun(facts)}"


def level_of(conformal: Facts) -> str:
    """The nominal level of coverage as a percentage."""
    level = real(conformal.get("level"))
    return percent(level, 0 if level is not None and abs(100 * level - round(100 * level)) < 1e-9 else 1)


def mean_size(conformal: Facts) -> str:
    """The mean number of classes in a set."""
    return f"{float(conformal['mean_size']):.2f}"
