"""The data: split, class balance, repairs, and columns."""

from collections.abc import Mapping

from wonderland.understand import charts, page
from wonderland.understand.facts import Facts, is_known, noun
from wonderland.understand.format import escape, number, percent

_USED_FOR = {
    "train": "training the weights",
    "validation": "early stopping, temperature",
    "calibration": "conformal sets and intervals",
    "test": "the metrics on this page",
}


def data(facts: Facts) -> str:
    """Parts, class balance, findings and columns."""
    body = page.pair(_split(facts), _balance(facts))
    findings = [f for f in facts.get("findings") or () if isinstance(f, Mapping)]
    if findings:
        texts = [page.Html(page.breakable(page.truncate(str(f.get("text") or ""), 400))) for f in findings]
        rows = [
            [f.get("subject"), f.get("kind"), f.get("count"), text] for f, text in zip(findings, texts, strict=True)
        ]
        body += "<h3>Repairs and omissions</h3>" + page.table(
            ["where", "kind", "count", "description"], rows, "Findings"
        )
    columns = [c for c in facts.get("columns") or () if isinstance(c, Mapping)]
    if columns:
        keys = list(dict.fromkeys(str(key) for column in columns for key in column))[:10]
        rows = [[column.get(key) for key in keys] for column in columns]
        head = str(facts.get("columns_title") or "Columns")
        body += f"<h3>{head}</h3>" + page.table(keys, rows, head)
    return body


def _split(facts: Facts) -> str:
    split = {str(k): float(v) for k, v in (facts.get("split") or {}).items() if is_known(v)}
    text = ""
    if split:
        total = sum(split.values()) or 1.0
        rows = [
            [n, page.Number(number(v)), page.Number(percent(v / total, 0)), _USED_FOR.get(n, "")]
            for n, v in split.items()
        ]
        text = "<h3>Split</h3>" + page.table(["part", noun(facts), "share", "used for"], rows, "Parts of the data")
        text += page.p(escape(facts["split_note"]), "quiet") if facts.get("split_note") else ""
    if facts.get("findings") is not None and not facts["findings"]:
        text += page.p("No repairs or omissions were needed.", "quiet")
    return text


def _balance(facts: Facts) -> str:
    items = [{"name": str(k), "value": v} for k, v in (facts.get("balance") or {}).items() if is_known(v)]
    if not items:
        return ""
    items.sort(key=lambda item: -float(item["value"]))
    rest = f"… and {len(items) - 15} more classes, the smallest with {number(items[-1]['value'])}."
    svg = charts.bars(items, title="Class balance", x_label=f"{noun(facts)} of each class", most=15)
    return page.figure(svg, rest if len(items) > 15 else "", head="Class balance")
