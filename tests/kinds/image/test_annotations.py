"""Boxes and masks from the files that people have: read alike, faults named, repaired or left out."""

import json
import re

import numpy as np
import pytest
from PIL import Image

from tests.kinds.image.scenes import NAMES, scenes, write_coco, write_masks, write_voc, write_yolo
from wonderland import kinds
from wonderland.core import WonderlandError
from wonderland.kinds.image.canvas import canvas_size
from wonderland.kinds.image.outlines import run_length
from wonderland.tasks.box_files import run_lengths


def texts(dataset):
    return " ".join(finding.text for finding in dataset.findings)


@pytest.mark.parametrize(("write", "form"), [(write_coco, "COCO"), (write_yolo, "YOLO"), (write_voc, "Pascal VOC")])
def test_boxes_are_the_same_from_every_form(tmp_path, write, form):
    opened = kinds.open(write(tmp_path / "scenes", 8))
    assert opened.task == "detection"
    assert "Read as detection: 8 images with boxes from" in texts(opened)
    assert f"in the form of {form} (--task overrules)." in texts(opened)
    order = np.argsort([int(path.rsplit("/", 1)[1].split(".")[0]) for path in opened.paths])
    for row, (_, boxes, _) in zip(order, scenes(8), strict=True):
        np.testing.assert_allclose(opened.boxes[row], np.array(boxes)[:, :4], atol=1e-4)
        names = [opened.classes[code] for code in opened.box_classes[row]]
        assert names == [NAMES[box[4]] if form != "YOLO" else f"class {box[4]}" for box in boxes]


def test_yolo_names_come_from_a_file_or_are_said_to_be_missing(tmp_path):
    folder = write_yolo(tmp_path / "scenes", 4)
    assert "numbers its 2 classes without names: they are called class NUMBER." in texts(kinds.open(folder))
    (folder / "data.yaml").write_text("nc: 2\nnames:\n  0: square  # first\n  1: 'bar'\n")
    assert kinds.open(folder).classes == ["square", "bar"]
    (folder / "data.yaml").write_text("names: [square, bar]\nnc: 2\n")
    assert kinds.open(folder).classes == ["square", "bar"]


def test_masks_of_ids_colours_and_palettes(tmp_path):
    folder = write_masks(tmp_path / "ids", 4)
    opened = kinds.open(folder)
    assert (opened.task, opened.classes) == ("segmentation", ["background", *NAMES])
    truth = [mask for _, _, mask in scenes(4)]
    np.testing.assert_array_equal(opened.masks(np.arange(4)), truth)
    colours = np.array([[0, 0, 0], [255, 0, 0], [0, 255, 0]], np.uint8)
    for index, mask in enumerate(truth):
        Image.fromarray(colours[mask]).save(folder / "masks" / f"{index}.png")
    (folder / "classes.txt").unlink()
    opened = kinds.open(folder)
    assert opened.classes == ["#000000", "#00ff00", "#ff0000"]
    np.testing.assert_array_equal(opened.masks(np.arange(4)), np.array([0, 2, 1])[truth])
    (folder / "class_dict.csv").write_text("name,r,g,b\nbackground,0,0,0\nsquare,255,0,0\nbar,0,255,0\n")
    opened = kinds.open(folder)
    assert opened.classes == ["background", *NAMES]
    np.testing.assert_array_equal(opened.masks(np.arange(4)), truth)
    for index, mask in enumerate(truth):
        picture = Image.fromarray(np.where(mask == 1, 255, mask).astype(np.uint8))
        picture.putpalette(np.random.default_rng(0).integers(0, 256, 768).astype(np.uint8).tobytes())
        picture.save(folder / "masks" / f"{index}.png")
    (folder / "class_dict.csv").unlink()
    opened = kinds.open(folder)
    assert opened.classes == ["class 0", "class 2"]
    assert "Pixels with the value 255 do not count" in texts(opened)


