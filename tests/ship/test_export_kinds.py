"""Export of each kind of run: the file is run on odd inputs and answers as predict does."""

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from PIL import Image

import wonderland
from tests.runs import digits
from wonderland.ship import export


def session_of(made):
    return onnxruntime.InferenceSession(made.files[0], providers=["CPUExecutionProvider"])


def test_images_of_any_size_are_fitted_inside(tmp_path):
    run = digits()
    session = session_of(export(run, "onnx", tmp_path / "model.onnx"))
    pictures = np.random.default_rng(1).integers(0, 256, (5, 31, 77, 3), dtype=np.uint8)
    prediction, _, probabilities, _ = session.run(None, {"image": pictures})
    for i, picture in enumerate(pictures):
        Image.fromarray(picture).save(tmp_path / f"{i}.png")
    expected = run.predict([tmp_path / f"{i}.png" for i in range(5)])
    assert prediction.tolist() == expected["prediction"].tolist()
    columns = expected[[f"p({name})" for name in run.classes]].to_numpy()
    assert np.abs(probabilities - columns).max() < 1e-5


@pytest.mark.slow
def test_images_in_colour_numbers_and_several_labels(tmp_path):
    generator = np.random.default_rng(0)
    pixels = generator.integers(0, 256, (120, 24, 20, 3), dtype=np.uint8)
    values = pixels.mean((1, 2, 3)).astype(float)
    run = wonderland.fit((pixels, values), out=tmp_path / "numbers", steps=5)
    assert export(run, "onnx", tmp_path / "numbers.onnx").difference < 1e-5
    for i in range(60):
        Image.fromarray(pixels[i, : 12 + i % 7]).save(tmp_path / f"{i}.png")
    labels = [";".join(name for name in "abc" if generator.random() < 0.5) for _ in range(60)]
    pd.DataFrame({"path": [f"{i}.png" for i in range(60)], "labels": labels}).to_csv(tmp_path / "list.csv", index=False)
    run = wonderland.fit(tmp_path / "list.csv", out=tmp_path / "labels", steps=5, kind="image")
    made = export(run, "onnx", tmp_path / "labels.onnx", quantize="int8")
    assert made.difference < 1e-5
    assert made.notes[-1].startswith("Quantized from ")
    assert export(run, "torch", tmp_path / "labels.pt2").difference < 1e-5
