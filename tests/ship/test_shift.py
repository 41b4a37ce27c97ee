"""`wonderland shift` and label shift in predict and evaluate, on runs of tables, images and texts."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

import wonderland
from tests import runs
from wonderland.cli.main import main
from wonderland.core import WonderlandError


@pytest.fixture(scope="module")
def moved():
    frame = runs.mixed(200, seed=6)
    frame["age"] += 25
    frame.loc[frame.index[:80], "city"] = "<b>Paris"
    return frame


def test_a_table_without_and_with_shift():
    run = runs.classifier()
    same = run.shift(runs.mixed(200, seed=3))
    assert not same.shifted
    assert same.sentence.startswith("No shift was found: these rows look like those the model was calibrated on (p = ")
    assert [column.name for column in same.columns] == ["age", "income", "city", "since"]
    assert "since: the median date was 2021-" in same.columns[3].words


def test_a_shifted_table_in_the_shell(moved, tmp_path, capsys):
    run = runs.classifier()
    moved.to_csv(tmp_path / "moved.csv", index=False)
    runs.mixed(100, seed=4).to_csv(tmp_path / "same.csv", index=False)
    page = tmp_path / "page.html"
    assert main(["shift", str(run.folder), str(tmp_path / "moved.csv"), "-o", str(page)]) == 1
    shown = capsys.readouterr().out
    assert "These rows differ from those the model was calibrated on, most clearly in city, age" in " ".join(
        shown.split()
    )
    written = page.read_text()
    assert "&lt;b&gt;Paris" in written
    assert "<b>Paris" not in written
    assert main(["shift", str(run.folder), str(tmp_path / "same.csv"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["shifted"] is False
    assert set(facts["class_shares"]) == {"high", "low"}
    assert main(["shift", str(run.folder), "nowhere.csv"]) == 2
    assert main(["shift", str(run.folder), "same.csv", "-o", "page.pdf"]) == 2
    assert "The page is written as .html, and 'page.pdf' ends otherwise." in capsys.readouterr().err


def test_numbers_and_images():
    run = runs.regressor()
    assert run.shift("diabetes").labels is None
    digits = runs.digits()
    images = np.random.default_rng(0).integers(0, 17, (60, 8, 8)).astype(np.uint8)
    found = digits.shift(images)
    assert found.shifted
    assert [column.name for column in found.columns] == ["brightness", "contrast", "edges"]


def test_texts(tmp_path):
    draw = np.random.default_rng(0)
    words = {"good": ["fine", "great", "lovely", "nice"], "bad": ["awful", "poor", "dull", "weak"]}

    def texts(count, extra=()):
        labels = draw.choice(["good", "bad"], count)
        pools = [[*words[label], "the", "film", "was", *extra] for label in labels]
        lines = [" ".join(draw.choice(pool, draw.integers(6, 14))) for pool in pools]
        return pd.DataFrame({"text": lines, "label": labels})

    texts(200).to_csv(tmp_path / "texts.csv", index=False)
    run = wonderland.fit(tmp_path / "texts.csv", "label", kind="text", out=tmp_path / "run", steps=5)
    assert not run.shift(texts(100)).shifted
    found = run.shift(texts(100, extra=["UNSEEN", "STRANGE", "12345"]))
    assert found.shifted
    assert {column.name for column in found.changed} >= {"share of capitals", "share of unknown tokens"}


def test_probabilities_are_corrected_for_other_shares_of_classes():
    run = runs.classifier()
    rows = runs.mixed(1500, seed=9)
    high, low = rows[rows["risk"] == "high"], rows[rows["risk"] == "low"]
    other = pd.concat([high, low.head(len(high) // 6)], ignore_index=True)
    plain = run.evaluate(other)["metrics"]["log_loss"]
    for method in ("em", "black-box"):
        assert run.evaluate(other, label_shift=method)["metrics"]["log_loss"] < 0.8 * plain
        assert run.noticed[-1].text.startswith(
            "Probabilities and sets are corrected for the estimated shares of classes: 'high' "
        )
        assert run.evaluate(other, label_shift=method)["conformal"]["coverage"] == pytest.approx(0.9, abs=0.03)
    table = run.predict(other, label_shift="em")
    assert (table["p(high)"] >= run.predict(other)["p(high)"]).all()
    with pytest.raises(WonderlandError, match="label_shift is em or black-box, not 'bbse'"):
        run.predict(other, label_shift="bbse")
    with pytest.raises(WonderlandError, match="Shares of classes are estimated from 30 rows or more, and there are 5"):
        run.predict(other.head(5), label_shift="em")
    with pytest.raises(WonderlandError, match="label_shift is for classification: this run predicts numbers"):
        runs.regressor().evaluate("diabetes", label_shift="em")


def test_what_is_missing_or_changed_is_said(tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(runs.classifier().folder, folder)
    context = folder / "context.safetensors"
    content = context.read_bytes()
    context.write_bytes(content[:-9] + b"x" * 9)
    with pytest.raises(WonderlandError, match="does not match the digest stored in it"):
        wonderland.load(folder).shift(runs.mixed(50))
    context.write_bytes((runs.regressor().folder / "context.safetensors").read_bytes())
    with pytest.raises(WonderlandError, match="was made for another model: fit the run again"):
        wonderland.load(folder).shift(runs.mixed(50))
    context.unlink()
    with pytest.raises(WonderlandError, match=r"keeps no rows to compare with: it has no context\.safetensors"):
        wonderland.load(folder).shift(runs.mixed(50))


def test_other_tasks_say_that_they_have_no_such_test(tmp_path):
    (tmp_path / "corpus.txt").write_text("one two three four five six seven\n" * 200)
    run = wonderland.fit(tmp_path / "corpus.txt", out=tmp_path / "run", kind="corpus", steps=2)
    assert not (tmp_path / "run" / "context.safetensors").exists()
    with pytest.raises(WonderlandError, match="Shift is tested where each row has one class or number, and the run in"):
        run.shift(tmp_path / "corpus.txt")