@pytest.mark.parametrize("ending", ["gif", "bmp", "tif", "jpg"])
def test_masks_of_other_formats(tmp_path, ending):
    """GIF brings a palette of its own, JPEG blurs: both give the classes that were drawn."""
    generator = np.random.default_rng(0)
    for name in ("images", "masks"):
        (tmp_path / name).mkdir()
    drawn = []
    for number in range(8):
        mask = np.zeros((32, 32), np.uint8)
        mask[4 + number : 20, 8:20] = 255 if ending == "jpg" else 3
        drawn.append(mask > 0)
        Image.fromarray(generator.integers(0, 256, (32, 32), dtype=np.uint8)).save(tmp_path / f"images/{number}.png")
        Image.fromarray(mask).save(tmp_path / f"masks/{number}.{ending}")
    data = kinds.open(tmp_path)
    assert (data.task, data.classes) == ("segmentation", ["background", "foreground"])
    np.testing.assert_array_equal(data.masks(np.arange(8)), drawn)
    grey = np.tile(np.arange(96, 160, 2, dtype=np.uint8), (32, 1))
    if ending == "jpg":
        Image.fromarray(grey).save(tmp_path / "masks/3.jpg")
        path = re.escape(str(tmp_path / "masks/3.jpg"))
        with pytest.raises(
            WonderlandError,
            match=f"{path} is a JPEG with other values than black and white, which JPEG blurs: save masks as PNG.",
        ):
            kinds.open(tmp_path)


def test_a_mask_of_another_size_is_named_or_left_out(tmp_path):
    folder = write_masks(tmp_path / "scenes", 6)
    Image.new("L", (20, 30)).save(folder / "masks" / "3.png")
    (folder / "masks" / "4.png").unlink()
    with pytest.raises(WonderlandError) as caught:
        kinds.open(folder)
    assert str(caught.value) == (
        f"{folder}/masks/3.png has 30 x 20 pixels, and its image 3.png 32 x 32. Correct it, or leave such files out with "
        "skip_broken (--skip-broken)."
    )
    opened = kinds.open(folder, skip_broken=True)
    assert len(opened) == 4
    assert "1 fault left out:" in texts(opened)
    assert "1 image has no mask and is left out: 4.png." in texts(opened)


def test_boxes_outside_are_cut_or_left_out_and_counted(tmp_path):
    folder = write_coco(tmp_path / "scenes", 5)
    told = json.loads((folder / "boxes.json").read_text())
    told["annotations"][0]["bbox"] = [-6, 4, 12, 10]
    told["annotations"][1]["bbox"] = [40, 40, 5, 5]
    told["annotations"] = [box for box in told["annotations"] if box["image_id"] != 4]
    (folder / "boxes.json").write_text(json.dumps(told))
    opened = kinds.open(folder)
    assert "1 box reaches beyond the image and is cut at its border: 0.png." in texts(opened)
    assert "1 box lies outside of the image or has no area, and is left out: 0.png." in texts(opened)
    assert "1 image has no boxes; they are trained on as background." in texts(opened)
    assert opened.boxes[0].tolist() == [[0, 4, 6, 14]]
    with pytest.raises(WonderlandError, match=r"^Strict mode stops here\. 1 box reaches beyond"):
        kinds.open(folder, strict=True)


def test_json_that_names_missing_files_or_holds_nonsense(tmp_path):
    folder = write_coco(tmp_path / "scenes", 5)
    (folder / "photos" / "2.png").unlink()
    with pytest.raises(WonderlandError) as caught:
        kinds.open(folder)
    assert str(caught.value) == (
        f"{folder}/boxes.json names the image 2.png, which is neither beside it nor below {folder}. Correct it, or leave such "
        "files out with skip_broken (--skip-broken)."
    )
    assert len(kinds.open(folder, skip_broken=True)) == 4
    told = json.loads((folder / "boxes.json").read_text())
    told["images"] = "none"
    (folder / "boxes.json").write_text(json.dumps(told))
    with pytest.raises(WonderlandError, match="is JSON without a list of images, so it is not in the form of COCO"):
        kinds.open(folder)


