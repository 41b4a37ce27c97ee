"""Folders of images on the whole road, in memory and read by worker processes, cut and continued."""

import numpy as np
import pytest
import torch
from PIL import Image

import wonderland
from wonderland import kinds
from wonderland.core import WonderlandError, sha256
from wonderland.data import pixels
from wonderland.data.pixels import Memory
from wonderland.road.plan import make_plan, resolve_measured
from wonderland.road.request import Request
from wonderland.train import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Bright tops and bright bottoms, in colour, of different sizes."""
    root = tmp_path_factory.mktemp("pictures")
    generator = np.random.default_rng(0)
    for label in ("top", "bottom"):
        (root / label).mkdir()
        for number in range(40):
            height, width = generator.integers(20, 30, 2)
            pixels = generator.integers(0, 80, (height, width, 3))
            half = slice(0, height // 2) if label == "top" else slice(height // 2, height)
            pixels[half] += 120
            ending = ("png", "jpg", "webp")[number % 3]
            Image.fromarray(pixels.astype(np.uint8)).save(root / label / f"{number}.{ending}")
    return root


def test_fit_predict_and_evaluate_a_folder(folder, tmp_path):
    one = wonderland.fit(folder, out=tmp_path / "one", epochs=12)
    assert one.metrics["accuracy"] > 0.8
    two = wonderland.fit(folder, out=tmp_path / "two", epochs=12, workers=2)
    assert sha256(tmp_path / "one" / "model.safetensors") != sha256(tmp_path / "one" / "config.json")
    same = zip(one.model.state_dict().values(), two.model.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in same)
    found = one.predict(folder / "top")
    assert list(found)[:2] == ["path", "prediction"]
    assert len(found) == 40
    assert (found["prediction"] == "top").mean() > 0.8
    assert one.predict(folder / "top" / "0.png")["prediction"].item() in ("top", "bottom")
    assert one.evaluate(folder)["metrics"]["accuracy"] > 0.8


class Cut(Exception):
    pass


def trained(folder, out, *, workers, die_at=None):
    dataset = kinds.open(folder, workers=workers)
    assert isinstance(dataset.store, Memory) == (workers == 0)
    request = Request.of(steps=12, workers=workers)
    plan = make_plan(kinds.KINDS["image"], dataset, request, None)
    resolve_measured(plan, request)
    learner = plan.learner()

    def perhaps(state, batch):
        if state.step == die_at:
            raise Cut
        return learner.step(state, batch)

    options = {"steps": 12, "folder": out, "evaluate": plan.evaluate, "evaluate_every": 5, "checkpoint_seconds": 0.0}
    state = run(perhaps, plan.state(), plan.batches(), watch=plan.watch, **options).state
    return learner.model(state).state_dict()


def test_files_read_by_workers_give_the_bits_of_memory_also_when_cut(folder, tmp_path, monkeypatch):
    straight = trained(folder, tmp_path / "a", workers=0)
    monkeypatch.setattr(pixels, "MOST_IN_MEMORY", 1000)
    with pytest.raises(Cut):
        trained(folder, tmp_path / "b", workers=2, die_at=7)
    again = trained(folder, tmp_path / "b", workers=2)
    assert all(torch.equal(straight[name], again[name]) for name in straight)


def test_size_is_for_folders(folder, tmp_path):
    run = wonderland.fit(folder, out=tmp_path, steps=2, size=16)
    assert (run.encoder.height, run.encoder.width) == (16, 16)
    with pytest.raises(WonderlandError, match=r"^Images from arrays keep their size: resize the arrays instead\.$"):
        wonderland.fit("digits", out=tmp_path / "x", steps=2, size=16)
