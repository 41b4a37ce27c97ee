"""The confusion matrix of a classifier; predictions and residuals of a regression."""

from wonderland.understand import charts, page
from wonderland.understand.facts import Facts, predicts_values
from wonderland.understand.format import escape, number, percent, real


def errors(facts: Facts) -> str:
    """The confusion matrix, or predictions and residuals."""
    return _value_errors(facts) if predicts_values(facts) else _confusion(facts)


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
    summary = page.p(
        f"{number(right)} of {number(total)} right. Always predicting <b>{escape(page.truncate(names[largest], 60))}</b>, the most "
        f"frequent class, would be right {percent(sum(matrix[largest]) / total)} of the time."
    )
    rows = [[names[i], names[j], int(v)] for v, i, j in wrong[:8]]
    pairs = page.table(["true", "predicted", "count"], rows, "Confusions")
    pairs = f'<h3>Most frequent confusions</h3><div class="narrow">{pairs}</div>' if rows else ""
    figure = page.figure(svg, caption, wide=len(matrix) > 10)
    return summary + figure + pairs if len(matrix) > 10 else page.pair(figure, summary + pairs)


def _value_errors(facts: Facts) -> str:
    examples = list((facts.get("conformal") or {}).get("examples") or facts.get("predictions") or ())
    pairs = [(real(e.get("true")), real(e.get("predicted"))) for e in examples]
    pairs = [(t, p) for t, p in pairs if t is not None and p is not None]
    if not pairs:
        return ""
    residuals = [t - p for t, p in pairs]
    left = page.figure(
        charts.intervals(examples),
        "A perfect model puts every point on the diagonal; bars are prediction intervals.",
        head="Predictions",
    )
    svg = charts.histogram(residuals, title="Residuals", x_label="true minus predicted")
    mean = number(sum(residuals) / len(residuals), 2)
    right = page.figure(svg, f"Mean {mean}: near zero means that the model is unbiased.", head="Residuals")
    svg = charts.scatter(
        [p for _, p in pairs],
        residuals,
        title="Residuals over prediction",
        x_label="predicted value",
        y_label="true minus predicted",
    )
    return page.pair(left, right) + page.pair(
        page.figure(
            svg,
            "A funnel shape means that the variance depends on the prediction, a curve that the fit is biased.",
            head="Residuals over prediction",
        ),
        _residual_notes(residuals),
    )


def _residual_notes(residuals: list[float]) -> str:
    sizes = sorted(map(abs, residuals))
    rows = [
        [name, page.Number(number(sizes[min(len(sizes) - 1, int(share * len(sizes)))]))]
        for name, share in (("median absolute error", 0.5), ("90th percentile", 0.9))
    ]
    return "<h3>Absolute errors</h3>" + page.table(
        [], [*rows, ["maximum", page.Number(number(sizes[-1]))]], "Absolute errors"
    )
