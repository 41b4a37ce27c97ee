"""The report of a fitted model: facts in, one HTML file out, that opens anywhere and asks the network for nothing.

`render(facts)` is a pure function of a plain dictionary (JSON values only). Every key may be missing or None; a section
without facts is left out. Numbers may be NaN. All text is escaped, lists are cut to a bounded size, and images are
taken only as base64 data URIs of PNG, JPEG, WebP or GIF.

    title         str, what was fitted                    source   str, where the data came from
    kind          str, the kind of data                   answers  str, what is predicted, in words ("10 classes")
    target        str, name of the target column          noun     str, what examples are called ("rows", "images")
    values        bool, whether numbers are predicted     long_rows, columns_title: how rows and columns are shown
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
    choices       "tokens" where sets are made of tokens, else classes
    importance_of  "word" where items are words of texts
    samples       [{"prompt", "text", "temperature"}], what a language model wrote
    neighbours    [{"token", "near": [{"token", "cosine"}]}]
    attention     [{"layer", "head", "tokens": [str], "weights": [[share]]}]
    importance_score  str, the score whose drop is shown ("accuracy")
    columns       [{"name", "kind", "missing": count, "distinct": count, "role", "note"}], or any flat dictionaries
    findings      [{"kind", "subject", "count", "text"}]: what was repaired or left out
    split         {part: rows}                            split_note   str
    balance       {class: rows}
    cost          {"parameters", "trainable", "flops", "activation_bytes", "model_bytes", "steps",
                  "steps_planned", "epochs", "threads", "device", "by_layer": [{"name", "kind",
                  "parameters", "flops", "output"}]} and anything else
    config        the whole recipe, any JSON              commands [str] or [{"text", "command"}], to repeat the run
    versions      {package: version}                      fingerprint  str, of the data

>>> page = render({"title": "iris", "metrics": {"test": {"accuracy": 0.967}}, "split": {"test": 30}})
>>> page.startswith("<!doctype html>"), "Accuracy" in page
(True, True)
"""

from collections.abc import Sequence

from wonderland.understand import page
from wonderland.understand.facts import Facts, is_known, level_of, mean_size, predicts_values, scores, unseen
from wonderland.understand.format import number, percent
from wonderland.understand.sections import SECTIONS, Section, header

__all__ = ["render", "verdict"]


def render(facts: Facts, sections: Sequence[Section] = SECTIONS) -> str:
    """One self-contained HTML page from the facts of a run (schema in the module's docstring)."""
    facts = facts or {}
    bodies = [(section, section.body(facts)) for section in sections]
    made = [(section.anchor, section.link, section.title(facts), body) for section, body in bodies if body]
    return page.frame(facts.get("title") or "A fitted model", header(facts, verdict(facts)), made)


def verdict(facts: Facts) -> str:
    """The run in one sentence, as plain text.

    >>> sets = {"level": 0.9, "coverage": 0.903, "mean_size": 1.02}
    >>> facts = {"noun": "digits", "metrics": {"test": {"accuracy": 0.9781}}, "split": {"test": 360}, "conformal": sets}
    >>> verdict(facts).replace("\\xa0", " ")
    '97.8 % of 360 unseen digits right; sets at the 90 % level cover 90.3 %, with 1.02 classes on average.'
    """
    if facts.get("verdict"):
        return str(facts["verdict"])
    metrics, conformal = scores(facts), facts.get("conformal") or {}
    said = []
    if is_known(metrics.get("accuracy")):
        said.append(f"{percent(metrics['accuracy'])} of {unseen(facts)} right")
    elif is_known(metrics.get("mae")):
        about = f" (R²\xa0{number(metrics['r2'], 2)})" if is_known(metrics.get("r2")) else ""
        said.append(f"Off by {number(metrics['mae'])} on average over {unseen(facts)}{about}")
    elif is_known(metrics.get("rmse")):
        said.append(f"Root mean squared error {number(metrics['rmse'])} over {unseen(facts)}")
    if is_known(conformal.get("coverage")) and is_known(conformal.get("level")):
        what = "intervals" if predicts_values(facts) else "sets"
        text = f"{what} at the {level_of(conformal)} level cover {percent(conformal['coverage'])}"
        if is_known(conformal.get("mean_width")):
            text += f" and are {number(conformal['mean_width'])} wide on average"
        elif is_known(conformal.get("mean_size")):
            text += f", with {mean_size(conformal)} classes on average"
        said.append(text)
    sentence = "; ".join(said)
    if not sentence:
        return "The test metrics are not finite numbers." if metrics else "No test metrics were recorded."
    return sentence[:1].upper() + sentence[1:] + "."
