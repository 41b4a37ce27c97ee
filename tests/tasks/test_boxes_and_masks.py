"""Detection and segmentation: what counts as right, calibrated scores, bounds on what is missed, tables and files."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

import wonderland
from tests.kinds.image.scenes import write_coco, write_masks
from wonderland.cli.main import main
from wonderland.core import WonderlandError
from wonderland.core.batch import Batch
from wonderland.tasks import Detection, Segmentation
from wonderland.tasks.detection_trust import (
    THRESHOLDS,
    BoxTrust,
    best_threshold,
    first_matches,
    fit_scores,
    missed_boxes,
    missed_pixels,
)


def test_a_true_box_counts_once():
    overlap = np.array([[0.9, 0.2], [0.8, 0.6], [0.7, 0.1], [0.0, 0.4]])
    assert first_matches(overlap).tolist() == [True, True, False, False]


def test_missed_boxes_by_threshold_are_those_of_a_plain_count():
    found = {
        "boxes": torch.tensor([[0.0, 0.0, 4.0, 4.0], [10.0, 10.0, 14.0, 14.0]]),
        "scores": torch.tensor([0.855, 0.255]),
        "classes": torch.tensor([0, 1]),
    }
    boxes = torch.tensor([[0.0, 0.0, 4.0, 4.0], [10.0, 10.0, 14.0, 14.0], [20.0, 20.0, 24.0, 24.0]])
    missed = missed_boxes(found, boxes, torch.tensor([0, 1, 1]))
    for threshold, share in zip(THRESHOLDS, missed, strict=True):
        assert share == pytest.approx((1 + (threshold > 0.255) + (threshold > 0.855)) / 3)


def test_scores_become_chances():
    draw = np.random.default_rng(0)
    scores = draw.uniform(0.02, 0.98, 20_000)
    chance = 1 / (1 + np.exp(-(2 * np.log(scores / (1 - scores)) - 1)))
    slope, offset = fit_scores(scores, draw.random(len(scores)) < chance)
    assert (slope, offset) == (pytest.approx(2, abs=0.08), pytest.approx(-1, abs=0.06))
    trust = BoxTrust(slope, offset, 0.5, [0.0] * len(THRESHOLDS), 100, 0.9)
    np.testing.assert_allclose(trust.probability(scores), chance, atol=0.02)
    assert best_threshold(np.array([0.9, 0.8, 0.2]), np.array([True, True, False]), 2) > 0.2


def test_what_is_missed_stays_below_the_level_on_average():
    """Over many draws of calibration and test images, the mean share of missed boxes stays below the level."""
    draw, losses = np.random.default_rng(0), []
    for _ in range(400):
        scores = draw.beta(4, 2, (51, 5))  # 50 images for calibration, one new one, with five boxes each
        risks = (scores[:50, :, None] < THRESHOLDS).mean((0, 1)).tolist()
        found = BoxTrust(1.0, 0.0, 1.0, risks, 50, 0.9).threshold(0.9)
        losses.append(float((scores[50] < found).mean()))
    assert 0.07 < np.mean(losses) < 0.1
    assert BoxTrust(1.0, 0.0, 0.5, [1.0] * len(THRESHOLDS), 9, 0.9).threshold(0.9) == THRESHOLDS[0]


def test_pixels_that_do_not_count_do_not_count():
    torch.manual_seed(0)
    task, net = Segmentation(["background", "dot"], background=True), torch.nn.Conv2d(1, 2, 1)
    x, masks = torch.randn(2, 1, 6, 6), torch.randint(0, 2, (2, 6, 6), dtype=torch.uint8)
    masks[:, :, 4:] = 255
    changed = x.clone()
    changed[:, :, :, 4:] = 9.0
    first, second = (task.loss(net, Batch({"x": given, "masks": masks}))[0] for given in (x, changed))
    torch.testing.assert_close(first, second)
    chances = torch.rand(2, 2, 6, 6)
    missed = missed_pixels(chances, masks, True)
    own = chances[0, 1][masks[0] == 1]
    for place in (0, 20, 53):
        assert float(missed[0, place]) == pytest.approx(float((own < THRESHOLDS[place]).double().mean()))
    assert missed_pixels(chances, torch.zeros_like(masks), True).isnan().all()


def test_a_detector_of_ones_own_needs_two_methods(tmp_path):
    with pytest.raises(WonderlandError, match=r"has no losses\(x, boxes, labels\) and detect\(x\)"):
        wonderland.fit(
            write_coco(tmp_path / "scenes", 24), out=tmp_path / "run", model=torch.nn.Conv2d(1, 2, 1), steps=2
        )
    with pytest.raises(WonderlandError, match="Detection needs names of classes"):
        Detection([])


@pytest.fixture(scope="module")
def outlined(tmp_path_factory):
    home = tmp_path_factory.mktemp("outlined")
    model = "FasterRCNN(dim=8, width=32, masks=True, proposals=8)"
    folder = write_coco(home / "scenes", 20, outlines=True)
    return wonderland.fit(folder, out=home / "run", model=model, steps=8, threads=1, batch_size=4), folder


def test_boxes_and_their_masks_are_written_in_pixels_of_the_image(outlined, tmp_path, capsys):
    run, folder = outlined
    assert (run.recipe.optimizer.name, run.recipe.lr) == ("optim.FilterMuon", 0.1)
    assert run.metrics["mask_iou"] is None or 0 <= run.metrics["mask_iou"] <= 1
    (tmp_path / "large").mkdir()
    for index in range(2):
        Image.open(folder / "photos" / f"{index}.png").resize((96, 96)).save(tmp_path / "large" / f"{index}.png")
    words = [
        "--json",
        str(tmp_path / "boxes.json"),
        "--draw",
        str(tmp_path / "drawn"),
        "-o",
        str(tmp_path / "boxes.csv"),
    ]
    assert main(["predict", str(run.folder), str(tmp_path / "large"), *words]) == 0
    table, told = pd.read_csv(tmp_path / "boxes.csv"), json.loads((tmp_path / "boxes.json").read_text())
    assert list(table) == ["path", "prediction", "probability", "left", "top", "right", "bottom"]
    assert set(table["path"].map(lambda path: Path(path).name)) == {"0.png", "1.png"}
    assert [image["height"] for image in told["images"]] == [96, 96]
    assert len(told["annotations"]) == table["prediction"].notna().sum()
    for box in told["annotations"]:
        assert sum(box["segmentation"]["counts"]) == 96 * 96
    assert np.asarray(Image.open(tmp_path / "drawn" / "0.png")).shape == (96, 96, 3)
    assert table["right"].max() <= 96
    assert main(["predict", str(run.folder), str(tmp_path / "large"), "--json", str(tmp_path / "boxes.txt")]) == 2
    assert "Boxes and masks are written as .json" in capsys.readouterr().err


def test_boxes_of_two_stages_are_not_exported(outlined, capsys):
    run = outlined[0]
    assert main(["export", str(run.folder), "--to", "onnx"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"wonderland: The run in {run.folder} cannot be exported. A detector of two stages looks again at a number of places that depends on "
        "the picture: RetinaNet and TinySSD can be exported."
    ]
    assert not list(run.folder.glob("*.onnx"))


def test_masks_are_written_with_class_ids(tmp_path):
    run = wonderland.fit(write_masks(tmp_path / "scenes", 24), out=tmp_path / "run", steps=3, threads=1, batch_size=4)
    table = run.predict(
        tmp_path / "scenes" / "images", draw=str(tmp_path / "drawn"), json=str(tmp_path / "regions.json")
    )
    assert len(table) == 24
    np.testing.assert_allclose(table.filter(like="share(").sum(axis=1), 1)
    ids = np.asarray(Image.open(tmp_path / "drawn" / "3_mask.png"))
    row = table[table["path"].str.endswith("/3.png")].iloc[0]
    assert (ids == 1).mean() == pytest.approx(row["share(square)"])
    told = json.loads((tmp_path / "regions.json").read_text())
    assert sum(region["area"] for region in told["annotations"] if region["image_id"] == 1) <= 32 * 32
    Image.new("L", (32, 32), 9).save(tmp_path / "scenes" / "masks" / "0.png")
    with pytest.raises(WonderlandError, match="has the value 9, which is no class of this model"):
        run.evaluate(tmp_path / "scenes")
