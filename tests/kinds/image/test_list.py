"""A table of paths: classes or a number; images that cannot be read are named, or left out and listed."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import wonderland
from wonderland import kinds
from wonderland.cli.main import main
from wonderland.core import WonderlandError


@pytest.fixture
def pictures(tmp_path):
    draw, rows = np.random.default_rng(0), []
    (tmp_path / "files").mkdir()
    for index in range(40):
        level = int(draw.integers(20, 230))
        pixels = np.clip(level + draw.normal(0, 8, (12, 12, 3)), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / "files" / f"{index}.png")
        rows.append({"file": f"files/{index}.png", "level": level + 0.5, "label": "light" if level > 125 else "dark"})
    frame = pd.DataFrame(rows)
    frame[["file", "label"]].to_csv(tmp_path / "classes.csv", index=False)
    frame[["file", "level"]].to_csv(tmp_path / "values.csv", index=False)
    return tmp_path


def test_classes_and_values_are_read_from_a_table(pictures):
    images = kinds.open(pictures / "classes.csv")
    assert (len(images), images.classes, images.shape if hasattr(images, "shape") else (12, 12)) == (
        40,
        ["dark", "light"],
        (12, 12),
    )
    values = kinds.open(pictures / "values.csv")
    assert values.task == "regression"
    assert values.classes is None


def test_a_table_is_fitted_predicted_and_evaluated(pictures):
    assert main(["fit", str(pictures / "classes.csv"), "--steps", "30", "--quiet", "--out", str(pictures / "run")]) == 0
    run = wonderland.load(pictures / "run")
    assert len(run.predict(pictures / "classes.csv")) == 40
    assert len(run.predict(pictures / "files")) == 40
    assert run.evaluate(pictures / "classes.csv")
    assert (
        main(["fit", str(pictures / "values.csv"), "--steps", "10", "--quiet", "--out", str(pictures / "other")]) == 0
    )


def test_images_that_cannot_be_read_are_named_or_left_out(pictures):
    (pictures / "files/3.png").write_bytes(b"")
    (pictures / "files/5.png").unlink()
    with pytest.raises(WonderlandError, match=r"names files/5\.png in row 6, and there is no such file beside it\."):
        kinds.open(pictures / "classes.csv")
    images = kinds.open(pictures / "classes.csv", skip_broken=True)
    assert len(images) == 38
    texts = [finding.text for finding in images.findings]
    assert texts[2] == "2 images cannot be read and are left out: files/3.png, files/5.png."


def test_broken_images_in_class_folders_are_left_out(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for index in range(3):
            Image.fromarray(np.full((9, 9), 40 * index, np.uint8)).save(tmp_path / name / f"{index}.png")
    (tmp_path / "a/bad.png").write_bytes(b"not an image")
    with pytest.raises(WonderlandError, match=r"bad\.png"):
        kinds.open(tmp_path)
    images = kinds.open(tmp_path, skip_broken=True)
    assert len(images) == 6
    assert any(finding.text == "1 image cannot be read and is left out: a/bad.png." for finding in images.findings)


def test_refusals(pictures):
    with pytest.raises(WonderlandError, match=r"has no column 'lable'\. Its columns are file, label\."):
        kinds.open(pictures / "classes.csv", kind="image", target="lable")
    with pytest.raises(WonderlandError, match="The class of an image is the name of its folder: leave the target out"):
        kinds.open(pictures, kind="image", target="label")
