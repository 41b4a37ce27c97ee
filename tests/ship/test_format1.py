"""Runs of version 0.9.0, whose config.json is of format 1: they load, predict what they predicted then, and are continued."""

import copy
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import wonderland
from wonderland.core import Spec, WonderlandError
from wonderland.core.recipe import Ensemble, Recipe
from wonderland.road.request import Request
from wonderland.ship import read_config
from wonderland.ship.format1 import upgrade

RUNS = Path(__file__).parent / "format1"
# Inputs and what version 0.9.0 predicted for them.
PREDICTIONS = json.loads((RUNS / "predictions.json").read_text())


@pytest.mark.parametrize("name", PREDICTIONS)
def test_a_run_of_version_0_9_predicts_the_same(name):
    run, inputs = wonderland.load(RUNS / name), PREDICTIONS[name]["inputs"]
    found = run.predict(np.array(inputs, float) if name == "digits" else inputs)
    expected = pd.DataFrame(PREDICTIONS[name]["predictions"])
    assert list(found) == list(expected)
    pd.testing.assert_frame_equal(found, expected, rtol=0, atol=1e-6)
    assert run.config["format"] == 2
    assert run.metrics == json.loads((RUNS / name / "trust.json").read_text())["measured"]["test"]["metrics"]


def test_a_run_of_version_0_9_is_continued(tmp_path):
    shutil.copytree(RUNS / "digits", tmp_path / "run")
    (tmp_path / "run" / "trust.json").unlink()
    run = wonderland.fit(resume=tmp_path / "run")
    assert run.metrics == pytest.approx(wonderland.load(RUNS / "digits").metrics)
    assert (tmp_path / "run" / "config.json").read_bytes() == (RUNS / "digits" / "config.json").read_bytes()
    with pytest.raises(WonderlandError, match="holds a run with other options"):
        wonderland.fit("digits", out=tmp_path / "run", steps=13, threads=1)
    assert wonderland.fit("digits", out=tmp_path / "run", steps=12, threads=1).metrics == run.metrics


REQUEST = dict.fromkeys(
    ("target", "task", "group", "time", "size", "epochs", "budget", "lr", "weight_decay", "batch_size", "clip", "accumulate",
     "precision", "patience", "workers", "threads", "kind", "column", "tokens", "vocab", "tokenizer", "context", "start", "method"),
) | {"keep": [], "drop": [], "strict": False, "lines": False, "steps": 12, "test": 0.2, "level": 0.9, "seed": 0}  # fmt: skip
RECIPE = {
    "steps": 12, "batch_size": 32, "lr": 0.002, "weight_decay": 0.1, "betas": [0.9, 0.97], "warmup": 0.05, "average": None,
    "clip": 1.0, "accumulate": 1, "precision": "float32", "evaluate_every": 2, "patience": 6, "folds": None, "members": 0,
    "kinds": 1, "augment": None, "workers": 0,
}  # fmt: skip
CLASSES = {"part": "tasks.Classification", "arguments": {"classes": ["a", "b"]}}


def config(kind, model, task, request=(), **recipe):
    """A config as version 0.9 wrote it."""
    return {
        "format": 1,
        "wonderland": "0.9.0",
        "source": {"name": "data", "kind": kind, "origin": {"path": "/data", "options": {}}, "fingerprint": "f", "rows": 99,
                   "findings": []},
        "request": REQUEST | dict(request),
        "recipe": {"kind": kind, "model": model, "task": task} | RECIPE | recipe,
        "split": {"seed": 0, "sizes": {}, "folds": recipe.get("folds"), "digest": "d", "note": ""},
        "seed": 0,
        "threads": 1,
        "level": 0.9,
        "versions": {},
    }  # fmt: skip


def part(name, **arguments):
    return {"part": name, "arguments": arguments}