def test_json_without_categories_says_how_classes_are_called(tmp_path):
    folder = write_coco(tmp_path / "coco", 4)
    (file,) = folder.rglob("*.json")
    value = json.loads(file.read_text())
    file.write_text(json.dumps(value | {"categories": []}))
    opened = kinds.open(folder)
    assert all(name.startswith("class ") for name in opened.classes)
    assert f"{file.name} has no categories: its classes are called class NUMBER." in texts(opened)


def test_hostile_xml_expands_nothing(tmp_path):
    folder = write_voc(tmp_path / "scenes", 4)
    bomb = '<!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c "&b;&b;&b;">]><annotation><filename>&c;</filename></annotation>'
    (folder / "Annotations" / "1.xml").write_text(bomb)
    with pytest.raises(WonderlandError) as caught:
        kinds.open(folder)
    assert str(caught.value).startswith(
        f"{folder}/Annotations/1.xml declares a document type or entities, which annotations do not need: remove the declaration."
    )
    (folder / "Annotations" / "2.xml").write_text("<annotation><object>" + "<part>" * 40)
    assert len(kinds.open(folder, skip_broken=True)) == 2


def test_a_line_that_is_no_box_is_named(tmp_path):
    folder = write_yolo(tmp_path / "scenes", 4)
    (folder / "labels" / "1.txt").write_text("0 12 14 10 10")
    with pytest.raises(WonderlandError) as caught:
        kinds.open(folder)
    assert str(caught.value).startswith(
        f"{folder}/labels/1.txt, line 1: coordinates of YOLO are parts of the image, from 0 to 1, not '0 12 14 10 10'."
    )


def test_one_damaged_file_does_not_hide_what_a_folder_holds(tmp_path):
    folder = write_yolo(tmp_path / "scenes", 6)
    (folder / "labels" / "0.txt").write_text("cat 0.5 0.5 0.3 0.3")
    with pytest.raises(WonderlandError) as caught:
        kinds.open(folder)
    assert "labels/0.txt, line 1: 'cat 0.5 0.5 0.3 0.3' is no line CLASS X Y WIDTH HEIGHT." in str(caught.value)
    assert len(kinds.open(folder, skip_broken=True)) == 5


def test_outlines_become_masks_and_the_task_overrules(tmp_path):
    folder = write_coco(tmp_path / "scenes", 4, outlines=True)
    found, masks = kinds.open(folder), kinds.open(folder, task="segmentation")
    assert found.outlined
    assert masks.classes == ["background", *NAMES]
    truth = np.array([mask for _, _, mask in scenes(4)])
    assert (masks.masks(np.arange(4)) == truth).mean() > 0.95
    assert found.outlines(np.arange(1))[0].mean() > 0.9
    plain = write_coco(tmp_path / "plain", 4)
    with pytest.raises(WonderlandError, match="has boxes without outlines, so no masks can be made of them"):
        kinds.open(plain, task="segmentation")
    with pytest.raises(WonderlandError, match="has masks and no boxes"):
        kinds.open(write_masks(tmp_path / "masks", 4), task="detection")


def test_images_of_several_sizes_share_a_canvas_and_folders_name_the_parts(tmp_path):
    for part in ("train", "valid"):
        write_yolo(tmp_path / part, 6, seed=len(part))
    (tmp_path / "train" / "images" / "0.png").unlink()
    Image.new("L", (64, 32)).save(tmp_path / "train" / "images" / "0.png")
    opened = kinds.open(tmp_path)
    assert opened.assigned is not None
    assert np.bincount(opened.assigned).tolist() == [6, 0, 0, 6]
    assert (opened.height, opened.width) == (32, 32)
    wide = next(row for row, fit in enumerate(opened.fits) if fit.width == 64)
    assert opened.fits[wide].scale == 0.5
    assert opened.boxes[wide][:, 2].max() <= 32
    assert canvas_size([(480, 640)] * 3, None) == (192, 256)
    assert canvas_size([(480, 640)] * 3, None, np.array([20.0])) == (384, 512)


