"""The report of a fitted model: facts in, one HTML file out, that opens anywhere and asks the network for nothing.

`render(facts)` is a pure function of a plain dictionary (JSON values only). Every key may be missing or None; a section
without facts is left out. Numbers may be NaN. All text is escaped, lists are cut to a bounded size, and images are
taken only as base64 data URIs of PNG, JPEG, WebP or GIF.

    title         str, what was fitted                    source   str, where the data came from
    kind          "table" | "image"                       task     "binary" | "multiclass" | "regression"
    target        str, name of the target column          noun     str, what a row is ("digits"; else rows or images)
    when          str, date of the fit                    verdict  str, replaces the sentence made from the facts
    classes       [str] in code order                     rows     int, rows in all
    metrics       {part: {name: value}}, parts train, validation, calibration, test; names accuracy, balanced_accuracy,
                  log_loss, auroc, mae, rmse, r2, or any other
    curves        {"steps": [step], "train": [value], "validation": [value], any other series, "best": step,
                  "name": "loss", "unit": "step", "log": bool}, or a list of these; None = not measured at this step
    confusion     [[count]] of the test part, row = true class, column = predicted class
    reliability   {"before": bins, "after": bins, "ece_before", "ece_after", "temperature"},
                  bins = [{"confidence", "accuracy", "count"}]
    conformal     {"level", "coverage", "levels": [{"level", "coverage"}], "note": str} and, for classes, {"mean_size",
                  "sizes": {size: count}, "per_class": {class: coverage}, "empty": count}, for regression {"mean_width",
                  "examples": [{"true", "predicted", "low", "high"}]}
    predictions   [{"true", "predicted"}], regression without intervals; examples above take precedence
    mistakes      [{"true", "predicted", "probability", "image": data URI, "path", "row": {column: value}}], the worst
                  first; for regression also "low", "high"
    importance    [{"name", "value", "spread"}] of columns, or a pixel map {"height", "width", "values": flat or rows}
    importance_score  str, the score whose drop is shown ("accuracy")
    columns       [{"name", "kind", "missing": count, "distinct": count, "role", "note"}], or any flat dictionaries
    findings      [{"kind", "subject", "count", "text"}]: what was repaired or left out
    split         {part: rows}                            split_note   str
    balance       {class: rows}
    cost          {"parameters", "trainable", "flops", "activation_bytes", "model_bytes", "peak_bytes", "seconds",
                  "steps", "epochs", "examples_per_second", "threads", "device", "by_layer": [{"name", "kind",
                  "parameters", "flops", "output"}]} and anything else
    config        the whole recipe, any JSON              commands [str] or [{"text", "command"}], to repeat the run
    versions      {package: version}                      fingerprint  str, of the data

>>> page = render({"title": "iris", "metrics": {"test": {"accuracy": 0.967}}, "split": {"test": 30}})
>>> page.startswith("<!doctype html>"), "Accuracy" in page
(True, True)
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from wonderland.understand import charts
from wonderland.understand.charts import MISSING, compact, duration, escape, number, percent, real, size, wilson

__all__ = ["render", "verdict"]

Facts = Mapping[str, Any]

_PARTS = ("train", "validation", "calibration", "test")
_SHARES = {"accuracy", "balanced_accuracy", "coverage", "top_5_accuracy"}
_METRICS = {
    "accuracy": ("Accuracy", "share of right answers"),
    "balanced_accuracy": ("Balanced accuracy", "mean over classes, each counted alike"),
    "log_loss": ("Log loss", "surprise in nats; lower is better"),
    "auroc": ("AUROC", "a random pair is ranked right; 0.5 is chance"),
    "rmse": ("RMSE", "root of the mean squared error"),
    "mae": ("MAE", "mean distance from the truth"),
    "r2": ("R²", "share of the variance explained"),
}
_IMAGE = re.compile(r"data:image/(?:png|jpeg|webp|gif);base64,[A-Za-z0-9+/]+={0,2}")
_IMAGE_LIMIT, _MISTAKES, _ROWS, _TEXT = 60_000, 24, 200, 60_000


def render(facts: Facts) -> str:
    """One self-contained HTML page from the facts of a run (schema in the module's docstring)."""
    facts = facts or {}
    sections = []
    for anchor, name, heading, build in _SECTIONS:
        body = build(facts)
        if body:
            title = heading(facts) if callable(heading) else heading
            sections.append((anchor, name, f'<section id="{anchor}"><h2>{escape(title)}</h2>{body}</section>'))
    links = "".join(f'<a href="#{anchor}">{name}</a>' for anchor, name, _ in sections)
    nav = f'<nav aria-label="Sections"><div>{links}</div></nav>' if len(sections) > 1 else ""
    title = escape(facts.get("title") or "A fitted model")
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{title} · Wonderland report</title>\n<style>{charts.CSS}{_CSS}</style>\n</head>\n"
        f'<body class="wl">\n{_header(facts)}\n{nav}\n<main>\n'
        + "\n".join(body for _, _, body in sections)
        + "\n</main>\n<footer>Made by Wonderland. This page is one file and loads nothing from the network.</footer>\n"
        "</body>\n</html>\n"
    )


