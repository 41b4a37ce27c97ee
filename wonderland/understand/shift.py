"""The page of `wonderland shift`: what changed between the calibration rows of a run and new rows, column by column."""

import shlex
from typing import Any

from wonderland.understand import charts, page
from wonderland.understand.format import escape, number, percent


def shift_page(facts: dict[str, Any]) -> str:
    """One self-contained HTML page from `Shift.to_json()`, with the names of the run and of the data under "run" and "data".

    >>> facts = {"shifted": False, "p_value": 0.4, "level": 0.05, "sentence": "No shift.", "rows": {"reference": 9, "new": 8}}
    >>> "No shift." in shift_page(facts | {"run": "runs/a", "data": "new.csv"})
    True
    """
    answer = "shift found" if facts["shifted"] else "no shift found"
    meta = [("Run", page.code(facts.get("run", ""))), ("Data", page.code(facts.get("data", "")))]
    meta += [("Rows", number(facts["rows"]["new"])), ("Calibration rows", number(facts["rows"]["reference"]))]
    terms = "".join(f"<div><dt>{escape(name)}</dt><dd>{text}</dd></div>" for name, text in meta)
    header = (
        f'<header><p class="eyebrow">Wonderland · {answer}</p><h1>{page.breakable(facts.get("data") or "New data")}</h1>'
        f'<p class="verdict">{escape(facts["sentence"])}</p><dl>{terms}</dl></header>'
    )
    sections = [
        ("answer", "Answer", "Is there a shift?", _answer(facts)),
        ("columns", "Columns", "What changed", _columns(facts.get("columns") or [], facts)),
        ("predictions", "Predictions", "Predictions of the model", _predictions(facts)),
        ("classes", "Classes", "Shares of classes", _classes(facts.get("class_shares") or {})),
        ("next", "Next", "What to do", _next(facts)),
    ]
    return page.frame("Shift: " + str(facts.get("data", "")), header, [section for section in sections if section[3]])


def _answer(facts: dict[str, Any]) -> str:
    rows = [["p-value of all tests", page.Number(number(facts["p_value"], 2))], ["Level", percent(facts["level"], 0)]]
    if together := facts.get("together"):
        rows.append(["All columns together", page.Number(f"p = {number(together['p_value'], 2)}")])
        rows.append(["Area under the curve, old from new", page.Number(number(together["statistic"], 3))])
    notes = "".join(page.p(escape(note), "quiet") for note in facts.get("notes") or ())
    text = page.p(
        "Each column and each prediction is tested on its own, and a classifier tries to tell these rows from those the model was "
        "calibrated on (an area of 0.5: it cannot). p-values are corrected for the number of tests: without any change a "
        f"shift is found in at most {percent(facts['level'], 0)} of cases."
    )
    return page.pair(text + notes, page.table([], rows, "Tests"))


def _columns(columns: list[dict[str, Any]], facts: dict[str, Any]) -> str:
    if not columns:
        return page.p("This kind of data has no columns to compare: see the predictions.")
    order = sorted(columns, key=lambda column: (column["corrected"], -column["statistic"]))
    changed = [column for column in order if column["corrected"] <= facts["level"] / 2]
    words = "".join(f"<li>{page.breakable(column['words'])}</li>" for column in changed[:12])
    text = f"<ul>{words}</ul>" if words else page.p("No column stands out alone.")
    items = [{"name": column["name"], "value": column["statistic"]} for column in order[:12]]
    drawn = charts.bars(items, title="Size of the change", x_label="share that moved, most certain first")
    return page.pair(text, page.figure(drawn, head="Size of the change")) + _tests(order)


def _tests(columns: list[dict[str, Any]]) -> str:
    rows = [
        [
            column["name"],
            page.Number(number(column["statistic"], 3)),
            page.Number(number(column["corrected"], 2)),
            column["words"],
        ]
        for column in columns
    ]
    return page.table(["column", "moved", "p, corrected", "in words"], rows, "Tests of columns")


def _predictions(facts: dict[str, Any]) -> str:
    tested = facts.get("predictions") or []
    text = ""
    if sure := facts.get("confidence"):
        text = page.p(
            f"On calibration rows the model was right in {percent(sure['reference_accuracy'])}, with a mean confidence of "
            f"{percent(sure['reference'])}; on these rows the mean confidence is {percent(sure['new'])}. If only the "
            "inputs changed and probabilities are calibrated, that is the accuracy to expect."
        )
    return text + (_tests(tested) if tested else "")


def _classes(shares: dict[str, dict[str, float]]) -> str:
    if not shares:
        return ""
    ordered = sorted(shares.items(), key=lambda item: -abs(item[1]["now"] - item[1]["before"]))
    rows = [
        [name, page.Number(percent(share["before"])), page.Number(percent(share["now"]))] for name, share in ordered
    ]
    text = page.p(
        "Estimated from the predictions, without labels (expectation and maximisation). It is right if only the shares of "
        "classes changed, and not how a class looks."
    )
    return text + page.table(["class", "before", "estimated now"], rows, "Shares of classes")


def _next(facts: dict[str, Any]) -> str:
    if not facts["shifted"]:
        return page.p("Nothing has to be done. Rows whose labels are known can be measured with wonderland evaluate.")
    run, data = (shlex.quote(str(facts.get(name, name.upper()))) for name in ("run", "data"))
    steps = [("Measure on rows with labels, if there are some", f"wonderland evaluate {run} {data}")]
    if facts.get("class_shares"):
        steps.append(("If only shares of classes changed", f"wonderland predict {run} {data} --label-shift em"))
    steps.append(("Train again with weights towards these rows", f"wonderland fit TRAINING --weight-to {data}"))
    return "".join(page.p(f"{escape(text)}: {page.code(command)}") for text, command in steps)
