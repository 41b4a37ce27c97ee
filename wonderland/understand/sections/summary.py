"""The header and the summary of a report."""

from typing import Any

from wonderland.understand import page
from wonderland.understand.facts import Facts, is_known, level_of, noun, scores, unseen_rows
from wonderland.understand.format import compact, escape, number, percent, real, wilson

_PARTS = ("train", "validation", "calibration", "test")
SHARES = {
    "accuracy",
    "exact_match",
    "balanced_accuracy",
    "coverage",
    "top_5_accuracy",
    "all_labels_right",
    "wrong_labels",
}
_METRICS = {
    "bleu": ("BLEU", "n-gram overlap with the references, 0 to 100"),
    "chrf": ("chrF", "character n-gram overlap with the references, 0 to 100"),
    "exact_match": ("Exact match", "share of identical texts"),
    "loss": ("Loss", "nats per token; lower is better"),
    "bits_per_byte": ("Bits per byte", "of text; lower is better"),
    "perplexity": ("Perplexity", "exp of the loss per token; lower is better"),
    "accuracy": ("Accuracy", "share of correct predictions"),
    "balanced_accuracy": ("Balanced accuracy", "mean of the recall of each class"),
    "log_loss": ("Log loss", "cross-entropy in nats; lower is better"),
    "auroc": ("AUROC", "area under the ROC curve; 0.5 is chance"),
    "f1": ("F1", "of all labels together; 1 is best"),
    "macro_f1": ("Macro F1", "mean of the F1 of each class or label"),
    "mean_average_precision": ("mAP", "mean average precision of the labels"),
    "all_labels_right": ("All labels right", "share of rows"),
    "wrong_labels": ("Wrong labels", "share of all labels of all rows"),
    "rare_class_f1": ("F1 of the rarer class", "harmonic mean of precision and recall"),
    "average_precision": ("Average precision", "area under precision over recall, of the rarer class"),
    "held_out": ("Held-out loss", "the model's own loss on unseen rows"),
    "frechet": ("Fréchet distance", "of samples from unseen rows; 0 is equal"),
    "mmd": ("MMD", "maximum mean discrepancy; about 0 where equal"),
    "two_sample": ("Told apart", "AUC of a classifier of samples and unseen rows; 0.5 is chance"),
    "rmse": ("RMSE", "root mean squared error"),
    "mae": ("MAE", "mean absolute error"),
    "mase": ("MASE", "absolute error over that of a season before"),
    "smape": ("sMAPE", "symmetric percentage error, 0 to 200"),
    "crps": ("CRPS", "error of the whole distribution"),
    "pinball": ("Pinball loss", "mean over the levels 0.05 to 0.95"),
    "r2": ("R²", "share of the variance explained"),
    "ap50": ("AP at IoU 0.5", "average precision; 1 is perfect"),
    "ap": ("AP (COCO)", "mean over IoU 0.5 to 0.95"),
    "ap75": ("AP at IoU 0.75", "average precision; 1 is perfect"),
    "mean_iou": ("Mean IoU", "intersection over union, mean over classes"),
    "mask_iou": ("IoU of masks", "of objects whose box was found"),
}


def header(facts: Facts, sentence: str) -> str:
    """The title, the verdict in one sentence, and the source of the data."""
    answers = facts.get("answers")
    eyebrow = " · ".join(escape(text) for text in ("Wonderland report", facts.get("kind"), answers) if text)
    meta = [
        ("Data", page.code(facts["source"]) if facts.get("source") else ""),
        ("Target", page.code(facts["target"]) if facts.get("target") else ""),
        (noun(facts).capitalize(), number(facts["rows"]) if is_known(facts.get("rows")) else ""),
        ("Fitted", escape(facts.get("when") or "")),
    ]
    terms = "".join(f"<div><dt>{escape(name)}</dt><dd>{text}</dd></div>" for name, text in meta if text)
    return (
        f'<header><p class="eyebrow">{eyebrow}</p><h1>{page.breakable(facts.get("title") or "A fitted model")}</h1>'
        f'<p class="verdict">{escape(sentence)}</p>{f"<dl>{terms}</dl>" if terms else ""}</header>'
    )


def overview(facts: Facts) -> str:
    """The main metrics as tiles, and all metrics by part of the data."""
    metrics, conformal, cost = scores(facts), facts.get("conformal") or {}, facts.get("cost") or {}
    tiles = [(metric_name(n), _metric(n, metrics[n]), _metric_note(facts, n)) for n in _ordered(metrics)[:6]]
    if is_known(conformal.get("coverage")):
        tiles.append(("Coverage", percent(conformal["coverage"]), f"level {level_of(conformal)}"))
    reliability = facts.get("reliability") or {}
    ece = next((k for k in ("ece_after", "ece_before") if is_known(reliability.get(k))), None)
    if ece:
        tiles.append(("Calibration error", number(reliability[ece], 2), "expected calibration error (ECE)"))
    if is_known(cost.get("parameters")):
        tiles.append(("Parameters", compact(cost["parameters"]), "weights of the model"))
    if not tiles:
        return ""
    boxes = "".join(
        f'<div class="tile"><dt>{escape(name)}</dt><dd><strong>{escape(value)}</strong>'
        f"<span>{escape(note)}</span></dd></div>"
        for name, value, note in tiles
    )
    return f'<dl class="tiles">{boxes}</dl>{_parts_table(facts)}'


def _metric(name: str, value: Any) -> str:
    return percent(value) if name in SHARES else number(value)


def metric_name(name: str) -> str:
    """The display name of a metric; an unknown name gets a capital letter.

    >>> metric_name("rmse"), metric_name("loss")
    ('RMSE', 'Loss')
    """
    words = str(name).replace("_", " ")
    return _METRICS.get(name, (words[:1].upper() + words[1:], ""))[0]


def _metric_note(facts: Facts, name: str) -> str:
    value, rows = real(scores(facts).get(name)), unseen_rows(facts)
    if name == "accuracy" and value is not None and 0 <= value <= 1 and rows:
        low, high = wilson(value, rows)
        return f"95\xa0% interval {100 * low:.1f} to {100 * high:.1f}\xa0%"
    return _METRICS.get(name, ("", "on the test part"))[1]


def _ordered(metrics: Facts) -> list[str]:
    return [name for name in _METRICS if name in metrics] + [name for name in metrics if name not in _METRICS]


def _parts_table(facts: Facts) -> str:
    metrics = {part: values for part, values in (facts.get("metrics") or {}).items() if values}
    parts = [part for part in _PARTS if part in metrics] + [part for part in metrics if part not in _PARTS]
    names = _ordered({name: None for part in parts for name in metrics[part]})
    if len(parts) < 2:
        return ""
    rows = [[part, *(page.Number(_metric(n, metrics[part].get(n))) for n in names)] for part in parts]
    return "<h3>Metrics by part</h3>" + page.table(["part", *map(metric_name, names)], rows, "Metrics by part")
