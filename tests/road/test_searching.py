"""A search over real runs: pauses change nothing, kills change nothing, and wrong settings are told to the word."""

import os
import random
import subprocess
import sys
import time

import pytest

import wonderland
from tests.runs import mixed
from wonderland import WonderlandError
from wonderland.cli.main import main
from wonderland.kinds import KINDS
from wonderland.road import Request, search
from wonderland.road.plan import make_plan
from wonderland.road.searching import rung_steps, trial_request
from wonderland.road.settings import parse_settings, with_settings
from wonderland.search import ASHA, RandomSearch, Space, Study

SPACE = Space.of({"lr": ("log", 1e-3, 1e-1), "model.depth": ("integer", 1, 2)})
MADE = ("model.safetensors", "metrics.jsonl", "config.json", "trust.json")


def plan_of(frame, **options):
    request = Request.of(target="risk", **options)
    kind, dataset = wonderland.road.fitting.open_source(frame, None, request, None, recorded=False)
    return make_plan(kind, dataset, request, None)


def test_a_trial_that_was_paused_is_the_fit_of_its_settings_bit_for_bit(tmp_path):
    frame = mixed(120)
    found = search(frame, "risk", study=tmp_path / "study", trials=3, tuner=ASHA(eta=3, rungs=2), space=SPACE, steps=24)
    assert sorted(trial.rung for trial in found.study.trials) == [0, 0, 1]
    assert found.best.steps == [12, 24]
    assert sorted(path.name for path in (tmp_path / "study").iterdir() if not path.name.startswith(".")) == [
        "journal.jsonl", "journal.lock", "report.html", "trials", "winner", "workers"
    ]  # fmt: skip
    assert not [
        p for p in (tmp_path / "study" / "trials").glob("*/checkpoint") if p.parent.name != f"{found.best.number:04d}"
    ]
    settings = [f"{name}={value}" for name, value in found.best.settings.items()]
    straight = wonderland.fit(frame, "risk", out=tmp_path / "straight", steps=24, settings=settings)
    for name in MADE:
        assert (tmp_path / "study" / "winner" / name).read_bytes() == (straight.folder / name).read_bytes(), name
    again = search(frame, resume=tmp_path / "study")
    assert again.best == found.best
    assert len(again.study.journal.entries) == len(found.study.journal.entries)


def test_settings_change_the_recipe():
    plan = plan_of(mixed(80), settings=["lr=0.5", "model.depth=1", "model.dropout=0.3", "optimizer.weight_decay=0.2"])
    recipe = plan.recipe
    assert (recipe.lr, recipe.model.arguments["depth"], recipe.optimizer.arguments["weight_decay"]) == (0.5, 1, 0.2)
    assert set(recipe.model.arguments["dropout"]) == {0.3}
    assert parse_settings(["model.mixer=Attention(heads=2)"])["model.mixer"].name == "nn.Attention"
    request = trial_request(Request.of(target="risk", settings=["lr=1", "model.dim=8"]), {"lr": 0.1, "model": "GLM"})
    assert (request.training.settings, request.training.model) == (("model.dim=8", "lr=0.1"), "GLM")
    space = KINDS["table"].space(recipe)
    assert set(space) == {"lr", "optimizer.weight_decay", "model.dropout", "model.dim", "model.depth"}
    for share in (0.01, 1 / 9, 1 / 3, 0.99, 1.0):
        steps = rung_steps(plan, share)
        assert steps == recipe.steps or (steps % recipe.evaluate_every == 0 and 0 < steps <= recipe.steps)


def test_wrong_settings_are_told_to_the_word():
    recipe = plan_of(mixed(80)).recipe
    for text, message in (
        ("lr", "The setting 'lr' is not understood: write PATH=VALUE, such as model.depth=4."),
        ("lr=-1", "lr is a number above 0, not -1."),
        ("batch_size=1.5", "batch_size is a whole number, not 1.5."),
        ("modle.dim=3", "The recipe has no part 'modle'. Did you mean 'model'? Known are model, optimizer, schedule, augment, task."),
        ("model.dmi=3", "models.TableNet has no argument 'dmi'. Did you mean 'dim'?"),
        ("augment.p=3", "augment.p cannot be set: this recipe has no augment that is made from a spec."),
    ):  # fmt: skip
        with pytest.raises(WonderlandError) as caught:
            with_settings(recipe, parse_settings([text]))
        assert str(caught.value) == message
    with pytest.raises(
        WonderlandError, match=r"^The recipe has no setting 'lrr'\. Did you mean 'lr'\? Known are lr, batch_size,"
    ):
        with_settings(recipe, {"lrr": 1})
    with pytest.raises(WonderlandError, match=r"^lr is set twice: keep one of them\.$"):
        parse_settings(["lr=1", "lr=2"])


