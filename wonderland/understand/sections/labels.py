"""Several labels for each row: what was measured for each label, and how many labels sets hold."""

from wonderland.understand import charts, page
from wonderland.understand.facts import Facts
from wonderland.understand.format import escape, number, percent

MOST = 100


def labels(facts: Facts) -> str:
    """A table of the labels, and the control of missed labels."""
    measured = facts.get("labels") or {}
    each, risk = list(measured.get("each") or ()), measured.get("risk")
    if not each:
        return ""
    rows = [
        [row["label"], *(page.Number(percent(row[name])) for name in ("share", "precision", "recall", "f1")),
         page.Number("" if row["average_precision"] is None else number(row["average_precision"], 3)),
         page.Number(number(row["threshold"], 3))]
        for row in each[:MOST]
    ]  # fmt: skip
    head = ["label", "share of rows", "precision", "recall", "F1", "average precision", "threshold"]
    body = page.p(
        "A label is predicted where its calibrated probability reaches its threshold, which gave the best F1 on validation rows."
    ) + page.table(head, rows, "Labels")
    if len(each) > MOST:
        body += page.p(f"The first {MOST} of {len(each)} labels.", "quiet")
    return body + (_risk(risk) if risk else "")


def _risk(risk: Facts) -> str:
    level = float(risk["level"])
    text = page.p(
        f"Sets at the {level:.0%} level miss at most {percent(1 - level)} of the labels of a row on average, however good the "
        f"model is (conformal risk control). On the test part they hold {percent(risk['held'])} of them and have "
        f"{number(risk['size'], 3)} labels on average."
    )
    if risk.get("note"):
        text += page.p(escape(risk["note"]), "quiet")
    svg = charts.coverage(risk["levels"])
    return "<h3>Missed labels</h3>" + page.pair(
        text, page.figure(svg, "The share of labels that sets hold, by level. On or above the diagonal is as promised.")
    )
