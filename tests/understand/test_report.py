"""The report: one well-formed page, nothing from outside, each section when and only when it has facts."""

import copy
import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from wonderland.understand import render, verdict

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)
NAN = float("nan")
VOID = {"meta", "img", "br", "wbr", "link", "input", "hr"}
EVIL = "<script>alert(1)</script>"


class Page(HTMLParser):
    """Checks that tags nest, and gathers what a test asks for."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.links, self.tags, self.words, self.sources = [], [], [], set(), [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.add(tag)
        assert not [name for name in attrs if name.startswith("on")]
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.links += [attrs["href"]] if "href" in attrs else []
        self.sources += [attrs["src"]] if "src" in attrs else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words))


def read(facts: dict) -> Page:
    html = render(facts)
    page = Page(html)
    assert html.startswith("<!doctype html>")
    assert "script" not in page.tags
    assert "link" not in page.tags
    assert "iframe" not in page.tags
    policy = "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    assert f'http-equiv="Content-Security-Policy" content="{policy}"' in html
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert all(source.startswith("data:image/") for source in page.sources)
    assert not re.search(r"url\(|@import", html)
    assert len(page.ids) == len(set(page.ids))
    for svg in re.findall(r"<svg.*?</svg>", html, re.S):
        ET.fromstring(svg)
    html.encode()
    return page


DIGITS = {
    "title": "digits",
    "source": "digits (bundled)",
    "kind": "image",
    "answers": "3 classes",
    "noun": "digits",
    "rows": 100,
    "when": "2026-01-14",
    "classes": ["zero", "one", "two"],
    "metrics": {"train": {"accuracy": 1.0}, "test": {"accuracy": 0.9, "log_loss": 0.3, "auroc": 0.98}},
    "curves": {"steps": [0, 10, 20], "train": [2, 1, 0.5], "validation": [2, None, 0.9], "best": 20, "name": "loss"},
    "confusion": [[9, 1, 0], [0, 10, 0], [1, 1, 8]],
    "reliability": {
        "before": [{"confidence": 0.95, "accuracy": 0.9, "count": 30}],
        "after": [{"confidence": 0.91, "accuracy": 0.9, "count": 30}],
        "ece_before": 0.05,
        "ece_after": 0.01,
        "temperature": 1.3,
    },
    "conformal": {
        "level": 0.9,
        "coverage": 0.9,
        "mean_size": 0.97,
        "sizes": {"2": 1, "0": 2, "1": 27},
        "per_class": {"zero": 0.9, "one": 0.8, "two": NAN},
        "empty": 2,
        "levels": [{"level": 0.8, "coverage": 0.81}, {"level": 0.9, "coverage": 0.9}],
        "note": "Split conformal.",
    },
    "mistakes": [
        {"true": "two", "predicted": "one", "probability": 0.97, "image": PIXEL, "path": "two/3.png", "row": None}
    ],
    "importance": {"height": 2, "width": 2, "values": [0, 1, 2, 3]},
    "findings": [{"kind": "corrupt", "subject": "two/9.png", "count": 1, "text": "One image could not be read."}],
    "split": {"train": 50, "validation": 10, "calibration": 10, "test": 30},
    "split_note": "Stratified.",
    "balance": {"zero": 33, "one": 33, "two": 34},
    "columns": [{"name": "pixel", "kind": "number"}],
    "cost": {
        "parameters": 1_234_567,
        "flops": 9000,
        "activation_bytes": 4.1e8,
        "odd_thing": "x",
        "by_layer": [{"name": "head", "kind": "Linear", "output": [10], "parameters": 650, "flops": 1280}],
    },
    "config": {"seed": 0, "recipe": {"name": "image"}},
    "commands": [{"text": "Again:", "command": "wonderland fit digits"}, "wonderland predict runs/digits NEW"],
    "versions": {"torch": "2.13.0"},
    "fingerprint": "ab" * 32,
}
DIABETES = {
    "title": "diabetes",
    "kind": "table",
    "answers": "regression",
    "values": True,
    "target": "progression",
    "metrics": {"test": {"mae": 41.96, "rmse": 53.2, "r2": 0.478}},
    "conformal": {
        "level": 0.9,
        "coverage": 0.91,
        "mean_width": 176.4,
        "examples": [{"true": t, "predicted": t + 5, "low": t - 20, "high": t + 9} for t in range(50, 300, 10)],
    },
    "mistakes": [
        {"true": 50, "predicted": 211.7, "low": 120, "high": 300, "row": {"bmi": 30.2, "sex": "f", "s5": None}}
    ],
    "importance": [{"name": "bmi", "value": 0.1, "spread": 0.01}, {"name": "s5", "value": 0.4, "spread": 0.05}],
    "importance_score": "R²",
    "split": {"test": 89},
    "findings": [],
}
SECTIONS = {
    "summary": ["metrics", "conformal", "reliability", "cost"],
    "learning": ["curves"],
    "errors": ["confusion"],
    "calibration": ["reliability"],
    "conformal": ["conformal"],
    "mistakes": ["mistakes"],
    "importance": ["importance"],
    "data": ["split", "balance", "findings", "columns"],
    "cost": ["cost"],
    "recipe": ["config"],
    "repeat": ["commands", "versions", "fingerprint"],
}


def test_every_section_of_a_classifier():
    page = read(DIGITS)
    assert page.ids == list(SECTIONS)
    assert page.links == [f"#{name}" for name in SECTIONS]
    for sentence in (
        "90.0\xa0% of 30 unseen digits correct; sets at the 90\xa0% level cover 90.0\xa0%, with 0.97 classes on average.",
        "95\xa0% interval 74.4 to 96.5\xa0%",
        "27 of 30 right. Always predicting zero, the most frequent class, would be right 33.3\xa0% of the time.",
        "Logits are divided by a temperature of 1.30, fitted on the validation part. A temperature above one lowers the "
        "confidence.",
        "2 sets are empty: none of the classes is plausible at this level.",
        "With 30 test and 10 calibration examples, 95 % of measured coverages lie between",
        "One image could not be read.",
        "1.23 million",
        "410 MB",
        "Odd thing",
        '"seed": 0',
        "wonderland predict runs/digits NEW",
        "Most confident mistakes",
        "Set sizes",
    ):
        assert sentence.replace("\xa0", " ") in page.text.replace("\xa0", " "), sentence
    assert page.sources == [PIXEL]


def test_every_section_of_a_regression():
    page = read(DIABETES)
    assert {"errors", "conformal", "mistakes", "importance", "data"} <= set(page.ids)
    assert "calibration" not in page.ids
    text = page.text.replace("\xa0", " ")
    for sentence in (
        "Mean absolute error 42.0 over 89 unseen rows (R² 0.48); intervals at the 90 % level cover 91.0 % and are 176 wide",
        "Predictions and residuals",
        "Residuals over prediction",
        "Largest errors",
        "161.7",
        "120 to 300",
        "drop of R²",
        "How much the R² on unseen rows drops when one column is shuffled.",
        "No repairs or omissions were needed.",
    ):
        assert sentence in text, sentence
    html = render(DIABETES)
    assert html.index(">s5</th>") < html.index(">bmi</th>") < html.index(">sex</th>")


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_without_facts_is_left_out(section):
    facts = {key: value for key, value in DIGITS.items() if key not in SECTIONS[section]}
    page = read(facts)
    assert section not in page.ids
    assert f"#{section}" not in page.links
    only = {key: DIGITS[key] for key in ("classes", "answers", *SECTIONS[section]) if key in DIGITS}
    assert section in read(only).ids


@pytest.mark.parametrize("key", DIGITS)
@pytest.mark.parametrize("value", [None, [], {}, 0, ""])
def test_any_key_may_be_empty(key, value):
    read(DIGITS | {key: value})
    if key in DIABETES:
        read(DIABETES | {key: value})


def test_nothing_at_all():
    page = read({})
    assert "A fitted model" in page.text
    assert "No test metrics were recorded." in page.text
    assert page.ids == []
    assert "nav" not in page.tags


def poison(value, evil=EVIL):
    """The same facts with every word replaced by something hostile; keys that name a meaning stay."""
    if isinstance(value, dict):
        return {k: poison(v, evil) for k, v in value.items()}
    if isinstance(value, list):
        return [poison(v, evil) for v in value]
    return evil if isinstance(value, str) and value != PIXEL else value


@pytest.mark.parametrize(
    "evil", [EVIL, '" onload="alert(1)', "</style></title></pre><img src=x onerror=alert(1)>", "a\x00\ud83d\u202eb"]
)
@pytest.mark.parametrize("facts", [DIGITS, DIABETES], ids=["digits", "diabetes"])
def test_hostile_text_is_escaped(facts, evil):
    hostile = poison(copy.deepcopy(facts), evil) | {"kind": facts["kind"]}
    hostile["balance"] = hostile["versions"] = {evil: 3}
    hostile["metrics"] = {evil: {evil: 1}, "test": {evil: 0.5, "accuracy": 0.5}}
    hostile["cost"] = {evil: evil, "device": evil, "parameters": evil}
    hostile["columns"] = [{evil: evil}]
    hostile["curves"] = {evil: [1, 2], "name": evil, "unit": evil, "best": 1}
    page = read(hostile)
    assert page.tags <= {*read(DIGITS).tags, *read(DIABETES).tags}


@pytest.mark.parametrize(
    "image",
    [
        "https://example.org/x.png",
        "data:text/html;base64,AAAA",
        "data:image/svg+xml;base64,AAAA",
        'data:image/png;base64,AAAA" onerror="x',
        "data:image/png;base64," + "A" * 70_000,
        7,
    ],
)
def test_only_small_bitmap_data_uris_are_shown(image):
    mistake = {"true": "a", "predicted": "b", "probability": 0.9, "image": image}
    page = read({"answers": "3 classes", "mistakes": [mistake]})
    assert page.sources == []
    assert "90.0 %" in page.text


def test_metrics_that_are_not_numbers():
    page = read(
        DIGITS | {"metrics": {"test": {"accuracy": NAN, "log_loss": float("inf"), "auroc": None}}, "conformal": None}
    )
    assert "The test metrics are not finite numbers." in page.text
    assert "nan" not in page.text.lower()


def test_the_page_stays_small():
    names = [f"class {i} " + "x" * 200 for i in range(300)]
    facts = {
        "answers": "300 classes",
        "classes": names,
        "confusion": [[3] * 100 for _ in range(100)],
        "mistakes": [
            {"true": n, "predicted": n, "probability": 0.5, "row": dict.fromkeys(names, "y" * 5000)} for n in names
        ],
        "columns": [{"name": n, "kind": "number"} for n in names * 20],
        "findings": [{"kind": "k", "subject": n, "count": 1, "text": "z" * 3000} for n in names],
        "balance": dict.fromkeys(names, 5),
        "config": {"long": ["v" * 100] * 5000},
        "commands": ["c" * 100_000] * 50,
        "curves": {"steps": list(range(50_000)), "train": [1.0] * 50_000},
        "importance": {"height": 512, "width": 512, "values": [[1.0] * 512] * 512},
    }
    html = render(facts)
    assert len(html) < 1_200_000
    text = read(facts).text
    assert "… and 5,800 more." in text
    assert "The 20 of 100 classes with the most errors." in text
    assert "cut here; the rest is in config.json." in text


def test_rendering_is_pure():
    before = json.dumps(DIGITS)
    assert render(DIGITS) == render(json.loads(before))
    assert json.dumps(DIGITS) == before


def test_binary_and_list_of_curves():
    curves = [
        {"steps": [1, 2], "train": [2, 1], "name": "loss"},
        {"steps": [1, 2], "validation": [0.1, 0.2], "name": "rate"},
    ]
    page = read({"answers": "two classes", "curves": curves})
    assert "Loss" in page.text
    assert "Rate" in page.text
    assert "two classes" in page.text


@pytest.mark.parametrize(
    ("coverage", "sentence"),
    [
        (0.9, "is inside this range"),
        (0.5, "is below: calibration and test part may differ"),
        (1.0, "is above: the"),
    ],
)
def test_coverage_is_compared_with_its_range_by_chance(coverage, sentence):
    facts = {
        "answers": "3 classes",
        "conformal": {"level": 0.9, "coverage": coverage},
        "split": {"test": 1000, "calibration": 900},
    }
    assert sentence in read(facts).text


@pytest.mark.parametrize(
    ("temperature", "after", "sentence"),
    [
        (0.7, 0.01, "A temperature below one raises the confidence."),
        (1.0, 0.01, "The temperature fitted on the validation part is close to one: confidences hardly change."),
        (1.4, 0.09, "On the test part this did not lower the calibration error."),
    ],
)
def test_temperature_is_explained(temperature, after, sentence):
    facts = {"reliability": DIGITS["reliability"] | {"temperature": temperature, "ece_after": after}}
    assert sentence in read(facts).text


@pytest.mark.parametrize("loss", ["log loss", "absolute error"])
def test_a_loss_rises_when_a_column_is_shuffled(loss):
    page = read({"importance": [{"name": f"c{i}", "value": i} for i in range(21)], "importance_score": loss})
    assert f"How much the {loss} on unseen rows rises when one column is shuffled." in page.text
    assert f"rise of {loss}" in page.text
    assert "drop" not in page.text
    assert "The least important column is not drawn." in page.text


def test_the_table_of_mistakes():
    row = {f"c{i}": None for i in range(13)} | {"price": 50.0, "day": "2024-01-31"}
    mistake = {"true": 50.0, "predicted": None, "row": row}
    facts = {"answers": "regression", "values": True, "target": "price", "mistakes": [mistake]}
    html = render(facts | {"importance": [{"name": "day", "value": 1.0}]})
    assert ">price</th>" not in html
    assert '<td class="o">2024-01-31</td>' in html
    assert "None" not in html
    assert "2 more columns are not shown." in html
    del row["c12"]
    assert "1 more column is not shown." in render(facts)
    classes = render({"answers": "3 classes", "mistakes": [{"true": "a", "predicted": None, "probability": 0.9}]})
    assert "None" not in classes


def test_metrics_over_steps_have_their_names():
    page = read(
        {"curves": [{"name": "rmse", "validation": [3.0, 2.0]}, {"name": "accuracy", "validation": [0.9, 1.0]}]}
    )
    assert "RMSE" in page.text
    assert "Rmse" not in page.text
    assert "Accuracy" in page.text


def test_verdict_can_be_given_or_partial():
    assert verdict({"verdict": "Good."}) == "Good."
    assert verdict({"metrics": {"test": {"rmse": 2.5}}}) == "Root mean squared error 2.50 over unseen rows."
    only = {"values": True, "conformal": {"level": 0.95, "coverage": 0.94}}
    assert verdict(only) == "Intervals at the 95\xa0% level cover 94.0\xa0%."


def test_recordings_can_be_heard_and_nothing_else_gets_into_an_audio_element():
    wave = "data:audio/wav;base64,UklGRg=="
    facts = {"sounds": [{"image": PIXEL, "audio": wave, "true": EVIL}, {"audio": "https://x.org/a.wav", "true": "b"}],
             "classes": ["a", "b"], "mistakes": [{"true": "a", "predicted": "b", "probability": 0.9, "image": PIXEL, "audio": wave, "path": EVIL}]}  # fmt: skip
    text = render(facts)
    Page(text)
    assert text.count("<audio controls") == text.count(wave) == 2
    assert EVIL not in text
    assert "x.org" not in text
