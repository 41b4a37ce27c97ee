import json
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

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
    run = wonderland.fit("iris", "target", out=tmp_path, steps=5, level=0.8)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["format"] == 2
    assert config["source"]["fingerprint"]
    assert config["recipe"]["steps"] == 5
    assert config["split"]["sizes"]["test"] == 30
    assert config["versions"]["torch"] == torch.__version__
    assert (config["threads"], config["device"], config["seed"]) == (1, "cpu", 0)
    assert config["preprocessing"] == run.encoder.digest()
    assert run.trust.level == config["level"] == 0.8
    assert config["request"] == {
        "kind": None,
        "options": {"target": "target"},
        "training": {"steps": 5, "level": 0.8},
    }


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
    assert again.record == run.record


def test_data_that_changed_is_noticed(tmp_path):
    frame = runs.mixed()
    frame.to_csv(tmp_path / "t.csv", index=False)
    wonderland.fit(tmp_path / "t.csv", "risk", out=tmp_path / "run", steps=5)
    frame.assign(age=1.5).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(WonderlandError) as caught:
        wonderland.fit(resume=tmp_path / "run")
    assert str(caught.value) == (
        f"The data of {tmp_path / 'run'} changed since the run began, so the run cannot be resumed. "
        "Restore the data, or start a new run in another folder."
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
    wonderland.fit("iris", out=tmp_path, budget="1s", lr="auto", patience=10_000)
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


@pytest.mark.parametrize("options", [{"accumulate": 3}, {"precision": "bfloat16"}, {"clip": 0.5}, {"patience": 7}])
def test_options_reach_the_recipe(tmp_path, options):
    wonderland.fit("iris", out=tmp_path, steps=3, **options)
    recipe = json.loads((tmp_path / "config.json").read_text())["recipe"]
    assert {name: recipe[name] for name in options} == options


def test_options_of_the_optimizer_reach_its_spec(tmp_path):
    run = wonderland.fit("iris", out=tmp_path / "a", steps=3, weight_decay=0.0)
    assert run.recipe.optimizer.arguments["weight_decay"] == 0
    run = wonderland.fit("iris", out=tmp_path / "b", steps=3, optimizer="Lion(lr=1e-4)", schedule="cosine()")
    recipe = json.loads((tmp_path / "b" / "config.json").read_text())["recipe"]
    assert recipe["lr"] == 1e-4
    assert (recipe["optimizer"]["part"], recipe["schedule"]["part"]) == ("optim.Lion", "optim.cosine")


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
    assert "too few for a level of 0.99" in run.record["measured"]["test"]["conformal"]["note"]
    assert all(len(labels) == 2 for labels in run.predict(frame.drop(columns="y"))["set"])


def test_an_old_run_survives_a_new_one_that_cannot_begin(tmp_path):
    wonderland.fit("iris", out=tmp_path, steps=2)
    for source, options in (("no/such.csv", {}), ("iris", {"target": "nothing"}), ("iris", {"model": nn.Linear(4, 9)})):
        with pytest.raises(WonderlandError):
            wonderland.fit(source, out=tmp_path, steps=2, overwrite=True, **options)
        assert wonderland.load(tmp_path).metrics


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "report.html").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(WonderlandError) as caught:
            wonderland.fit("iris", out=tmp_path, steps=2, overwrite=overwrite)
        assert str(caught.value) == f"{tmp_path} is not empty and holds no run: choose another folder with --out."
    assert (tmp_path / "report.html").read_text() == "mine"
    (tmp_path / "config.json").write_text('{"my": "settings"}')
    with pytest.raises(WonderlandError, match="is not in a format that this version reads"):
        wonderland.fit("iris", out=tmp_path, steps=2, overwrite=True)
    assert (tmp_path / "config.json").read_text() == '{"my": "settings"}'


def test_a_fit_that_cannot_begin_leaves_no_folder(tmp_path):
    with pytest.raises(WonderlandError):
        wonderland.fit("iris", "nothing", out=tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(WonderlandError) as caught:
        wonderland.fit("iris", out=tmp_path / "file")
    assert str(caught.value) == (
        f"{tmp_path / 'file'} cannot be written: there is a file where a folder should be. Choose another name."
    )


GIVEN = "It is given float32 of shape (rows, 4)."


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (nn.Linear(4, 9), f"Your module Linear returns (2, 9) for two rows, where this task needs (2, 3). {GIVEN}"),
        (nn.Identity(), "Your module Identity has nothing to learn: it has no trainable parameters."),
        (
            nn.LSTM(4, 3),
            f"Your module LSTM fails on a batch (A model must return a tensor of shape (rows, outputs)). {GIVEN}",
        ),
        ("boosting", "'boosting' is not a part of Wonderland, so it is not built. See: wonderland models"),
        (
            nn.Linear,
            f"model must be a name, a spec or a torch.nn.Module, not {nn.Linear!r}: give an instance, such as Net().",
        ),
    ],
)
def test_a_module_that_does_not_fit_is_refused_before_anything_is_written(tmp_path, model, message):
    with pytest.raises(WonderlandError) as caught:
        wonderland.fit("iris", model=model, out=tmp_path / "run")
    assert str(caught.value) == message
    assert not (tmp_path / "run").exists()


