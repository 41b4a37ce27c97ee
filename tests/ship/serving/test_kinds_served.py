"""Kinds whose rows have several answers, or belong together, answer each client about its own rows."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

import wonderland
from tests.kinds.clip.test_clips import write
from tests.kinds.graph.graphs import graph_folder
from tests.kinds.series.made import monthly
from tests.kinds.tags.test_kind import conll
from tests.ship.serving.application import application, ask
from wonderland.ship.predictor import Predictor


def served(tmp_path, source, *target, **options):
    return application(Predictor(wonderland.fit(source, *target, out=tmp_path / "run", steps=3, threads=1, **options)))


def test_words_of_a_sentence_stay_with_the_client_that_sent_it(tmp_path):
    app = served(tmp_path, conll(tmp_path / "w.conll", 60, 0))
    texts = ["Ada lives in Ulm .", "rain", "Bo of Acme saw Bonn today"]
    answers = ask(app, *(("POST", "/predict", {"rows": [{"text": text}]}) for text in texts))
    for text, (status, _, body) in zip(texts, answers, strict=True):
        assert status == 200
        assert [record["word"] for record in body["predictions"][0]["found"]] == text.split()


def test_steps_of_series_are_not_joined_with_those_of_other_clients(tmp_path):
    frame = monthly()
    app = served(tmp_path, frame, "units", kind="series", horizon=2, model="DLinear")
    one = [{"month": "2023-01-01", "units": 150.0}]  # a single new step, which follows what the run has stored
    two = [{"month": "2023-01-01", "units": 90.0}, {"month": "2023-02-01", "units": 91.0}]
    alone = [ask(app, ("POST", "/predict", {"rows": rows}))[2]["predictions"] for rows in (one, two)]
    together = [
        answer[2]["predictions"] for answer in ask(app, *(("POST", "/predict", {"rows": rows}) for rows in (one, two)))
    ]
    assert together == alone
    assert [len(records) for records in alone] == [2, 2]
    assert alone[0][0]["month"] == "2023-02-01"


@pytest.mark.slow
def test_a_clip_comes_as_a_gif_and_a_whole_graph_is_refused(tmp_path):
    app = served(tmp_path, write(tmp_path / "clips", range(24)))
    frames = [Image.fromarray(np.full((16, 16, 3), 40 * t, np.uint8)) for t in range(5)]
    buffer = io.BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:])
    row = {"clip": base64.b64encode(buffer.getvalue()).decode()}
    assert ask(app, ("POST", "/predict", {"rows": [row]}))[2]["predictions"][0]["prediction"] in ("left", "right")
    (tmp_path / "graphs").mkdir()
    app = served(tmp_path / "graphs", graph_folder(tmp_path / "g"))
    status, _, body = ask(app, ("POST", "/predict", {"rows": [{"id": "a", "kind": "a"}]}))
    assert status == 422
    assert body["error"]["message"] == (
        "This model answers for whole graphs, which are tables of nodes and edges and no rows of fields: wonderland predict reads their folder."
    )
