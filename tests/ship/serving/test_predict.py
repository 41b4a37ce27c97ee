"""The routes that predict give what predict gives, and refuse what is wrong in a sentence."""

import base64
import io
import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests import runs
from tests.ship.serving.application import GOOD, application, ask, predictors

PATH = "/v1/runs/mixed/predict"


@pytest.fixture(scope="module")
def app():
    return application()


def test_rows_get_what_predict_says(app):
    frame = runs.mixed(20, seed=7).drop(columns="risk")
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    status, _, body = ask(app, ("POST", PATH, {"rows": rows, "level": 0.8}))
    expected = runs.classifier().predict(frame, level=0.8)
    assert status == 200
    assert (body["run"], body["level"], body["version"]) == ("mixed", 0.8, predictors()[0].version)
    assert [row["prediction"] for row in body["predictions"]] == expected["prediction"].tolist()
    assert [row["set"] for row in body["predictions"]] == expected["set"].tolist()
    probabilities = [row["probabilities"]["high"] for row in body["predictions"]]
    assert probabilities == pytest.approx(expected["p(high)"].tolist(), abs=1e-6)


def test_numbers_come_with_intervals(app):
    row = dict.fromkeys(runs.regressor().encoder.numbers, 0.01)
    status, _, body = ask(app, ("POST", "/v1/runs/diabetes/predict?level=0.5", {"rows": [row]}))
    (found,) = body["predictions"]
    assert status == 200
    assert found["low"] < found["prediction"] < found["high"]
    wide = ask(app, ("POST", "/v1/runs/diabetes/predict", {"rows": [row], "level": 0.99}))[2]["predictions"][0]
    assert wide["high"] - wide["low"] > found["high"] - found["low"]


def test_requests_at_the_same_time_are_predicted_together_and_a_bad_one_spoils_no_other(app, monkeypatch):
    requests = [("POST", PATH, {"rows": [GOOD | {"age": age}]}) for age in range(20, 50)]
    before = app.metrics.counts.copy()
    together = [body["predictions"][0] for _, _, body in ask(app, *requests)]
    batches, answered = (app.metrics.counts - before)[0, 1:3]
    assert answered == 30
    assert batches <= 3
    alone = [ask(app, request)[2]["predictions"][0] for request in requests[:3]]
    for one, among in zip(alone, together, strict=False):
        assert one["probability"] == pytest.approx(among["probability"], abs=1e-6)
    route = app.app.predict["mixed"].batcher
    compute = route.compute

    def picky(rows, level):
        if any(row["age"] == 33 for row in rows):
            raise ZeroDivisionError
        return compute(rows, level)

    monkeypatch.setattr(route, "compute", picky)
    statuses = [status for status, *_ in ask(app, *requests)]
    assert statuses.count(200) == 29
    assert statuses[33 - 20] == 500


def test_csv_in_and_csv_out(app, monkeypatch):
    monkeypatch.setattr("wonderland.ship.predictor.CSV_CHUNK", 16)
    frame = runs.mixed(50, seed=8)
    content = frame.to_csv(index=False).encode()
    status, head, body = ask(app, ("POST", PATH, content, {"content-type": "text/csv; charset=utf-8"}))
    found = pd.read_csv(io.BytesIO(body))
    expected = runs.classifier().predict(frame)
    assert status == 200
    assert head["content-type"].startswith("text/csv")
    assert list(found) == list(expected)
    assert found["prediction"].tolist() == expected["prediction"].tolist()
    assert found["p(high)"].to_numpy() == pytest.approx(expected["p(high)"].to_numpy(), abs=1e-6)


