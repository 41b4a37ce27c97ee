"""The studio by HTTP: the list, one run, its model; and what it refuses."""

import base64
import io
import json
import struct
import time

import numpy as np
import pytest
from PIL import Image

from tests import runs
from tests.ship.serving.application import GOOD, ask
from tests.studio import folder
from wonderland.cli.main import main
from wonderland.core import WonderlandError
from wonderland.ship.serving.limits import Limits
from wonderland.ship.serving.serve import LOCAL
from wonderland.studio.app import STATIC, guarded
from wonderland.studio.catalog import Catalog, count_parameters
from wonderland.studio.serve import studio


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return folder.make(tmp_path_factory.mktemp("studio") / "runs")


@pytest.fixture(scope="module")
def app(root):
    return guarded(root, LOCAL, Limits())


def test_the_list_has_every_run_with_its_state_and_numbers(app):
    status, _, body = ask(app, ("GET", "/api/runs"))
    found = {run["name"]: run for run in body["runs"]}
    assert status == 200
    states = {name: run["status"] for name, run in found.items()}
    hostile = folder.SCRIPT.replace("/", "")
    assert states == {"mixed": "finished", "numbers/diabetes": "finished", "digits": "finished", "live": "training",
                      "stopped": "stopped", "damaged": "damaged", hostile: "training"}  # fmt: skip
    assert found["mixed"]["metrics"] == pytest.approx(runs.classifier().metrics)
    assert found["mixed"]["parameters"] == sum(p.numel() for p in runs.classifier().model.state_dict().values())
    assert (found["mixed"]["task"], found["mixed"]["model"]) == ("Classification", "TableNet")
    assert "not valid JSON" in found["damaged"]["problem"]
    assert {"log_loss", "rmse"} <= set(body["lower"])
    assert "accuracy" not in body["lower"]


def test_one_run_has_curves_calibration_and_the_command_that_repeats_it(app):
    _, _, curves = ask(app, ("GET", "/api/run/live/curves"))
    assert [len(points) for points in curves["curves"].values()] == [1] * len(curves["curves"])
    assert curves["summary"]["status"] == "training"
    _, _, found = ask(app, ("GET", "/api/run/numbers/diabetes/details"))
    assert found["commands"][0]["command"].startswith("wonderland fit diabetes --steps 60")
    assert 0 < found["test"]["conformal"]["coverage"] <= 1
    _, _, found = ask(app, ("GET", "/api/run/mixed/details"))
    assert found["test"]["reliability"]["after"]
    assert found["findings"] == runs.classifier().findings
    status, head, page = ask(app, ("GET", "/api/run/mixed/report"))
    assert status == 200
    assert head["content-security-policy"].startswith("sandbox;")
    assert page == (runs.classifier().folder / "report.html").read_bytes()


def test_a_model_answers_as_the_server_does(app):
    _, _, schema = ask(app, ("GET", "/api/run/mixed/schema"))
    assert [field["name"] for field in schema["fields"]] == ["age", "income", "city", "since"]
    status, _, body = ask(app, ("POST", "/api/run/mixed/predict", {"rows": [GOOD]}))
    assert status == 200
    assert body["predictions"][0]["prediction"] in ("high", "low")
    buffer = io.BytesIO()
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(buffer, "PNG")
    picture = {"image": base64.b64encode(buffer.getvalue()).decode()}
    status, _, body = ask(app, ("POST", "/api/run/digits/predict", {"rows": [picture]}))
    assert (status, len(body["predictions"][0]["probabilities"])) == (200, 10)


@pytest.mark.parametrize(
    ("request_", "status", "sentence"),
    [
        (("POST", "/api/run/mixed/predict", {"rows": [{}]}), 422, "rows[0] lacks 'age'. Give null where a value is not known. There are 3 more."),
        (("POST", "/api/run/mixed/write", {}), 422, "The run 'mixed' does not write texts."),
        (("GET", "/api/run/live/schema"), 422, "The run 'live' is not finished: it can be tried when it is."),
        (("GET", "/api/run/mixed/../x/details"), 422, "There is no run 'mixed/../x' in ROOT."),
        (("GET", "/api/run//etc/details"), 422, "There is no run '/etc' in ROOT."),
        (("GET", "/api/run/live/report"), 422, "ROOT/live/report.html is missing."),
        (("GET", "/../app.py"), 404, "There is nothing at '/../app.py'."),
        (("GET", "/nothing.js"), 404, "There is nothing at '/nothing.js'."),
        (("GET", "/", None, {"host": "evil.example"}), 421, "This server does not answer to that host name. Name it with --allow-host."),
        (("POST", "/api/run/mixed/predict", {"rows": [GOOD]}, {"origin": "http://evil.example"}), 403, "Pages of other sites may not use this server."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_sentence(app, root, request_, status, sentence):
    found, _, body = ask(app, request_)
    assert (found, body["error"]["message"].replace(str(root), "ROOT")) == (status, sentence)


def test_the_page_loads_nothing_from_elsewhere(app):
    status, head, page = ask(app, ("GET", "/"))
    assert status == 200
    assert head["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    for file in STATIC.iterdir():
        status, head, content = ask(app, ("GET", f"/{file.name}"))
        text = content.decode()
        assert status == 200
        assert head["x-content-type-options"] == "nosniff"
        assert "https://" not in text.replace("https://www.w3.org", "")
        assert "innerHTML" not in text
        assert "eval(" not in text
    assert b"<script>" not in page


def test_five_hundred_runs_are_listed_in_less_than_a_second(tmp_path):
    catalog = Catalog(folder.many(tmp_path / "runs", 500))
    start = time.process_time()
    assert len(catalog.runs()) == 500
    first = time.process_time() - start
    start = time.process_time()
    catalog.runs()
    assert first < 1
    assert time.process_time() - start < first
    (tmp_path / "runs" / "run 007" / "trust.json").unlink()
    assert {run["name"]: run["status"] for run in catalog.runs()}["run 007"] != "finished"


def test_numbers_of_a_run_that_are_not_numbers_are_left_out(tmp_path, root):
    (tmp_path / "odd").mkdir()
    config = json.loads((root / "mixed" / "config.json").read_text())
    (tmp_path / "odd" / "config.json").write_text(json.dumps(config | {"source": [], "recipe": 3}))
    (tmp_path / "odd" / "metrics.jsonl").write_text(
        '{"step": 1, "loss": NaN}\n[1]\n{"step": "x"}\n{"step": 2, "loss": 1e999}\n'
    )
    (tmp_path / "odd" / "model.safetensors").write_bytes(b"\xff" * 50)
    (run,) = Catalog(tmp_path).runs()
    assert (run["status"], run["metrics"], run["parameters"], run["step"]) == ("training", {}, None, 2)


def test_a_wrong_start_ends_in_a_sentence(tmp_path, capsys):
    with pytest.raises(WonderlandError) as error:
        studio(tmp_path, host="0.0.0.0", port=8765)
    assert str(error.value) == (
        "The studio is for this machine only, and 0.0.0.0 is reached by others. From another one, use a tunnel: "
        "ssh -L 8765:127.0.0.1:8765 THIS-MACHINE"
    )
    assert main(["studio", str(tmp_path / "no")]) == 2
    assert (
        capsys.readouterr().err
        == f"wonderland: There is no folder {tmp_path / 'no'}: name the one that holds your runs.\n"
    )


def test_sizes_that_no_file_has_are_not_multiplied(tmp_path):
    for shape in ([10**400] * 10, [2] * 1000):
        header = json.dumps({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}).encode()
        (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
        assert count_parameters(tmp_path / "model.safetensors") is None
