"""What is checked before any route: names, keys, sizes, rates; and the routes beside prediction."""

import asyncio

import pytest

from tests.ship.serving.application import GOOD, _one, application, ask, predictors
from wonderland.core import WonderlandError
from wonderland.ship.predictor import Predictor
from wonderland.ship.serving.app import guarded
from wonderland.ship.serving.limits import Limits, read_keys
from wonderland.ship.serving.metrics import Metrics
from wonderland.ship.serving.serve import serve

PREDICT = ("POST", "/v1/runs/mixed/predict", {"rows": [GOOD]})
KEY = "a key of thirty-two characters.."


def message(answer) -> tuple[int, str]:
    return answer[0], answer[2]["error"]["message"]


def test_a_key_is_asked_for_everywhere_but_for_health(tmp_path):
    path = tmp_path / "key"
    path.write_text(f"{KEY}\nanother key of some length\n")
    path.chmod(0o600)
    app = application(keys=read_keys(path))
    sentence = "This server needs a key: send the header Authorization: Bearer KEY."
    assert message(ask(app, PREDICT)) == (401, sentence)
    assert message(ask(app, (*PREDICT, {"authorization": f"Bearer {KEY[:-1]}"}))) == (401, sentence)
    assert message(ask(app, ("GET", "/metrics"))) == (401, sentence)
    assert ask(app, (*PREDICT, {"authorization": f"Bearer {KEY}"}))[0] == 200
    assert ask(app, ("GET", "/health"))[0] == 200


def test_keys_that_others_may_read_or_guess_are_refused(tmp_path):
    path = tmp_path / "key"
    path.write_text(KEY)
    path.chmod(0o644)
    with pytest.raises(WonderlandError) as error:
        read_keys(path)
    assert str(error.value) == f"Other users may read the key in {path}. Run: chmod 600 {path}"
    path.chmod(0o600)
    for content, sentence in (
        ("", f"{path} holds no key. Write one line of at least 16 characters into it."),
        ("short", f"A key in {path} is shorter than 16 characters, which can be guessed."),
    ):
        path.write_text(content)
        with pytest.raises(WonderlandError) as error:
            read_keys(path)
        assert str(error.value) == sentence


def test_an_open_address_needs_a_key():
    with pytest.raises(WonderlandError) as error:
        serve(["run"], host="0.0.0.0")
    assert str(error.value) == "Whoever reaches 0.0.0.0 could use the server: give a key with --key-file."


def test_pages_of_other_sites_and_other_names_are_refused():
    app = application()
    assert message(ask(app, (*PREDICT, {"host": "evil.example"}))) == (
        421, "This server does not answer to that host name. Name it with --allow-host.",
    )  # fmt: skip
    assert message(ask(app, (*PREDICT, {"origin": "http://evil.example"}))) == (
        403, "Pages of other sites may not use this server.",
    )  # fmt: skip
    assert ask(app, (*PREDICT, {"origin": "http://localhost:8000"}))[0] == 200


def test_sizes_rates_and_waiting_are_bounded():
    app = application(body=100, rate=1.0)
    assert message(ask(app, ("POST", "/v1/completions", b"x" * 101))) == (
        413,
        "The body is larger than 9.53674e-05 MiB.",
    )
    assert ask(app, ("GET", "/health"))[0] == 200
    status, head, body = ask(app, ("GET", "/health"))
    assert (status, body["error"]["message"]) == (
        429, "More than 1 requests a second came from this address. Slow down.",
    )  # fmt: skip
    assert head["retry-after"] == "1"
    full = application()
    full.app.predict["mixed"].batcher.most_waiting = 0
    assert message(ask(full, PREDICT)) == (
        503, "The server has as many requests waiting as it can hold. Try again in a moment.",
    )  # fmt: skip


def test_a_body_that_does_not_come_is_refused_in_time():
    app = application(read=0.05)

    async def slow():
        sent = []

        async def receive():
            await asyncio.sleep(5)

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/predict", "headers": [(b"host", b"localhost")]}
        await app(scope, receive, send)
        return sent

    start, body = asyncio.run(slow())
    assert start["status"] == 408
    assert b"The body did not come within 0.05 seconds." in body["body"]
    assert app.held == 0


def test_unknown_paths_and_methods():
    app = application()
    assert message(ask(app, ("GET", "/no"))) == (404, "There is nothing at '/no'. GET / lists what there is.")
    assert message(ask(app, ("GET", PREDICT[1]))) == (405, "Predictions are asked for with POST.")
    assert message(ask(app, ("DELETE", "/health"))) == (405, "DELETE is not possible at '/health'.")
    assert message(ask(app, ("GET", "/v1/runs/x"))) == (404, "There is no run 'x'. Known are mixed, diabetes, digits.")


def test_descriptions_of_the_server():
    app = application()
    ask(app, PREDICT)
    _, _, document = ask(app, ("GET", "/openapi.json"))
    operation = document["paths"]["/v1/runs/mixed/predict"]["post"]
    assert {"200", "401", "413", "422", "503"} <= set(operation["responses"])
    row = document["components"]["schemas"]["Row0"]
    assert row["required"] == ["age", "income", "city", "since"]
    assert row["properties"]["city"]["description"] == "A category: 'Lima', 'Oslo', 'Rome'; null where it is not known."
    _, _, listed = ask(app, ("GET", "/v1/runs"))
    assert [run["name"] for run in listed["runs"]] == ["mixed", "diabetes", "digits"]
    _, head, page = ask(app, ("GET", "/"))
    assert "script" not in page.decode()
    assert head["content-security-policy"].startswith("default-src 'none'")
    assert head["x-content-type-options"] == "nosniff"
    _, _, text = ask(app, ("GET", "/metrics"))
    assert b'wonderland_requests_total{route="/v1/runs/mixed/predict",status="200"} 1\n' in text
    assert b"wonderland_rows_total 1\n" in text


def test_one_run_has_a_short_address_and_two_need_two_names():
    one = predictors()[0]
    assert ask(application(one), ("POST", "/predict", {"rows": [GOOD]}))[0] == 200
    with pytest.raises(WonderlandError) as error:
        guarded([one, Predictor(one.run, "mixed")], Limits(), Metrics([]))
    assert str(error.value) == "Two runs are called 'mixed': rename the folder of one of them."


def test_counters_are_summed_over_workers():
    metrics = Metrics(["/predict"], workers=2)
    for metrics.worker in (0, 1, 1):
        metrics.add("rows", 2)
        metrics.request("/predict", 200, 0.02)
    text = metrics.text()
    assert "wonderland_rows_total 6\n" in text
    assert 'wonderland_request_seconds_bucket{route="/predict",le="0.01"} 0\n' in text
    assert 'wonderland_request_seconds_bucket{route="/predict",le="0.025"} 3\n' in text
    assert 'wonderland_request_seconds_count{route="/predict"} 3\n' in text


def test_a_client_that_leaves_costs_nothing_more():
    app = application()

    async def leave():
        task = asyncio.create_task(_one(app, *PREDICT))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await _one(app, *PREDICT)

    assert asyncio.run(leave())[0] == 200
    assert app.held == 0
