"""Which recipe images get, image sets with test rows of their own, and whether mirror images are used."""

import functools
import json

import numpy as np
import pytest

import wonderland
from tests.data.pictures import folder
from tests.data.test_idx import written
from tests.kinds.image.scenes import write_masks
from wonderland import kinds
from wonderland.core import Spec, WonderlandError
from wonderland.kinds.image import recipes
from wonderland.kinds.image.encoder import ImageEncoder
from wonderland.kinds.image.images import Images
from wonderland.kinds.image.kind import KIND
from wonderland.kinds.image.mirror import keeps_class, mirror_test
from wonderland.kinds.image.recipes import for_epochs
from wonderland.kinds.image.sets import Joined
from wonderland.train.checkpoint import Checkpoints
from wonderland.train.learner import GradientDescent


def shapes(rows, side=16, colour=False, sided=True):
    """Bright bars on noise: at the left or at the right, which a mirror image exchanges; else at the top or at the bottom."""
    random = np.random.default_rng(0)
    x, y = random.integers(0, 60, (rows, side, side), dtype=np.uint8), random.integers(0, 2, rows)
    for image, label in zip(x, y, strict=True):
        where = slice(0, side // 3) if label else slice(side - side // 3, None)
        image[(slice(None), where) if sided else where] += 150
    return (np.stack([x] * 3, 3) if colour else x), y


@functools.cache
def planned(rows, **options):
    dataset = kinds.open(shapes(rows, **options))
    parts = KIND.split(dataset, test=0.2, seed=0)
    encoder = KIND.encoder(dataset, parts)
    return parts, encoder, KIND.recipe(dataset, parts, encoder, KIND.task(dataset, parts, encoder))


def test_many_small_images_get_whitened_patches_and_others_a_residual_network():
    parts, _, recipe = planned(7000, colour=True)
    assert recipe.model.name == "models.WhitenedConvNet"
    assert len(recipe.model.arguments["directions"]) == 12
    assert Spec.from_json(json.loads(json.dumps(recipe.model.to_json()))).build().whitening.filters.shape == (
        24,
        3,
        2,
        2,
    )
    assert (recipe.batch_size, len(parts.validation), len(parts.calibration)) == (250, 700, 700)
    assert planned(800)[2].model.name == "models.ConvNet"
    assert len(KIND.split(kinds.open(shapes(60_000, 2)), test=0.2, seed=0).calibration) == 2500


def test_photographs_get_whitened_patches_too_and_numbers_a_residual_network():
    _, _, recipe = planned(60, side=48, colour=True)
    assert recipe.model.name == "models.WhitenedConvNet"
    assert (recipe.optimizer.name, recipe.augment.name) == ("optim.FilterMuon", "data.PhotoAugment")
    assert recipe.augment.arguments["flip"] == 0.5
    assert (recipe.batch_size, recipe.steps) == (16, 120 * (36 // 16))
    x, y = shapes(60, side=48)
    dataset = kinds.open((x, y + np.linspace(0, 0.5, 60)))
    parts = KIND.split(dataset, test=0.2, seed=0)
    encoder = KIND.encoder(dataset, parts)
    assert KIND.recipe(dataset, parts, encoder, KIND.task(dataset, parts, encoder)).model.name == "models.ConvNet"


def test_masks_are_learned_by_muon_without_other_classes_by_mirrors(tmp_path):
    dataset = kinds.open(write_masks(tmp_path, 24))
    parts = KIND.split(dataset, test=0.2, seed=0)
    encoder = KIND.encoder(dataset, parts)
    recipe = KIND.recipe(dataset, parts, encoder, KIND.task(dataset, parts, encoder))
    assert (recipe.model.name, recipe.optimizer.name, recipe.lr) == ("models.UNet", "optim.FilterMuon", 0.1)
    changed = recipe.augment.arguments
    assert (changed["flip"], changed["brightness"], changed["contrast"]) == (0, 0, 0)
    assert 0 < changed["rotate"] <= 5
    weights = np.array(recipe.task.arguments["weights"])
    masks = dataset.masks(parts.train)
    share = np.bincount(masks.ravel(), minlength=3) / masks.size
    np.testing.assert_allclose(weights / weights[0], (share / share[0]) ** -0.25, rtol=1e-3)
    assert (weights * share).sum() == pytest.approx(1, abs=1e-3)


def test_a_time_budget_decides_the_width():
    recipe = planned(7000)[2]
    widths = []
    while recipe is not None:
        widths.append(recipe.model.arguments["widths"])
        recipe = for_epochs(recipe, 1.0)
    assert widths == [[32, 128, 128], [16, 64, 64], [8, 16, 32]]
    assert for_epochs(planned(7000)[2], 100.0).model.arguments["widths"] == [64, 256, 256]
    assert for_epochs(planned(800)[2], 1.0) is None


def test_mirror_images_are_used_where_they_do_no_harm():
    _, encoder, recipe = planned(7000)
    assert not encoder.mirrors
    assert recipe.augment.arguments["flip"] == "none"
    assert encoder.describe().startswith("Mirror images are not used: of 1,000 images held out")
    other = planned(7000, sided=False)
    assert other[1].mirrors
    assert other[2].augment.arguments["flip"] == "alternating"
    assert other[2].model.arguments["mirror"]
    again = ImageEncoder.from_json(json.loads(json.dumps(encoder.to_json())))
    assert again == encoder
    assert mirror_test(kinds.open(shapes(100)), np.arange(100)) is None
    assert keeps_class([1000, 761, 764, 29, 32])
    assert not keeps_class([1000, 918, 895, 27, 4])
    with pytest.raises(WonderlandError, match=r"has mirror = \[1\], which cannot be"):
        ImageEncoder.from_json(encoder.to_json() | {"mirror": [1]})


def test_idx_files_are_fitted_tested_on_their_own_test_part_and_predicted(tmp_path):
    x, y = shapes(100, 8)
    for name, rows in (("train", slice(0, 80)), ("t10k", slice(80, 100))):
        written(tmp_path / f"{name}-images-idx3-ubyte.gz", x[rows])
        written(tmp_path / f"{name}-labels-idx1-ubyte.gz", y[rows].astype(np.uint8))
    data = kinds.open(tmp_path)
    assert data.test_rows.tolist() == [False] * 80 + [True] * 20
    run = wonderland.fit(tmp_path, out=tmp_path / "run", steps=4, threads=1)
    assert run.record["measured"]["test"]["rows"] == 20
    assert len(run.predict(tmp_path)) == 20
    assert run.evaluate(tmp_path / "train-images-idx3-ubyte.gz")["rows"] == 80
    with pytest.raises(WonderlandError, match=r"has test images of its own: leave test \(--test\) out"):
        kinds.open(tmp_path, test=tmp_path)
    with pytest.raises(WonderlandError, match=r"Images in IDX files keep their size: leave size \(--size\) out"):
        kinds.open(tmp_path, size=16)
    written(tmp_path / "emnist-images-idx3-ubyte", x)
    with pytest.raises(WonderlandError, match="holds several sets of images: emnist-images-idx3-ubyte, t10k"):
        kinds.open(tmp_path)


def test_a_test_set_of_its_own_from_folders_and_arrays(tmp_path):
    train = folder(tmp_path / "train", {"cat": 8, "dog": 8})
    test = folder(tmp_path / "test", {"cat": 2, "dog": 3})
    data = kinds.open(train, test=test)
    assert (len(data), int(data.test_rows.sum()), data.y[-5:].tolist()) == (21, 5, [0, 0, 1, 1, 1])
    assert data.labels()["path"][-1].startswith(str(test))
    x, y = shapes(40, 8)
    run = wonderland.fit(x[:30], y[:30], test=(x[30:], y[30:]), out=tmp_path / "run", steps=3, threads=1)
    assert run.record["measured"]["test"]["rows"] == 10
    with pytest.raises(WonderlandError, match="The target has the class '7', which this model does not know"):
        kinds.open((x, y), test=(x[:2], np.array([0, 7])))


def test_images_that_stay_on_disk_are_joined():
    x, rows = shapes(9, 8)[0], np.array([7, 0, 3, 5])
    joined = Joined(Images.from_arrays(x[:4]).store, Images.from_arrays(x[4:]).store)
    assert np.array_equal(joined.pixels(rows), x[rows][:, None])
    assert np.array_equal(joined.moments(rows), Images.from_arrays(x).store.moments(rows))
    assert len(joined) == 9


class Cut(BaseException):
    """Ends a training in the middle, as a kill would."""


def test_a_cut_run_of_small_images_goes_on_to_the_same_bytes_with_workers(tmp_path, monkeypatch):
    monkeypatch.setattr(recipes, "FEWEST", 100)
    monkeypatch.setattr(Checkpoints, "due", lambda self: True)
    for name, rows in (("train", slice(0, 400)), ("t10k", slice(400, 450))):
        x, y = shapes(450, sided=False)
        written(tmp_path / f"{name}-images-idx3-ubyte", x[rows])
        written(tmp_path / f"{name}-labels-idx1-ubyte", y[rows].astype(np.uint8))
    options = {"steps": 6, "batch_size": 40, "threads": 1, "model": "WhitenedConvNet(widths=[4, 8])"}
    options["augment"] = "CropAugment(pixels=2, flip='alternating')"
    whole = wonderland.fit(tmp_path, out=tmp_path / "whole", workers=1, **options)
    plain, left = GradientDescent.step, {"steps": 4}

    def cut(self, state, batch):
        left["steps"] -= 1
        if not left["steps"]:
            raise Cut
        return plain(self, state, batch)

    monkeypatch.setattr(GradientDescent, "step", cut)
    with pytest.raises(Cut):
        wonderland.fit(tmp_path, out=tmp_path / "cut", workers=1, **options)
    monkeypatch.setattr(GradientDescent, "step", plain)
    wonderland.fit(resume=tmp_path / "cut")
    assert whole.recipe.augment.arguments["flip"] == "alternating"
    assert whole.recipe.optimizer.name == "optim.FilterMuon"  # a named model that is the default keeps its recipe
    for name in ("config.json", "metrics.jsonl", "model.safetensors", "trust.json", "report.html"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "cut" / name).read_bytes(), name
    report = (tmp_path / "cut" / "report.html").read_text()
    assert report.count('alt="augmented"') == 36
    assert report.count('alt="activation map"') == 6
    assert whole.model.crops == 1  # as before the pictures were drawn
    alone = wonderland.fit(tmp_path, out=tmp_path / "alone", **options)
    same = (tmp_path / run / "metrics.jsonl" for run in ("whole", "alone"))
    assert len({file.read_bytes() for file in same}) == 1
    assert alone.recipe.workers == 0
