"""Sections of taggers: what was measured for each name of a span, tagged sentences, those with the most mistakes, what sets miss."""

from collections.abc import Mapping
from typing import Any

from wonderland.understand import page
from wonderland.understand.facts import Facts, level_of
from wonderland.understand.format import escape, number, percent


def tag_sections() -> tuple[Any, ...]:
    """The sections of a report on tags, in order."""
    from wonderland.understand.sections import Section, with_own

    own = {
        "errors": [
            Section("names", "Names", "Spans by name", names),
            Section("tagged", "Sentences", "Tagged sentences", examples),
        ],
        "conformal": [Section("missed", "Missed", "What sets of tags miss", missed)],
        "mistakes": [Section("mistakes", "Mistakes", "Sentences with the most mistakes", mistakes)],
    }
    return with_own(own)


def names(facts: Facts) -> str:
    """Precision, recall and F1 of each name."""
    each = (facts.get("tagged") or {}).get("each") or ()
    rows = [
        [row["name"], row["spans"], *(page.Number(percent(row[key])) for key in ("precision", "recall", "f1"))]
        for row in each[:200]
    ]
    return page.table(["name", "true spans", "precision", "recall", "F1"], rows, "Spans by name") if rows else ""


def examples(facts: Facts) -> str:
    """Some sentences of the test part."""
    return _sentences(
        (facts.get("tagged") or {}).get("examples"),
        "Words with their predicted tags; where a tag is wrong, the true one follows.",
    )


def mistakes(facts: Facts) -> str:
    """The sentences with the most wrong tags."""
    return _sentences((facts.get("tagged") or {}).get("mistakes"), "Look for wrong annotations first.")


def _sentences(entries: Any, words: str) -> str:
    rows = [row for row in entries or () if isinstance(row, Mapping)]
    return page.p(escape(words)) + "".join(page.p(_sentence(row)) for row in rows) if rows else ""


def _sentence(row: Facts) -> str:
    pieces = []
    for word, guess, true in zip(
        row.get("words") or (), row.get("predicted") or (), row.get("true") or (), strict=False
    ):
        shown = page.breakable(str(word))
        if guess == true == "O":
            pieces.append(shown)
        elif guess == true:
            pieces.append(f"<b>{shown}</b> <small>{escape(str(guess))}</small>")
        else:
            pieces.append(f"<b>{shown}</b> <small><mark>{escape(str(guess))}</mark> true: {escape(str(true))}</small>")
    return " ".join(pieces)


def missed(facts: Facts) -> str:
    """The control of missed tags."""
    risk = (facts.get("tagged") or {}).get("risk")
    if not risk or risk.get("coverage") is None:
        return ""
    text = page.p(
        f"The set of a word holds the tags whose probability reaches {number(risk['threshold'], 3)}. At the {level_of(risk)} level, at most "
        f"{percent(1 - float(risk['level']))} of the words of a sentence are missed on average (conformal risk control); on the test part "
        f"{percent(1 - float(risk['coverage']))} are, with {number(risk['mean_size'], 3)} tags in a set."
    )
    return text + (page.p(escape(str(risk["note"])), "quiet") if risk.get("note") else "")