def picture(i: int) -> bytes:
    """A digit as a PNG file."""
    from sklearn.datasets import load_digits

    buffer = io.BytesIO()
    Image.fromarray((load_digits().images[i] * 15.9).astype(np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


def test_pictures_come_as_they_are_in_a_form_or_in_json(app, tmp_path):
    content, path = picture(4), "/v1/runs/digits/predict"
    (tmp_path / "4.png").write_bytes(content)
    expected = runs.digits().predict(tmp_path / "4.png")["probability"][0]
    form = (
        b'--edge\r\nContent-Disposition: form-data; name="file"; filename="4.png"\r\n\r\n'
        + content
        + b"\r\n--edge--\r\n"
    )
    answers = ask(
        app,
        ("POST", path, content, {"content-type": "image/png"}),
        ("POST", path, form, {"content-type": "multipart/form-data; boundary=edge"}),
        ("POST", path, {"rows": [{"image": base64.b64encode(content).decode()}]}),
    )
    for status, _, body in answers:
        assert status == 200
        assert body["predictions"][0]["probability"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("content", "status", "sentence"),
    [
        ({"rows": [GOOD | {"age": "old"}]}, 422, "rows[0].age: Input should be a valid number, unable to parse string as a number, not 'old'."),
        ({"rows": [GOOD | {"age": True}]}, 422, "rows[0].age: give a number or null, not true or false, not 'True'."),
        ({"rows": [{"agge": 3, **{k: v for k, v in GOOD.items() if k != "age"}}]}, 422,
         "rows[0] lacks 'age'. Did you mean 'agge'? Give null where a value is not known."),
        ({"rows": []}, 422, "rows: a request has from 1 to 1,000 rows; send more in parts, or as CSV."),
        ({"rows": [GOOD] * 1001}, 422, "rows: a request has from 1 to 1,000 rows; send more in parts, or as CSV."),
        ({"row": GOOD}, 422, 'The body lacks \'rows\': send {"rows": [{...}]}, one object for each row.'),
        ({"rows": [GOOD], "level": 1.5}, 422, "level: Input should be less than 1, not '1.5'."),
        (b'{"rows": [', 422, "The body is not JSON: EOF while parsing a list at line 1 column 10."),
        (b"\xff\xfe", 422, "The body is not JSON: expected value at line 1 column 1."),
        (b'{"rows": [{"age": 1e999, "income": null, "city": null, "since": null}]}', 422,
         "rows[0].age: Input should be a finite number, not 'inf'."),
    ],
)  # fmt: skip
def test_wrong_bodies_are_refused_in_a_sentence(app, content, status, sentence):
    found, _, body = ask(app, ("POST", PATH, content, {"content-type": "application/json"}))
    assert (found, body["error"]["message"]) == (status, sentence)


@pytest.mark.parametrize(
    ("path", "content", "kind", "status", "sentence"),
    [
        (PATH, b"age\n3\n", "text/csv", 422, "frame lacks the columns 'income', 'city', 'since' that the model needs."),
        (PATH, b"\x00", "text/csv", 422, "the CSV text is not text: there is a zero byte at offset 0 (line 1)."),
        (PATH, b"x", "text/plain", 415, "Send application/json, or text/csv."),
        (f"{PATH}?level=2", b"x", "text/csv", 422, "The level of sets and intervals is between 0 and 1, such as 0.9, not '2'."),
        ("/v1/runs/digits/predict", b"no", "image/png", 422,
         "The image is not a PNG, JPEG, WebP, GIF, BMP or TIFF image, whatever its name says. Convert it, or remove it."),
        ("/v1/runs/digits/predict", b"no", "multipart/form-data; boundary=x", 400, "The form is cut short, or has too many parts."),
        ("/v1/runs/digits/predict", b"no", "multipart/form-data", 400, "The form has no boundary in its Content-Type."),
    ],
)  # fmt: skip
def test_wrong_files_are_refused_in_a_sentence(app, path, content, kind, status, sentence):
    found, _, body = ask(app, ("POST", path, content, {"content-type": kind}))
    assert (found, body["error"]["message"]) == (status, sentence)


def test_mutated_requests_are_answered_or_refused_and_never_a_fault(app):
    generator = np.random.default_rng(0)
    good = json.dumps({"rows": [GOOD], "level": 0.9}).encode()
    kinds = ["application/json", "text/csv", "image/png", "multipart/form-data; boundary=x", "", "\u00e9"]
    requests = []
    for i in range(300):
        content = bytearray(good if i % 3 else picture(0))
        for place in generator.integers(0, len(content), generator.integers(1, 6)):
            content[place] = generator.integers(0, 256)
        kind = kinds[int(generator.integers(len(kinds)))].encode("utf-8").decode("latin-1")
        path = ("/v1/runs/mixed/predict", "/v1/runs/digits/predict", "/v1/completions")[i % 3 - 1]
        requests.append(
            ("POST", path, bytes(content[: generator.integers(1, len(content) + 1)]), {"content-type": kind})
        )
    for request, (status, _, body) in zip(requests, ask(app, *requests), strict=True):
        assert status == 200 or 400 <= status < 500, request
        assert status == 200 or body["error"]["message"].endswith((".", ". There is 1 more.")), request