AUGMENT = {"shift": 0.1, "rotate": 10.0, "scale": 0.1, "flip": 0.0, "cutout": 0.0}
# Of each kind: its config, and the request, the ensemble, the schedule and the augmentation that it becomes.
KINDS = {
    "table": (
        config("table", part("models.TableNet", numbers=2, levels=[], outputs=2, sigmas=[0.1] * 15, dropout=[0.0] * 15), CLASSES,
               {"target": "y", "drop": ["id"], "weight_decay": 0.0, "level": 0.8, "seed": 3}, folds=5, members=15, kinds=3),
        {"kind": None, "options": {"target": "y", "drop": ["id"]},
         "training": {"steps": 12, "weight_decay": 0.0, "level": 0.8, "seed": 3}},
        Ensemble(15, 5, 3), {"warmup": 0.05}, None,
    ),
    "image": (
        config("image", part("models.ConvNet", channels=1, classes=2, height=8, width=8), CLASSES, {"size": 16, "workers": 0},
               augment=AUGMENT, patience=None),
        {"kind": None, "options": {"size": 16, "workers": 0}, "training": {"steps": 12}},
        None, {"warmup": 0.05}, Spec("data.Augment", AUGMENT),
    ),
    "text": (
        config("text", part("models.SequenceClassifier", trunk=part("models.Encoder", vocab=9, dim=8, depth=1), classes=2),
               CLASSES, {"target": "label", "column": "review", "start": "/models/bert", "method": "lora", "test": "new.csv"}),
        {"kind": None, "options": {"target": "label", "column": "review", "start": "/models/bert", "method": "lora"},
         "training": {"steps": 12, "test": "new.csv"}},
        None, {"warmup": 0.05}, None,
    ),
    "corpus": (
        config("corpus", part("models.Decoder", vocab=20, dim=8, depth=1), part("tasks.LanguageModelling", vocab=20),
               {"lines": True, "tokens": "bpe", "vocab": 300, "steps": None, "budget": 90.0, "lr": "auto"}),
        {"kind": None, "options": {"lines": True, "tokens": "bpe", "vocab": 300}, "training": {"budget": 90.0, "lr": "auto"}},
        None, {"warmup": 0.05, "floor": 0.05}, None,
    ),
    "pairs": (
        config("pairs", part("models.EncoderDecoder", vocab=20, dim=8, depth=1),
               part("tasks.Translation", vocab=20, read=6, label_smoothing=0.05), {"kind": "pairs", "epochs": 3.0, "steps": None}),
        {"kind": "pairs", "options": {}, "training": {"epochs": 3.0}},
        None, {"warmup": 0.05}, None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_config_of_each_kind_becomes_a_recipe_and_a_request(tmp_path, kind):
    old, request, ensemble, schedule, augment = KINDS[kind]
    before = copy.deepcopy(old)
    (tmp_path / "config.json").write_text(json.dumps(old))
    found = read_config(tmp_path)
    assert (found["format"], found["device"], found["source"]["kind"]) == (2, "cpu", kind)
    assert Request.from_json(found["request"]).to_json() == request
    recipe = Recipe.from_json(found["recipe"])
    assert Recipe.from_json(recipe.to_json()) == recipe
    assert (recipe.ensemble, recipe.augment) == (ensemble, augment)
    assert recipe.learner.name == "train.GradientDescent"
    assert recipe.optimizer == Spec("optim.FusedAdamW", {"weight_decay": 0.1, "betas": [0.9, 0.97]})
    assert recipe.schedule == Spec("optim.warmup_cosine", schedule)
    assert recipe.model == Spec.from_json(old["recipe"]["model"])
    assert recipe.task == Spec.from_json(old["recipe"]["task"])
    for name in (
        "steps",
        "batch_size",
        "lr",
        "average",
        "clip",
        "accumulate",
        "precision",
        "evaluate_every",
        "patience",
    ):
        assert getattr(recipe, name) == old["recipe"][name]
    recipe.task.build()
    recipe.schedule.build()
    assert old == before  # what was given is left alone


@pytest.mark.parametrize("missing", ["source", "request", "recipe"])
def test_an_incomplete_config_is_refused(missing):
    for value in (None, 5, "x"):
        with pytest.raises(WonderlandError, match="is damaged or not ours"):
            upgrade(config("table", {}, CLASSES) | {missing: value})


def test_invalid_recipes_are_refused():
    for name, value in (("kind", "poem"), ("kind", None), ("augment", 3), ("augment", "shift")):
        with pytest.raises(WonderlandError, match="is damaged or not ours"):
            upgrade(config("table", {}, CLASSES, **{name: value}) if name != "kind" else config(value, {}, CLASSES))