def verdict(facts: Facts) -> str:
    """The run in one sentence, as plain text.

    >>> sets = {"level": 0.9, "coverage": 0.903, "mean_size": 1.02}
    >>> facts = {"noun": "digits", "metrics": {"test": {"accuracy": 0.9781}}, "split": {"test": 360}, "conformal": sets}
    >>> verdict(facts).replace("\\xa0", " ")
    '97.8 % of 360 unseen digits right; sets at the 90 % level cover 90.3 %, with 1.02 classes on average.'
    """
    if facts.get("verdict"):
        return str(facts["verdict"])
    metrics, conformal = _test_metrics(facts), facts.get("conformal") or {}
    unseen = _unseen(facts)
    said = []
    if _is(metrics.get("accuracy")):
        said.append(f"{percent(metrics['accuracy'])} of {unseen} right")
    elif _is(metrics.get("mae")):
        about = f" (R²\xa0{number(metrics['r2'], 2)})" if _is(metrics.get("r2")) else ""
        said.append(f"Off by {number(metrics['mae'])} on average over {unseen}{about}")
    elif _is(metrics.get("rmse")):
        said.append(f"Root mean squared error {number(metrics['rmse'])} over {unseen}")
    if _is(conformal.get("coverage")) and _is(conformal.get("level")):
        what = "intervals" if _regression(facts) else "sets"
        text = f"{what} at the {_level(conformal)} level cover {percent(conformal['coverage'])}"
        if _is(conformal.get("mean_width")):
            text += f" and are {number(conformal['mean_width'])} wide on average"
        elif _is(conformal.get("mean_size")):
            text += f", with {_mean_size(conformal)} classes on average"
        said.append(text)
    sentence = "; ".join(said)
    if not sentence:
        return "The test metrics are not finite numbers." if metrics else "No test metrics were recorded."
    return sentence[:1].upper() + sentence[1:] + "."


# Pieces of a page.


def _is(value: Any) -> bool:
    return real(value) is not None and not isinstance(value, bool)


def _regression(facts: Facts) -> bool:
    return facts.get("task") == "regression" or (not facts.get("task") and "mae" in _test_metrics(facts))


def _test_metrics(facts: Facts) -> Facts:
    return (facts.get("metrics") or {}).get("test") or {}


def _test_rows(facts: Facts) -> float | None:
    found = real((facts.get("split") or {}).get("test"))
    if found is None and facts.get("confusion"):
        found = sum(real(v) or 0.0 for row in facts["confusion"] for v in row)
    return found or None


def _noun(facts: Facts) -> str:
    return str(facts.get("noun") or ("images" if facts.get("kind") == "image" else "rows"))


def _unseen(facts: Facts) -> str:
    rows = _test_rows(facts)
    return f"{number(rows)} unseen {_noun(facts)}" if rows else f"unseen {_noun(facts)}"


def _level(conformal: Facts) -> str:
    level = real(conformal.get("level"))
    return percent(level, 0 if level is not None and abs(100 * level - round(100 * level)) < 1e-9 else 1)


def _mean_size(conformal: Facts) -> str:
    return f"{float(conformal['mean_size']):.2f}"


def _figure(svg: str, caption: str = "", *, head: str = "", wide: bool = False) -> str:
    """A chart with a heading above and a caption (HTML) below; a wide one scrolls inside its own box."""
    above = f"<h3>{escape(head)}</h3>" if head else ""
    below = f"<figcaption>{caption}</figcaption>" if caption else ""
    box = ' class="wide" tabindex="0"' if wide else ""
    return f"{above}<figure><div{box}>{charts.without_style(svg)}</div>{below}</figure>"


def _pair(*parts: str) -> str:
    parts = tuple(part for part in parts if part)
    return f'<div class="pair">{"".join(f"<div>{part}</div>" for part in parts)}</div>' if parts else ""


def _p(text: str, classes: str = "") -> str:
    """A paragraph of text that is already HTML."""
    return f'<p class="{classes}">{text}</p>' if classes else f"<p>{text}</p>"