def test_the_error_for_a_wrong_width_shows_the_input(tmp_path):
    with pytest.raises(
        WonderlandError, match=r"^Your module Linear fails on a batch \(mat1 and mat2 .*\)\. It is given float32"
    ):
        wonderland.fit("iris", model=nn.Linear(7, 3), out=tmp_path / "run")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": "ten"}, "steps must be a whole number, not 'ten'."),
        ({"steps": True}, "steps must be a whole number, not True."),
        ({"batch_size": 2.5}, "batch_size must be a whole number, not 2.5."),
        ({"level": "a"}, "level must be a number, not 'a'."),
        ({"seed": "s"}, "seed must be a whole number, not 's'."),
        ({"seed": -1}, "seed must be at least 0, not -1."),
        ({"lr": float("nan")}, "lr must be a finite number, not nan."),
        ({"clip": float("inf")}, "clip must be a finite number, not inf."),
        ({"epochs": float("nan")}, "epochs must be a finite number, not nan."),
        ({"threads": 100_000}, "threads must be at most 1,024, not 100,000."),
        ({"keep": 5}, "keep must be names of columns, not 5."),
        ({"drop": [["a"]]}, "drop holds ['a'], which is not a column name."),
        ({"budget": []}, "[] is not a length of time: write 90s, 5m or 1h."),
        ({"device": "gpu"}, "There is no device 'gpu'. Did you mean 'cpu'? Known are auto, cpu, cuda, mps."),
        ({"lr": "fast"}, "lr must be a number or auto, not 'fast'."),
    ],
)
def test_options_of_the_wrong_kind(options, message):
    with pytest.raises(WonderlandError) as caught:
        wonderland.fit("iris", **options)
    assert str(caught.value) == message


def test_findings_stay_with_the_run(tmp_path):
    run = wonderland.fit(runs.mixed(), out=tmp_path, steps=2)
    assert any("'risk'" in text for text in run.findings)
    assert "notes on the data in .findings" in repr(run)
    assert wonderland.load(tmp_path).findings == run.findings


def test_a_changed_config_is_not_resumed(tmp_path):
    wonderland.fit("iris", out=tmp_path, steps=4)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    config["recipe"]["steps"] = 6
    path.write_text(json.dumps(config))
    with pytest.raises(WonderlandError, match="were changed since it began"):
        wonderland.fit(resume=tmp_path)


def test_a_separate_test_set(tmp_path):
    train, test = runs.mixed(200, seed=1), runs.mixed(60, seed=2)
    run = wonderland.fit(train, "risk", out=tmp_path / "a", steps=30, test=test)
    assert run.record["measured"]["test"]["rows"] == 60
    assert run.metrics == run.evaluate(test)["metrics"]
    train.to_csv(tmp_path / "train.csv", index=False)
    test.to_csv(tmp_path / "test.csv", index=False)
    again = wonderland.fit(tmp_path / "train.csv", "risk", out=tmp_path / "b", steps=30, test=tmp_path / "test.csv")
    assert again.metrics == pytest.approx(run.metrics)
    assert wonderland.fit(resume=tmp_path / "b").metrics == again.metrics
    with pytest.raises(WonderlandError, match="frame lacks the column 'age' that the model needs"):
        wonderland.fit(train, "risk", out=tmp_path / "c", test=test.drop(columns="age"))


def test_a_run_with_words_goes_on_with_another_number_of_threads(tmp_path):
    """The last bits of the directions of words depend on the number of threads, so plans are made on one."""
    draw, before = np.random.default_rng(0), torch.get_num_threads()
    notes = [
        " ".join(draw.choice(["red", "old", "shop", "bus", "late", "mild", "rain"], 12)) + f" {i}" for i in range(150)
    ]
    frame = pd.DataFrame({"note": notes, "size": draw.normal(size=150), "y": draw.normal(size=150)})
    digests = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            wonderland.fit(frame, "y", out=tmp_path / f"{threads}", steps=2, threads=1)
            digests.append(json.loads((tmp_path / f"{threads}" / "config.json").read_text())["preprocessing"])
    finally:
        torch.set_num_threads(before)
    assert len(set(digests)) == 1