def test_run_lengths_go_both_ways():
    mask = np.array([[1, 0, 0], [1, 1, 0]])
    code = run_lengths(mask)
    np.testing.assert_array_equal(run_length(code, 2, 3), mask)
    mask_tools = pytest.importorskip("pycocotools.mask")
    packed = mask_tools.encode(np.asfortranarray(mask.astype(np.uint8)))
    packed["counts"] = packed["counts"].decode()
    np.testing.assert_array_equal(run_length(packed, 2, 3), mask)
    with pytest.raises(WonderlandError, match="does not add up to the pixels of its image"):
        run_length({"size": [2, 3], "counts": [1, 1]}, 2, 3)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([2**62] * 4 + [6], "does not add up to the pixels of its image"),
        (["a"], "holds something else than whole numbers"),
        ([[1], 2], "holds something else than whole numbers"),
        ([2**70], "holds something else than whole numbers"),
    ],
)
def test_hostile_run_lengths_are_refused(counts, said):
    with pytest.raises(WonderlandError, match=said):
        run_length({"size": [2, 3], "counts": counts}, 2, 3)


def test_hostile_numbers_and_encodings_of_annotations_are_refused(tmp_path):
    folder = write_coco(tmp_path / "coco", 4)
    told = json.loads((folder / "boxes.json").read_text())
    told["annotations"][0]["category_id"] = [1]
    (folder / "boxes.json").write_text(json.dumps(told))
    with pytest.raises(WonderlandError, match=r"without a box \[left, top, width, height\] and a category"):
        kinds.open(folder)
    folder = write_voc(tmp_path / "voc", 4)
    place = folder / "Annotations" / "1.xml"
    whole = place.read_text()
    place.write_text('<?xml version="1.0" encoding="nothing"?><annotation/>')
    with pytest.raises(WonderlandError, match=r"1\.xml is not XML, or it is cut short \(unknown encoding: nothing\)"):
        kinds.open(folder)
    place.write_text(re.sub("<xmax>[^<]*<", "<xmax>inf<", whole))
    with pytest.raises(WonderlandError, match=r"1\.xml has a box whose sides are not pixels of an image"):
        kinds.open(folder)
    folder = write_yolo(tmp_path / "yolo", 4)
    (folder / "labels" / "1.txt").write_text("9" * 5000 + " 0.5 0.5 0.1 0.1")
    with pytest.raises(WonderlandError, match=r"1\.txt, line 1: '9+' is no line CLASS X Y WIDTH HEIGHT"):
        kinds.open(folder)


def test_outlines_that_do_not_fit_name_their_image(tmp_path):
    folder = write_coco(tmp_path / "scenes", 4, outlines=True)
    told = json.loads((folder / "boxes.json").read_text())
    told["annotations"][3]["segmentation"] = {"size": [32, 32], "counts": [9, "many"]}
    (folder / "boxes.json").write_text(json.dumps(told))
    with pytest.raises(WonderlandError) as caught:
        kinds.open(folder, task="segmentation")
    assert str(caught.value) == (
        f"The outlines of {folder}/photos/1.png cannot be used. A run-length code holds something else than whole numbers."
    )


def test_values_that_are_no_ids_are_named_in_json(tmp_path):
    folder = write_coco(tmp_path / "scenes", 4)
    told = json.loads((folder / "boxes.json").read_text())
    for box, change in zip(
        told["annotations"], ({"category_id": [1]}, {"bbox": [0, 0, float("nan"), 4]}, {"image_id": None}), strict=False
    ):
        box.update(change)
    (folder / "boxes.json").write_text(json.dumps(told))
    with pytest.raises(
        WonderlandError,
        match=r"an annotation of image 0\.png without a box \[left, top, width, height\] and a category",
    ):
        kinds.open(folder)
    opened = kinds.open(folder, skip_broken=True)
    assert "3 faults left out" in texts(opened)
    assert sum(map(len, opened.boxes)) == 5