def _show(value: Any, limit: int = 120) -> str:
    """Any cell as HTML: numbers for people, the rest cut to a length, with places to break in long words."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        text = number(value, 4)
        return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text
    if isinstance(value, (list, tuple)) and all(isinstance(v, (int, float)) for v in value):
        return " × ".join(map(str, value))
    return _soft(_cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str), limit))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _soft(text: Any) -> str:
    """Escaped text whose long words may break: after a joint when there is one, else every 18 letters."""
    pieces = []
    for word in re.split(r"(\s+)", str(text)):
        parts = re.findall(r"[^_/.\-]{0,17}[_/.\-]|[^_/.\-]{1,18}", word) if len(word) > 18 else [word]
        pieces.append("<wbr>".join(map(escape, parts)))
    return "".join(pieces)


class _Html(str):
    """Text that is HTML already."""


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]], label: str, *, first: bool = True) -> str:
    """A table in a box of its own that scrolls sideways; numbers stand on the right. No head: names and values."""
    rows = [list(row) for row in rows]
    if not rows:
        return ""
    marks = [_mark(column) for column in zip(*rows, strict=True)]
    top = "".join(f'<th scope="col"{m}>{_soft(_cut(str(n), 80))}</th>' for n, m in zip(head, marks, strict=bool(head)))
    body = []
    for row in rows[:_ROWS]:
        cells = [v if isinstance(v, _Html) else _show(v) for v in row]
        tags = ['th scope="row"' if first and i == 0 else "td" for i in range(len(cells))]
        parts = (f"<{t}{m}>{c}</{t[:2]}>" for t, m, c in zip(tags, marks, cells, strict=True))
        body.append(f"<tr>{''.join(parts)}</tr>")
    more = _p(f"… and {number(len(rows) - _ROWS)} more.", "quiet") if len(rows) > _ROWS else ""
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(label)}"><table{"" if head else " class=kv"}>'
        f"{f'<thead><tr>{top}</tr></thead>' if head else ''}<tbody>{''.join(body)}</tbody></table></div>{more}"
    )


def _mark(column: Sequence[Any]) -> str:
    """The class of a column: numbers, long text, or neither."""
    if all(v is None or isinstance(v, (int, float, _Number)) for v in column):
        return ' class="n"'
    return ' class="w"' if any(isinstance(v, str) and len(v) > 40 for v in column) else ""


class _Number(_Html):
    """A formatted number, set on the right like a number."""


def _n(text: str) -> _Html:
    return _Number(text)


def _code(text: Any) -> str:
    return f"<code>{_soft(text)}</code>"


# Sections, in the order of the page. Each gives HTML, or nothing when its facts are missing.


def _header(facts: Facts) -> str:
    kinds = {"binary": "two classes", "multiclass": "classes", "regression": "regression"}
    task = kinds.get(str(facts.get("task")), "")
    if facts.get("task") == "multiclass" and facts.get("classes"):
        task = f"{number(len(facts['classes']))} classes"
    eyebrow = " · ".join(escape(text) for text in ("Wonderland report", facts.get("kind"), task) if text)
    meta = [
        ("Data", _code(facts["source"]) if facts.get("source") else ""),
        ("Target", _code(facts["target"]) if facts.get("target") else ""),
        (_noun(facts).capitalize(), number(facts["rows"]) if _is(facts.get("rows")) else ""),
        ("Fitted", escape(facts.get("when") or "")),
    ]
    terms = "".join(f"<div><dt>{escape(name)}</dt><dd>{text}</dd></div>" for name, text in meta if text)
    return (
        f'<header><p class="eyebrow">{eyebrow}</p><h1>{_soft(facts.get("title") or "A fitted model")}</h1>'
        f'<p class="verdict">{escape(verdict(facts))}</p>{f"<dl>{terms}</dl>" if terms else ""}</header>'
    )


def _metric(name: str, value: Any) -> str:
    return percent(value) if name in _SHARES else number(value)


def _metric_name(name: str) -> str:
    return _METRICS.get(name, (str(name).replace("_", " ").capitalize(), ""))[0]


def _ordered(metrics: Facts) -> list[str]:
    return [name for name in _METRICS if name in metrics] + [name for name in metrics if name not in _METRICS]


def _glance(facts: Facts) -> str:
    metrics, conformal, cost = _test_metrics(facts), facts.get("conformal") or {}, facts.get("cost") or {}
    tiles = [(_metric_name(n), _metric(n, metrics[n]), _metric_note(facts, n)) for n in _ordered(metrics)[:6]]
    if _is(conformal.get("coverage")):
        tiles.append(("Coverage", percent(conformal["coverage"]), f"{_level(conformal)} was asked for"))
    reliability = facts.get("reliability") or {}
    ece = next((k for k in ("ece_after", "ece_before") if _is(reliability.get(k))), None)
    if ece:
        tiles.append(("Calibration error", number(reliability[ece], 2), "mean gap of confidence and truth"))
    if _is(cost.get("parameters")):
        tiles.append(("Parameters", compact(cost["parameters"]), "numbers that were learned"))
    if _is(cost.get("seconds")):
        tiles.append(("Training", duration(cost["seconds"]), "wall-clock time"))
    if not tiles:
        return ""
    boxes = "".join(
        f'<div class="tile"><dt>{escape(name)}</dt><dd><strong>{escape(value)}</strong>'
        f"<span>{escape(note)}</span></dd></div>"
        for name, value, note in tiles
    )
    return f'<dl class="tiles">{boxes}</dl>{_parts_table(facts)}'


def _metric_note(facts: Facts, name: str) -> str:
    value, rows = real(_test_metrics(facts).get(name)), _test_rows(facts)
    if name == "accuracy" and value is not None and 0 <= value <= 1 and rows:
        low, high = wilson(value, rows)
        return f"95\xa0% interval {100 * low:.1f} to {100 * high:.1f}\xa0%"
    return _METRICS.get(name, ("", "on the test part"))[1]


def _parts_table(facts: Facts) -> str:
    metrics = {part: values for part, values in (facts.get("metrics") or {}).items() if values}
    parts = [part for part in _PARTS if part in metrics] + [part for part in metrics if part not in _PARTS]
    names = _ordered({name: None for part in parts for name in metrics[part]})
    if len(parts) < 2:
        return ""
    rows = [[part, *(_n(_metric(n, metrics[part].get(n))) for n in names)] for part in parts]
    return "<h3>By part of the data</h3>" + _table(["part", *map(_metric_name, names)], rows, "Metrics by part")


def _learning(facts: Facts) -> str:
    given = facts.get("curves") or []
    figures = [_curve(c) for c in ([given] if isinstance(given, Mapping) else list(given))[:6] if _series(c)]
    if len(figures) % 2:
        last = [given] if isinstance(given, Mapping) else [c for c in given if _series(c)][:6]
        figures.append(_curve_notes(last[-1]))
    return _pair(*figures)


def _series(curve: Facts) -> dict[str, Sequence[Any]]:
    found = {name: v for name, v in curve.items() if name != "steps" and isinstance(v, (list, tuple))}
    return {name: values for name, values in found.items() if any(_is(v) for v in values)}


def _curve(curve: Facts) -> str:
    name, unit = str(curve.get("name") or "loss"), str(curve.get("unit") or "step")
    svg = charts.curves(
        _series(curve),
        curve.get("steps"),
        title=f"{name} over {unit}s",
        x_label=unit,
        log=curve.get("log"),
        best=curve.get("best"),
    )
    return _figure(svg, head=name[:1].upper() + name[1:])


def _curve_notes(curve: Facts) -> str:
    """The numbers at the best step and at the end, beside a chart that stands alone."""
    unit, series = str(curve.get("unit") or "step"), _series(curve)
    steps = list(curve.get("steps") or range(max(map(len, series.values()))))
    known = {name: [(s, v) for s, v in zip(steps, values, strict=False) if _is(v)] for name, values in series.items()}
    head, rows = ["", f"last {unit}"], [[name, _n(number(points[-1][1]))] for name, points in known.items() if points]
    note = ""
    if _is(curve.get("best")):
        best = float(curve["best"])
        head.insert(1, f"{unit} {number(best)}")
        for row in rows:
            row.insert(1, _n(number(min(known[row[0]], key=lambda p: abs(float(p[0]) - best))[1])))
        note = _p(f"The weights of {escape(unit)} {number(best)} were kept: the best on the validation part.")
    return "<h3>In numbers</h3>" + note + _table(head, rows, "Learning in numbers")


def _errors(facts: Facts) -> str:
    return _regression_errors(facts) if _regression(facts) else _confusion(facts)


def _confusion(facts: Facts) -> str:
    matrix = [[real(v) or 0.0 for v in row] for row in facts.get("confusion") or ()]
    if not matrix or not any(map(any, matrix)):
        return ""
    names = [str(c) for c in facts.get("classes") or ()]
    names += [str(i) for i in range(len(names), len(matrix))]
    most = 20
    svg = charts.confusion(matrix, names, most=most)
    caption = "Each row is a true class: counts, and the share of the row in percent. Blue is right, orange is wrong."
    if len(matrix) > 10:
        caption = "Each row is a true class, with the share that was right at its end. Blue is right, orange is wrong."
    if len(matrix) > most:
        caption = f"The {most} of {len(matrix)} classes with the most errors. " + caption
    wrong = [(v, i, j) for i, row in enumerate(matrix) for j, v in enumerate(row) if i != j and v > 0]
    wrong.sort(key=lambda w: (-w[0], w[1], w[2]))
    total, right = sum(map(sum, matrix)), sum(row[i] for i, row in enumerate(matrix) if i < len(row))
    largest = max(range(len(matrix)), key=lambda i: sum(matrix[i]))
    said = _p(
        f"{number(right)} of {number(total)} right. Always saying <b>{escape(_cut(names[largest], 60))}</b>, the most "
        f"frequent class, would be right {percent(sum(matrix[largest]) / total)} of the time."
    )
    rows = [[names[i], names[j], int(v)] for v, i, j in wrong[:8]]
    pairs = _table(["true", "taken for", "times"], rows, "Confusions")
    pairs = f'<h3>Most frequent confusions</h3><div class="narrow">{pairs}</div>' if rows else ""
    figure = _figure(svg, caption, wide=len(matrix) > 10)
    return said + figure + pairs if len(matrix) > 10 else _pair(figure, said + pairs)


def _regression_errors(facts: Facts) -> str:
    examples = list((facts.get("conformal") or {}).get("examples") or facts.get("predictions") or ())
    pairs = [(real(e.get("true")), real(e.get("predicted"))) for e in examples]
    pairs = [(t, p) for t, p in pairs if t is not None and p is not None]
    if not pairs:
        return ""
    residuals = [t - p for t, p in pairs]
    left = _figure(
        charts.intervals(examples),
        "A perfect model puts every point on the diagonal; bars are prediction intervals.",
        head="Predictions",
    )
    svg = charts.histogram(residuals, title="Residuals", x_label="true minus predicted")
    mean = number(sum(residuals) / len(residuals), 2)
    right = _figure(svg, f"Mean {mean}: near zero means that the errors lean to neither side.", head="Residuals")
    svg = charts.scatter(
        [p for _, p in pairs],
        residuals,
        title="Residuals over prediction",
        x_label="predicted value",
        y_label="true minus predicted",
    )
    return _pair(left, right) + _pair(
        _figure(
            svg, "A funnel or a bend here is structure that the model has missed.", head="Residuals over prediction"
        ),
        _residual_notes(residuals),
    )


def _residual_notes(residuals: list[float]) -> str:
    sizes = sorted(map(abs, residuals))
    rows = [
        [name, _n(number(sizes[min(len(sizes) - 1, int(share * len(sizes)))]))]
        for name, share in (("half of the errors are below", 0.5), ("nine in ten are below", 0.9))
    ]
    return "<h3>Size of the errors</h3>" + _table([], [*rows, ["the largest is", _n(number(sizes[-1]))]], "Error sizes")


def _calibration(facts: Facts) -> str:
    found = facts.get("reliability") or {}
    if not found.get("before") and not found.get("after"):
        return ""
    svg = charts.reliability(found.get("before"), found.get("after"))
    said = [
        _p(
            "Of the answers that the model calls 80 % sure, 80 % should be right. Below the diagonal it is overconfident."
        )
    ]
    rows = [
        [text, _n(number(found[key], 2))]
        for key, text in (("ece_before", "Calibration error before"), ("ece_after", "Calibration error after"))
        if _is(found.get(key))
    ]
    temperature = real(found.get("temperature"))
    if temperature is not None and temperature > 0:
        rows.append(["Temperature", _n(number(temperature))])
        said.append(_p(_temperature(temperature, real(found.get("ece_before")), real(found.get("ece_after")))))
    if rows:
        said.append(_table([], rows, "Calibration"))
        said.append(
            _p("Calibration error (ECE) is the mean gap of confidence and accuracy, weighted by examples.", "quiet")
        )
    caption = "Whiskers are 95 % intervals: a point whose whisker meets the diagonal may be off by chance."
    return _pair(_figure(svg, caption), "".join(said))


def _temperature(temperature: float, before: float | None, after: float | None) -> str:
    if 0.98 <= temperature <= 1.02:
        return "The raw model was well calibrated on the validation part: the temperature is close to one."
    word, size = ("overconfident", "more") if temperature > 1 else ("too modest", "less")
    text = f"On the validation part the raw model was {word}, so its logits are divided by {size} than one."
    if before is not None and after is not None and after > before:
        text += " On the test part this did not lower the error."
    return text


def _conformal(facts: Facts) -> str:
    found = facts.get("conformal") or {}
    if not (_is(found.get("coverage")) or found.get("sizes") or found.get("levels")):
        return ""
    regression = _regression(facts)
    what = "interval" if regression else "set of classes"
    said = []
    if _is(found.get("level")):
        article = "an" if regression else "a"
        text = f"Each prediction comes with {article} {what} made to hold the truth {_level(found)} of the time."
        said.append(_p(text))
    said.append(_table([], [[name, _n(text)] for name, text in _conformal_rows(found)], "Conformal prediction"))
    said.append(_chance(facts, found))
    empty = real(found.get("empty"))
    if empty:
        said.append(
            _p(
                f"{number(empty)} {'set is' if empty == 1 else 'sets are'} empty. That is an answer as well: no class is as "
                "likely as the level demands, so the input is unlike the calibration data or lies between classes. Have a "
                "person look at it."
            )
        )
    if found.get("note"):
        said.append(_p(escape(found["note"]), "quiet"))
    figures = []
    if found.get("sizes"):
        sizes = dict(sorted(dict(found["sizes"]).items(), key=lambda item: real(_as_number(item[0])) or 0.0))
        svg = charts.counts(sizes, title="Set sizes", x_label="classes in the set", y_label=_noun(facts))
        figures.append(_figure(svg, head="Set sizes"))
    if len(found.get("levels") or ()) > 1:
        svg = charts.coverage(found["levels"])
        figures.append(_figure(svg, "On the diagonal, the promise is kept at every level.", head="Other levels"))
    per_class = _per_class(facts, found)
    if per_class:
        svg = charts.bars(
            per_class,
            title="Coverage by class",
            x_label="measured coverage, lowest first",
            most=12,
            show=lambda v: percent(v, 0),
        )
        figures.append(_figure(svg, head="Coverage by class"))
    return _pair("".join(said) + "".join(figures[1::2]), "".join(figures[::2]))


def _as_number(text: Any) -> Any:
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def _conformal_rows(found: Facts) -> list[tuple[str, str]]:
    rows = [
        ("Level asked for", _level(found) if _is(found.get("level")) else None),
        ("Coverage measured on the test part", percent(found["coverage"]) if _is(found.get("coverage")) else None),
        ("Classes in a set, on average", _mean_size(found) if _is(found.get("mean_size")) else None),
        ("Width of an interval, on average", number(found["mean_width"]) if _is(found.get("mean_width")) else None),
        ("Empty sets", number(found["empty"]) if _is(found.get("empty")) else None),
    ]
    return [(name, text) for name, text in rows if text is not None]


def _chance(facts: Facts, found: Facts) -> str:
    """What the measured coverage may be by chance alone, from the sizes of the calibration and test parts."""
    level, measured, rows = real(found.get("level")), real(found.get("coverage")), _test_rows(facts)
    if level is None or measured is None or not rows or not 0 < level < 1:
        return ""
    calibration = real((facts.get("split") or {}).get("calibration"))
    reach = 1.96 * math.sqrt(level * (1 - level) * (1 / rows + (1 / (calibration + 2) if calibration else 0)))
    low, high = max(0.0, level - reach), min(1.0, level + reach)
    kept = "is inside, as it should be" if low <= measured <= high else "is above: the sets are wider than needed"
    if measured < low:
        kept = "is below: calibration and test part may differ"
    given = f"{number(rows)} test" + (f" and {number(calibration)} calibration" if calibration else "")
    return _p(
        f"With {given} examples, chance alone allows {percent(low)} to {percent(high)}. "
        f"The measured {percent(measured)} {kept}."
    )


def _per_class(facts: Facts, found: Facts) -> list[dict[str, Any]]:
    given = found.get("per_class") or {}
    names = [str(c) for c in facts.get("classes") or ()]
    if not isinstance(given, Mapping):
        given = {names[i] if i < len(names) else str(i): value for i, value in enumerate(given)}
    items = [{"name": name, "value": value} for name, value in given.items() if _is(value)]
    return sorted(items, key=lambda item: float(item["value"]))


def _mistakes(facts: Facts) -> str:
    found = [m for m in facts.get("mistakes") or () if isinstance(m, Mapping)][:_MISTAKES]
    if not found:
        return ""
    pictured = [m for m in found if _picture(m)]
    lead = "Where the model was surest and wrong. Look here first for wrong labels, odd inputs and missing information."
    if _regression(facts):
        lead = "The predictions furthest from the truth. Look here first for wrong labels and missing information."
    if pictured:
        return _p(lead) + f'<div class="gallery">{"".join(_thumbnail(m) for m in pictured)}</div>'
    return _p(lead) + _mistake_table(facts, found)


def _picture(mistake: Facts) -> str:
    image = mistake.get("image")
    return image if isinstance(image, str) and len(image) <= _IMAGE_LIMIT and _IMAGE.fullmatch(image) else ""


def _thumbnail(mistake: Facts) -> str:
    sure = f" <span>{percent(mistake['probability'], 0)}</span>" if _is(mistake.get("probability")) else ""
    true, said = (_cut(str(mistake.get(key, MISSING)), 40) for key in ("true", "predicted"))
    path = f' title="{escape(mistake["path"])}"' if mistake.get("path") else ""
    alt = escape(f"true {true}, predicted {said}")
    return (
        f'<figure{path}><img src="{escape(_picture(mistake))}" alt="{alt}" width="96" height="96">'
        f"<figcaption><b>{_soft(said)}</b>{sure}<br>is {_soft(true)}</figcaption></figure>"
    )


def _mistake_table(facts: Facts, found: Sequence[Facts]) -> str:
    keys = list(dict.fromkeys(str(key) for m in found for key in m.get("row") or {}))
    ranked = facts.get("importance")
    ranked = ranked if isinstance(ranked, (list, tuple)) else []
    weight = {str(item.get("name")): real(item.get("value")) or 0.0 for item in ranked}
    keys = sorted(keys, key=lambda key: -weight.get(key, -1e300))
    shown, left = keys[:12], len(keys) - 12
    if _regression(facts):
        head = ["true", "predicted", "error"]
        rows = [[m.get("true"), m.get("predicted"), _difference(m)] for m in found]
        if any(_is(m.get("low")) and _is(m.get("high")) for m in found):
            head.append("interval")
            for row, m in zip(rows, found, strict=True):
                row.append(_n(f"{number(m.get('low'))} to {number(m.get('high'))}"))
    else:
        head = ["true", "predicted", "how sure"]
        rows = [[str(m.get("true")), str(m.get("predicted")), _n(percent(m.get("probability")))] for m in found]
    rows = [row + [(m.get("row") or {}).get(key) for key in shown] for row, m in zip(rows, found, strict=True)]
    more = _p(f"{number(left)} more columns are not shown.", "quiet") if left > 0 else ""
    return _table([*head, *shown], rows, "Mistakes", first=False) + more


def _difference(mistake: Facts) -> float | None:
    true, predicted = real(mistake.get("true")), real(mistake.get("predicted"))
    return None if true is None or predicted is None else predicted - true


def _importance(facts: Facts) -> str:
    found = facts.get("importance")
    if isinstance(found, Mapping):
        grid = _grid(found)
        if not grid:
            return ""
        text = _p("How strongly each pixel moves the score of the right class, averaged over test images.") + _p(
            "Strong colour: replacing the pixel by its average would change the answer most. A map that lights up in the "
            "background or at a border is a warning that the model reads something it should not.",
            "quiet",
        )
        return _pair(_figure(charts.heat_map(grid)), text)
    items = sorted((i for i in found or () if _is(i.get("value"))), key=lambda i: -float(i["value"]))
    if not items:
        return ""
    score = str(facts.get("importance_score") or "score")
    svg = charts.bars(items, title="Column importance", x_label=f"drop of {score} when the column is shuffled")
    text = _p(f"How much the {escape(score)} on unseen rows drops when one column is shuffled.")
    text += _p(
        "Whiskers show the spread over repeats; a bar within its whisker of zero may be noise. Columns that carry the same "
        "information share their importance.",
        "quiet",
    )
    if len(items) > 20:
        text += _p(f"The {len(items) - 20} least important columns are not drawn.", "quiet")
    return _pair(_figure(svg), text)


def _grid(found: Facts) -> list[list[Any]]:
    values = found.get("values") or []
    if values and isinstance(values[0], (list, tuple)):
        return [list(row) for row in values]
    wide = int(real(found.get("width")) or 0)
    return [list(values[i : i + wide]) for i in range(0, len(values), wide)] if wide > 0 else []


def _data(facts: Facts) -> str:
    body = _pair(_split(facts), _balance(facts))
    findings = [f for f in facts.get("findings") or () if isinstance(f, Mapping)]
    if findings:
        rows = [
            [f.get("subject"), f.get("kind"), f.get("count"), _cut(str(f.get("text") or ""), 400)] for f in findings
        ]
        rows = [[*row[:3], _Html(_soft(row[3]))] for row in rows]
        body += "<h3>Repaired and left out</h3>" + _table(["where", "what", "count", "in words"], rows, "Findings")
    columns = [c for c in facts.get("columns") or () if isinstance(c, Mapping)]
    if columns:
        keys = list(dict.fromkeys(str(key) for column in columns for key in column))[:10]
        rows = [[column.get(key) for key in keys] for column in columns]
        body += "<h3>Columns</h3>" + _table(keys, rows, "Columns")
    return body


_USES = {
    "train": "the weights",
    "validation": "stopping, temperature",
    "calibration": "sets and intervals",
    "test": "the numbers of this page",
}


def _split(facts: Facts) -> str:
    split = {str(k): float(v) for k, v in (facts.get("split") or {}).items() if _is(v)}
    text = ""
    if split:
        total = sum(split.values()) or 1.0
        rows = [[n, _n(number(v)), _n(percent(v / total, 0)), _USES.get(n, "")] for n, v in split.items()]
        text = "<h3>Parts</h3>" + _table(["part", _noun(facts), "share", "used for"], rows, "Parts of the data")
        text += _p(escape(facts["split_note"]), "quiet") if facts.get("split_note") else ""
    if facts.get("findings") is not None and not facts["findings"]:
        text += _p("Nothing had to be repaired or left out.", "quiet")
    return text


def _balance(facts: Facts) -> str:
    items = [{"name": str(k), "value": v} for k, v in (facts.get("balance") or {}).items() if _is(v)]
    if not items:
        return ""
    items.sort(key=lambda item: -float(item["value"]))
    rest = f"… and {len(items) - 15} more classes, the smallest with {number(items[-1]['value'])}."
    svg = charts.bars(items, title="Class balance", x_label=f"{_noun(facts)} of each class", most=15)
    return _figure(svg, rest if len(items) > 15 else "", head="Class balance")


_COSTS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "parameters": ("Parameters", compact),
    "trainable": ("Parameters that were trained", compact),
    "model_bytes": ("Size of the model file", size),
    "flops": ("FLOPs for one example, forward", compact),
    "activation_bytes": ("Memory kept for one example in training", size),
    "peak_bytes": ("Peak memory of the process", size),
    "seconds": ("Training time", duration),
    "steps": ("Steps", number),
    "epochs": ("Epochs", number),
    "examples_per_second": ("Throughput, examples a second", number),
    "threads": ("Threads", number),
    "device": ("Device", escape),
}


def _cost(facts: Facts) -> str:
    found = facts.get("cost") or {}
    rows = [[name, _n(show(found[key]))] for key, (name, show) in _COSTS.items() if found.get(key) is not None]
    rest = [key for key in found if key not in _COSTS and key != "by_layer" and found[key] is not None]
    rows += [[str(key).replace("_", " ").capitalize(), _n(_show(found[key]))] for key in rest[:20]]
    layers = [layer for layer in found.get("by_layer") or () if isinstance(layer, Mapping)]
    if not rows and not layers:
        return ""
    body = _table([], rows, "Cost")
    if layers:
        cells = [[v.get("name"), v.get("kind"), v.get("output"), v.get("parameters"), v.get("flops")] for v in layers]
        table = _table(["layer", "kind", "output", "parameters", "FLOPs"], cells, "Cost by layer")
        body += f"<details><summary>Layer by layer ({number(len(layers))})</summary>{table}</details>"
    return body


def _recipe(facts: Facts) -> str:
    config = facts.get("config")
    if not config:
        return ""
    text = json.dumps(config, indent=2, ensure_ascii=False, default=str)
    if len(text) > _TEXT:
        text = text[:_TEXT] + "\n… cut here; the whole text is in config.json."
    lines = text.count("\n") + 1
    return (
        _p("Everything that was decided before the first step, as it stands in <code>config.json</code>.")
        + f'<details><summary>config.json ({number(lines)} lines)</summary><pre tabindex="0">{escape(text)}</pre></details>'
    )


def _repeat(facts: Facts) -> str:
    body = ""
    for command in list(facts.get("commands") or ())[:20]:
        known = isinstance(command, Mapping)
        text = command.get("text") if known else ""
        line = str(command.get("command", "") if known else command)[:4000]
        body += (_p(escape(text)) if text else "") + f'<pre class="command" tabindex="0">{escape(line)}</pre>'
    if body:
        body += _p("A click marks a whole command, ready to copy.", "quiet screen")
    if facts.get("fingerprint"):
        body += _p(f"Fingerprint of the data: {_code(facts['fingerprint'])}", "quiet")
    versions = facts.get("versions") or {}
    if versions:
        rows = [[str(name), _Html(_show(version))] for name, version in versions.items()]
        table = _table(["package", "version"], rows, "Versions")
        body += f'<h3>Environment</h3><div class="narrow">{table}</div>'
    return body


_SECTIONS: list[tuple[str, str, str | Callable[[Facts], str], Callable[[Facts], str]]] = [
    ("glance", "Summary", "At a glance", _glance),
    ("learning", "Learning", "How it learned", _learning),
    ("errors", "Errors", lambda f: "Predicted against true" if _regression(f) else "What is taken for what", _errors),
    ("calibration", "Confidence", "Can its confidence be trusted?", _calibration),
    (
        "conformal",
        "Coverage",
        lambda f: "Intervals with a promise" if _regression(f) else "Sets with a promise",
        _conformal,
    ),
    ("mistakes", "Mistakes", lambda f: "Largest errors" if _regression(f) else "Most confident mistakes", _mistakes),
    ("importance", "Importance", "What it looks at", _importance),
    ("data", "Data", "The data", _data),
    ("cost", "Cost", "What it costs", _cost),
    ("recipe", "Recipe", "The full recipe", _recipe),
    ("repeat", "Repeat", "How to repeat it", _repeat),
]

_CSS = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-padding-top:4rem}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.6 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;overflow-wrap:break-word}
header,main,nav div,footer{max-width:1000px;margin:0 auto;padding:0 20px}
header{padding-top:56px;padding-bottom:36px}
h1{font-size:clamp(1.9rem,5vw,2.6rem);line-height:1.15;letter-spacing:-.02em;margin:.2em 0 .45em;overflow-wrap:anywhere}
h2{font-size:1.45rem;line-height:1.25;letter-spacing:-.01em;margin:0 0 1.1rem}
h3{font-size:1rem;margin:1.8rem 0 .6rem}
p{margin:0 0 1rem;max-width:68ch}
.eyebrow{color:var(--muted);font-size:.82rem;letter-spacing:.06em;text-transform:uppercase;margin:0}
.verdict{font-size:clamp(1.1rem,2.6vw,1.35rem);line-height:1.5;max-width:46ch;margin-bottom:1.6rem}
.quiet,figcaption,footer{color:var(--muted);font-size:.88rem;line-height:1.5}
header dl{display:flex;flex-wrap:wrap;gap:.5rem 2.2rem;margin:0}
header dl div{min-width:0}
header dt{color:var(--muted);font-size:.82rem}
header dd{margin:0;overflow-wrap:anywhere}
nav{position:sticky;top:0;z-index:1;background:var(--paper);border-block:1px solid var(--line)}
nav div{display:flex;gap:1.5rem;overflow-x:auto;white-space:nowrap;scrollbar-width:none}
nav div::-webkit-scrollbar{display:none}
nav a{color:var(--muted);text-decoration:none;font-size:.92rem;padding:.72rem 0}
nav a:hover,nav a:focus{color:var(--ink);text-decoration:underline;text-underline-offset:.35em}
section{padding:48px 0;border-bottom:1px solid var(--line)}
section:last-child{border-bottom:0}
.pair{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:2rem 3rem;align-items:start}
.pair+h3,.pair+p,.pair+.pair{margin-top:2.2rem}
.pair h3:first-child{margin-top:0}
.tiles{display:grid;grid-template-columns:repeat(4,minmax(0,1fr));gap:12px;margin:0}
.tile{background:var(--soft);border-radius:10px;padding:14px 16px}
.tile dt{color:var(--muted);font-size:.85rem}
.tile dd{margin:0}
.tile strong{display:block;font-size:1.55rem;line-height:1.35;font-weight:600;letter-spacing:-.01em;
font-variant-numeric:tabular-nums}
.tile span{display:block;color:var(--muted);font-size:.78rem;line-height:1.35}
figure{margin:0 0 1.2rem}
figure>.wide{overflow-x:auto}
figure svg.wl{display:block;width:100%;max-width:520px;height:auto}
figure .wide svg.wl{min-width:620px;max-width:820px}
figcaption{margin-top:.6rem;max-width:68ch}
.pair figure+h3{margin-top:1.8rem}
.scroll{overflow-x:auto;margin:0 0 1rem}
table{border-collapse:collapse;width:100%;font-size:.9rem;line-height:1.45}
table.kv,.narrow{max-width:560px}
th,td{text-align:left;padding:.5rem 1.1rem .5rem 0;border-bottom:1px solid var(--line);vertical-align:top;
font-weight:400;max-width:26rem}
tr>:last-child{padding-right:2px}
th.w,td.w{min-width:11rem}
thead th{color:var(--muted);font-size:.82rem;vertical-align:bottom}
th.n,td.n{text-align:right;font-variant-numeric:tabular-nums}
td.n{white-space:nowrap}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;font-size:.86em}
pre{background:var(--soft);border-radius:8px;padding:14px 16px;overflow-x:auto;margin:0 0 1rem;line-height:1.5}
pre.command{user-select:all;-webkit-user-select:all;white-space:pre-wrap;overflow-wrap:anywhere}
summary{cursor:pointer;padding:.5rem 0;font-weight:500}
.gallery{display:grid;grid-template-columns:repeat(auto-fill,minmax(104px,1fr));gap:20px 16px}
.gallery figure{margin:0;min-width:0}
.gallery img{display:block;width:96px;height:96px;object-fit:contain;image-rendering:pixelated;
border:1px solid var(--line);border-radius:8px;background:var(--soft)}
.gallery figcaption{margin-top:.35rem;line-height:1.4;overflow-wrap:anywhere}
.gallery b{color:var(--ink)}
footer{padding-top:28px;padding-bottom:56px}
@media (max-width:760px){.pair{grid-template-columns:minmax(0,1fr)}header{padding-top:32px}section{padding:36px 0}
.tiles{grid-template-columns:repeat(2,minmax(0,1fr))}.tile{padding:12px 14px}.tile strong{font-size:1.35rem}}
@media print{nav,.screen{display:none}section{break-inside:avoid}}
"""
