"""Export: one file that answers as predict does, on rows that people have and on odd ones."""

import json
import re
from types import SimpleNamespace

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import torch

import wonderland
from tests.runs import classifier, mixed, regressor
from wonderland.core import WonderlandError
from wonderland.ship import export
from wonderland.tasks import Classification
from wonderland.tasks.answers import ClassAnswers


def test_a_classifier_in_one_file_reads_numbers_words_and_dates(tmp_path):
    run = classifier()
    made = export(run, "onnx", tmp_path / "model.onnx")
    assert made.difference < 1e-5
    onnx.checker.check_model(onnx.load(made.files[0]), full_check=True)
    session = onnxruntime.InferenceSession(made.files[0])
    frame = mixed(50, seed=3).drop(columns="risk")
    frame.loc[0, "age"], frame.loc[1, "income"], frame.loc[2, "city"] = np.nan, 1e30, "Atlantis"
    seconds = pd.to_datetime(frame["since"]).astype("datetime64[s]").astype(np.int64)
    feed = {
        "age": frame["age"].to_numpy(np.float32),
        "income": frame["income"].to_numpy(np.float32),
        "city": frame["city"].fillna("NA").to_numpy(object),
        "since": seconds.to_numpy(),
    }
    prediction, probability, probabilities, sets = session.run(None, feed)
    expected = run.predict(frame)
    assert prediction.tolist() == expected["prediction"].tolist()
    assert np.abs(probability - expected["probability"]).max() < 1e-5
    assert np.abs(probabilities - expected[[f"p({name})" for name in run.classes]]).to_numpy().max() < 1e-5
    names = [[run.classes[i] for i in np.flatnonzero(row)] for row in sets]
    assert names == expected["set"].tolist()
    about = session.get_modelmeta().custom_metadata_map
    assert json.loads(about["wonderland.classes"]) == run.classes
    assert about["wonderland.level"] == "0.9"


def test_numbers_come_with_their_intervals(tmp_path):
    run = regressor()
    made = export(run, "onnx", tmp_path / "model.onnx", level=0.8)
    assert made.difference < 1e-5
    names = [output.name for output in onnxruntime.InferenceSession(made.files[0]).get_outputs()]
    assert names == ["prediction", "low", "high"]


def test_weights_in_bytes_make_a_smaller_file_and_say_what_it_loses(tmp_path):
    exact, small = tmp_path / "exact.onnx", tmp_path / "small.onnx"
    export(classifier(), "onnx", exact)
    note = export(classifier(), "onnx", small, quantize="int8").notes[-1]
    assert small.stat().st_size < 0.5 * exact.stat().st_size
    assert re.fullmatch(
        r"Quantized from [\d,]+ to [\d,]+ bytes\. Against the exact model on 100 rows: the same class in \d+, "
        r"the same set in \d+, probabilities differ by at most [\d.e-]+\.", note,
    )  # fmt: skip


def test_a_set_that_is_not_empty_holds_the_predicted_class():
    """The first group decides the set, all groups the class: here they differ in the first row."""
    task = Classification(["a", "b", "c"])
    trust = SimpleNamespace(temperature=1.0, groups=2, shares=np.ones(1), scores=SimpleNamespace(groups=[np.zeros(20)]))
    outputs = torch.tensor([[[4.0, 0, 0], [4, 0, 0], [0, 0, 0]], [[0.0, 9, 0], [4, 0, 0], [0, 0, 0]]])
    prediction, _, _, sets = ClassAnswers(task, trust, 0.9)(outputs)
    assert prediction.tolist()[:2] == [1, 0]
    assert sets.tolist() == [[True, True, False], [True, False, False], [False, False, False]]


def test_a_column_may_be_called_like_an_output(tmp_path):
    frame = pd.DataFrame(
        {"probability": np.sin(np.arange(60.0)), "add": np.arange(60.0) % 7, "y": ["a", "b", "c"] * 20}
    )
    run = wonderland.fit(frame, "y", out=tmp_path / "run", steps=5)
    session = onnxruntime.InferenceSession(export(run).files[0])
    assert [one.name for one in session.get_outputs()][:2] == ["prediction", "probability_"]


def test_a_file_that_differs_is_not_written(tmp_path, monkeypatch):
    run = classifier()
    monkeypatch.setattr("wonderland.ship.exporting.compare", lambda *args, **named: 0.25)
    monkeypatch.setattr("wonderland.ship.exporting.onnx_bytes", lambda *args: b"")
    monkeypatch.setattr("wonderland.ship.exporting.onnx_runner", lambda *args: None)
    with pytest.raises(WonderlandError) as error:
        export(run, "onnx", tmp_path / "model.onnx")
    assert (
        str(error.value) == "The exported model differs from predict by 2.5e-01, more than 1e-05: it was not written."
    )
    assert not (tmp_path / "model.onnx").exists()


def test_unknown_formats_are_named():
    with pytest.raises(WonderlandError, match=r"^There is no export to 'onx'\. Did you mean 'onnx'\? Known are onnx"):
        export(classifier(), "onx")
    with pytest.raises(WonderlandError) as error:
        export(classifier(), "torch", quantize="int8")
    assert str(error.value) == "Quantization is int8, of ONNX files: export --to onnx --quantize int8."
