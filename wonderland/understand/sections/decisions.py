"""Decisions: thresholds tuned for a metric, costs, and the coverage-risk curve of answers left to a person."""

from wonderland.understand import page
from wonderland.understand.facts import Facts
from wonderland.understand.format import number, percent


def decisions(facts: Facts) -> str:
    """What tuned thresholds, costs and abstention come to on the test part."""
    measured = facts.get("decisions") or {}
    parts = []
    if decided := measured.get("decided_by"):
        name = str(decided["metric"]).replace("_", " ")
        rows = [["By tuned thresholds", decided["value"]], ["By the most probable class", decided["most_probable"]]]
        parts.append(page.p(f"Thresholds were tuned for {name} on validation rows, which are no part of the test."))
        parts.append(page.table(["", name], rows, "Thresholds"))
    if cost := measured.get("cost"):
        rows = [["Cheapest decision", cost["chosen"]]]
        rows += [["Most probable class", cost["most_probable"]]] if "most_probable" in cost else []
        parts.append(page.p("Each row gets the decision with the smallest expected cost."))
        parts.append(page.table(["", "mean cost"], rows, "Costs"))
    if rule := measured.get("abstention"):
        risk = "none" if rule["risk"] is None else percent(rule["risk"])
        parts.append(
            page.p(
                f"{percent(rule['answered'])} of the rows are answered, the others are left to a person. Wrong among the "
                f"answers: {risk}, where at most {percent(rule['asked'])} was asked; on calibration rows the bound is "
                f"{percent(rule['bound'])}, with 95 % confidence."
            )
        )
        curve = [[percent(point["coverage"]), page.Number(number(point["risk"], 3))] for point in rule["curve"][4::5]]
        parts.append(page.table(["answered, surest first", "wrong among them"], curve, "Coverage and risk"))
    return "".join(parts)
