import json
import shutil

import numpy as np
import pandas as pd
import pytest
import torch

import wonderland
from tests import runs
from wonderland.core import WonderlandError, sha256


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(tmp_path):
    frame = runs.mixed()
    one, two, three = (
        wonderland.fit(frame, "risk", out=tmp_path / str(i), steps=30, seed=seed) for i, seed in enumerate((0, 0, 1))
    )
    files = [sha256(run.folder / "model.safetensors") for run in (one, two, three)]
    assert files[0] == files[1] != files[2]
    assert (tmp_path / "0" / "metrics.jsonl").read_text() == (tmp_path / "1" / "metrics.jsonl").read_text()


def test_the_callers_randomness_and_threads_are_left_alone(tmp_path):
    torch.manual_seed(42)
    np.random.seed(42)  # noqa: NPY002
    before, numbers = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    wonderland.fit("iris", out=tmp_path, steps=3)
    assert torch.equal(before, torch.get_rng_state())
    assert (numbers == np.random.get_state()[1]).all()  # noqa: NPY002
    assert torch.get_num_threads() == 1


def test_config_says_everything(tmp_path):
    run = wonderland.fit("iris", out=tmp_path, steps=5, level=0.8)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["source"]["fingerprint"]
    assert config["recipe"]["steps"] == 5
    assert config["split"]["sizes"]["test"] == 30
    assert config["versions"]["torch"] == torch.__version__
    assert config["threads"] == 1
    assert run.trust.level == 0.8
    assert set(config["request"]) >= {"target", "seed", "budget"}


def test_each_stage_is_redone_only_when_what_it_is_made_of_changed(tmp_path):
    run = wonderland.fit("iris", out=tmp_path, steps=5)
    times = {name: (tmp_path / name).stat().st_mtime_ns for name in ("model.safetensors", "trust.json", "report.html")}
    (tmp_path / "report.html").unlink()
    wonderland.fit("iris", out=tmp_path, steps=5)
    assert (tmp_path / "trust.json").stat().st_mtime_ns == times["trust.json"]
    assert (tmp_path / "report.html").exists()
    (tmp_path / "trust.json").unlink()
    again = wonderland.fit(resume=tmp_path)
    assert (tmp_path / "model.safetensors").stat().st_mtime_ns == times["model.safetensors"]
    assert again.facts == run.facts


def test_data_that_changed_is_noticed(tmp_path):
    frame = runs.mixed()
    frame.to_csv(tmp_path / "t.csv", index=False)
    wonderland.fit(tmp_path / "t.csv", "risk", out=tmp_path / "run", steps=5)
    frame.assign(age=1.5).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(WonderlandError) as caught:
        wonderland.fit(resume=tmp_path / "run")
    assert str(caught.value) == (
        f"The data of {tmp_path / 'run'} changed since the run began, so it cannot go on as it was. "
        "Bring back the data, or start a new run in another folder."
    )


def test_data_in_memory_must_be_given_again(tmp_path):
    wonderland.fit(runs.mixed(), "risk", out=tmp_path / "run", steps=5)
    with pytest.raises(WonderlandError, match="was fitted from data in memory"):
        wonderland.fit(resume=tmp_path / "run")
    assert wonderland.fit(runs.mixed(), resume=tmp_path / "run").metrics


def test_unknown_options_get_the_nearest():
    with pytest.raises(WonderlandError) as caught:
        wonderland.fit("iris", epoch=3)
    assert str(caught.value) == "fit has no option 'epoch'. Did you mean 'epochs'?"
    with pytest.raises(WonderlandError, match=r"^Choose one of epochs, steps and budget"):
        wonderland.fit("iris", epochs=3, steps=3)


def test_a_budget_and_a_found_rate_are_numbers_in_the_config(tmp_path):
    wonderland.fit("iris", out=tmp_path, budget="1s", lr="auto")
    recipe = json.loads((tmp_path / "config.json").read_text())["recipe"]
    assert recipe["steps"] >= 1
    assert 1e-6 < recipe["lr"] < 1
    rows = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert json.loads(rows[-1])["step"] == recipe["steps"]


def test_groups_and_times_are_respected(tmp_path):
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"x": generator.normal(size=400), "who": np.arange(400) // 10, "when": np.arange(400)})
    frame["y"] = np.where(frame["x"] + generator.normal(scale=0.2, size=400) > 0, "a", "b")
    for option in ("group", "time"):
        column = "who" if option == "group" else "when"
        run = wonderland.fit(frame, "y", out=tmp_path / option, steps=20, **{option: column})
        assert run.metrics["accuracy"] > 0.7


@pytest.mark.parametrize(
    "options", [{"accumulate": 3}, {"precision": "bfloat16"}, {"clip": 0.5}, {"weight_decay": 0.1}]
)
def test_options_reach_the_recipe(tmp_path, options):
    wonderland.fit("iris", out=tmp_path, steps=3, **options)
    recipe = json.loads((tmp_path / "config.json").read_text())["recipe"]
    assert {name: recipe[name] for name in options} == options


def test_a_free_folder_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert wonderland.fit("iris", steps=2).folder.as_posix() == "runs/iris"
    assert wonderland.fit("iris", steps=2).folder.as_posix() == "runs/iris-2"


def test_overwriting_removes_only_the_runs_own_files(tmp_path):
    wonderland.fit("iris", out=tmp_path, steps=2)
    (tmp_path / "mine.txt").write_text("keep")
    wonderland.fit("iris", out=tmp_path, steps=3, overwrite=True)
    assert (tmp_path / "mine.txt").read_text() == "keep"


def test_a_run_can_be_moved(tmp_path):
    run = wonderland.fit("iris", out=tmp_path / "a", steps=3)
    shutil.move(tmp_path / "a", tmp_path / "b")
    assert wonderland.load(tmp_path / "b").metrics == run.metrics


def test_a_small_calibration_part_says_so(tmp_path):
    frame = pd.DataFrame({"x": np.sin(np.arange(24.0)), "y": ["a", "b"] * 12})
    run = wonderland.fit(frame, "y", out=tmp_path, steps=2, level=0.99)
    assert "too few for a level of 0.99" in run.facts["measured"]["test"]["conformal"]["note"]
    assert all(len(labels) == 2 for labels in run.predict(frame.drop(columns="y"))["set"])