def test_wrong_searches_are_told_before_anything_is_written(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.toml").write_text("[model.width]\nlow = 1\nhigh = 9\n")
    for words, message in (
        (["iris", "--tuner", "asah"], "There is no tuner 'asah'. Did you mean 'asha'? Known are random, grid, halving, asha, hyperband, bo, bohb."),
        (["iris", "--workers", "0"], "--workers is a number from 1 to 64, not 0."),
        (["iris", "--space", "space.toml"], "models.TableNet has no argument 'width'. Did you mean 'depth'?"),
        (["iris", "--lr", "auto"], "Trials have a length and a rate that need no measurement: leave out budget and lr auto."),
        ([], "Nothing to search on: name a file, a folder or a bundled set, or a study to resume."),
        (["--join"], "--join takes part in a study that was begun: name its folder with --resume."),
        (["--resume", "none"], "none holds no study: there is no journal.jsonl in it."),
        (["--resume", "none", "--steps", "3"], "A study that goes on keeps the options it began with: give --resume and the folder only."),
    ):  # fmt: skip
        assert main(["search", *words]) == 2
        assert capsys.readouterr().err == f"wonderland: {message}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["space.toml"]
    Study.create(tmp_path / "toy", SPACE, RandomSearch(), trials=1)
    assert main(["search", "--resume", "toy"]) == 2
    assert (
        capsys.readouterr().err
        == "wonderland: The study in toy is not of runs on data: go on with it where it was begun.\n"
    )


def test_a_search_on_a_corpus_leaves_its_files_in_the_study_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("the cat sat on the mat and the dog sat on the log. " * 200)
    found = search("text.txt", study="study", trials=1, model="RNNLM(dim=8)", steps=2, leaderboard="none",
                   space={"lr": ("log", 1e-3, 1e-1)})  # fmt: skip
    assert found.run is not None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["study", "text.txt"]


@pytest.mark.slow
def test_a_search_that_is_killed_ends_as_the_straight_one(tmp_path):
    mixed(200).to_csv(tmp_path / "table.csv", index=False)
    words = [sys.executable, "-m", "wonderland", "search", str(tmp_path / "table.csv"), "--target", "risk", "--trials", "6",
             "--tuner", "asha", "--steps", "240", "--leaderboard", "none", "--quiet"]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    began = time.monotonic()
    subprocess.run([*words, "--study", str(tmp_path / "straight")], env=environment, check=True)
    whole, draw, kills = time.monotonic() - began, random.Random(0), 0
    for _ in range(40):
        process = subprocess.Popen([*words, "--study", str(tmp_path / "cut")], env=environment)
        try:
            if process.wait(draw.uniform(0.2, 0.8) * whole if kills < 8 else None) == 0:
                break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
    straight, cut = Study.open(tmp_path / "straight"), Study.open(tmp_path / "cut")
    assert kills >= 1
    assert [(t.settings, t.scores, t.steps) for t in cut.trials] == [
        (t.settings, t.scores, t.steps) for t in straight.trials
    ]
    for name in MADE:
        assert (tmp_path / "cut" / "winner" / name).read_bytes() == (
            tmp_path / "straight" / "winner" / name
        ).read_bytes()


@pytest.mark.slow
def test_two_workers_share_a_search(tmp_path):
    words = [
        "search",
        "iris",
        "--trials",
        "6",
        "--workers",
        "2",
        "--steps",
        "200",
        "--study",
        str(tmp_path / "study"),
        "--quiet",
    ]
    assert main(words) == 0
    study = Study.open(tmp_path / "study")
    assert [trial.settings for trial in study.trials] == [study.space.sample(0, number) for number in range(6)]
    assert all(trial.rung == 0 for trial in study.trials)
    assert wonderland.load(tmp_path / "study" / "winner").metrics["accuracy"] > 0.8


def test_the_spaces_of_kinds_hold_recipes_that_can_be_built(tmp_path):
    """The ends of every default space build a model."""
    texts = tmp_path / "texts.csv"
    texts.write_text(
        "text,label\n" + "".join(f"{'good fine' if i % 2 else 'bad poor'} number {i},{i % 2}\n" for i in range(60))
    )
    for source in ("digits", texts):
        request = Request.of()
        kind, dataset = wonderland.road.fitting.open_source(source, None, request, None, recorded=False)
        space = Space.of(kind.space(make_plan(kind, dataset, request, None).recipe))
        for unit in (0.0, 0.999):
            settings = space.at([unit] * len(space.names))
            assert make_plan(kind, dataset, trial_request(request, settings), None).recipe.model.build() is not None
