"""Folders and arrays of images: what is taken, what is told, what is refused."""

import json
import os
import re

import numpy as np
import pytest
import torch
from PIL import Image

from wonderland.core import WonderlandError
from wonderland.data import images as module
from wonderland.data.images import ImageEncoder, Images


def refused(sentence, call, *arguments, **options):
    with pytest.raises(WonderlandError, match="^" + re.escape(sentence) + "$"):
        call(*arguments, **options)


def picture(seed, height=16, width=16, grey=False):
    shape = (height, width) if grey else (height, width, 3)
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def folder(root, counts, grey=False, **size):
    for code, (name, count) in enumerate(counts.items()):
        (root / name).mkdir(parents=True, exist_ok=True)
        for i in range(count):
            Image.fromarray(picture(100 * code + i, grey=grey, **size)).save(root / name / f"{i}.png")
    return root


@pytest.fixture
def animals(tmp_path):
    return folder(tmp_path / "animals", {"cat": 3, "dog": 4, "emu": 2})


def test_class_folders(animals):
    data = Images.from_folder(animals)
    assert repr(data) == "<Images animals: 9 rows, multiclass, 3 classes>"
    assert (data.classes, data.task, data.kind) == (["cat", "dog", "emu"], "multiclass", "image")
    assert data.y.tolist() == [0, 0, 0, 1, 1, 1, 1, 2, 2]
    assert (data.channels, data.height, data.width, data.findings) == (3, 16, 16, [])
    assert (data.pixels([3])[0] == picture(100).transpose(2, 0, 1)).all()
    shown = data.example(8)
    assert shown["path"] == str(animals / "emu" / "1.png")
    assert shown["target"] == "emu"
    assert shown["image"].shape == (16, 16, 3)
    assert data.summary()[1] == {"class": "dog", "images": 4, "share": "44.4 %", "pixels": "16 x 16, colour"}


def test_classes_sort_as_people_count(tmp_path):
    assert Images.from_folder(folder(tmp_path, {"10": 1, "2": 1, "a": 1})).classes == ["2", "10", "a"]


def test_files_may_lie_deeper_and_hidden_ones_do_not_count(animals):
    (animals / "cat" / "more").mkdir()
    Image.fromarray(picture(7)).save(animals / "cat" / "more" / "x.JPG", "JPEG")
    (animals / ".cache").mkdir()
    (animals / "cat" / ".DS_Store").write_text("x")
    data = Images.from_folder(animals, strict=True)
    assert len(data) == 10
    assert data.y[:4].tolist() == [0] * 4


def test_foreign_empty_and_loose_are_told_and_strict_stops(animals):
    (animals / "cat" / "notes.txt").write_text("x")
    (animals / "dog" / "a.gif").write_text("x")
    (animals / "fox").mkdir()
    Image.fromarray(picture(7)).save(animals / "loose.png")
    found = [finding.text for finding in Images.from_folder(animals).findings]
    assert found == [
        "Folders without images were left out: 'fox'.",
        "2 files that are not PNG, JPEG or WebP were left out (.gif: 1, .txt: 1).",
        "1 images outside of the class folders were left out.",
    ]
    sentence = f"Strict mode stops here. {' '.join(found)} Clean the data, or leave strict mode."
    refused(sentence, Images.from_folder, animals, strict=True)


def test_links_out_of_the_folder_are_not_followed(animals, tmp_path):
    Image.fromarray(picture(7)).save(tmp_path / "secret.png")
    os.symlink(tmp_path / "secret.png", animals / "cat" / "secret.png")
    os.symlink(tmp_path, animals / "all")
    os.symlink(animals / "dog" / "0.png", animals / "dog" / "again.png")
    data = Images.from_folder(animals)
    assert len(data) == 10
    assert [finding.text for finding in data.findings] == [
        "2 links to folders or out of the data were not followed.",
        "1 images are exact copies of others: scores may look better than they are.",
    ]


def test_copies_in_two_classes_are_contradictions(animals):
    (animals / "cat" / "copy.png").write_bytes((animals / "dog" / "0.png").read_bytes())
    texts = [finding.text for finding in Images.from_folder(animals).findings]
    assert "1 images lie in two class folders at once: one of the two must be wrong." in texts
    with pytest.raises(WonderlandError, match=r"^Strict mode stops here\. 1 images lie in two"):
        Images.from_folder(animals, strict=True)


def test_wrong_folders(tmp_path, animals):
    missing, empty = tmp_path / "missing", tmp_path / "empty"
    empty.mkdir()
    (tmp_path / "file").write_text("x")
    refused(f"{missing} is missing.", Images.from_folder, missing)
    refused(f"{tmp_path / 'file'} is a file where a folder of images should be.", Images.from_folder, tmp_path / "file")
    refused(f"{empty} holds no PNG, JPEG or WebP images.", Images.from_folder, empty)
    (empty / "a").mkdir()
    refused(f"{empty} holds no PNG, JPEG or WebP images.", Images.from_folder, empty)
    refused(
        f"{animals / 'cat'} has 3 images but no class folders. Make one folder for each class and sort the images into them.",
        Images.from_folder,
        animals / "cat",
    )
    one = folder(tmp_path / "one", {"cat": 2})
    refused(f"{one} holds images of one class only, 'cat': there is nothing to tell apart.", Images.from_folder, one)
    parts = folder(tmp_path / "parts", {"train": 1, "test": 1})
    refused(
        f"{parts} holds the parts of a split (test, train), not classes. "
        "Give one of them: its own folders are the classes, and Wonderland splits by itself.",
        Images.from_folder,
        parts,
    )


def test_wrong_options(animals):
    refused(
        "The class of an image is the name of its folder: leave the target out.",
        Images.from_folder,
        animals,
        target="cat",
    )
    refused(
        "Class folders hold classes, not values: for a regression give arrays of images and values.",
        Images.from_folder,
        animals,
        task="regression",
    )
    refused(
        f"{animals} holds images of 3 classes: that is a multiclass task, not a binary one.",
        Images.from_folder,
        animals,
        task="binary",
    )
    refused(
        "task is 'binary', 'multiclass' or 'regression', not 'multclass'. Did you mean 'multiclass'?",
        Images.from_folder,
        animals,
        task="multclass",
    )
    refused("size is one side, or height and width, from 1 to 4096 pixels, not 0.", Images.from_folder, animals, size=0)


def test_corrupt_images_are_named_and_counted(animals):
    bad = animals / "cat" / "1.png"
    bad.write_bytes(bad.read_bytes()[:60])
    with pytest.raises(
        WonderlandError, match=re.escape(str(bad)) + r" is damaged or cut short \(.*\)\. Copy it again, or remove it\.$"
    ):
        Images.from_folder(animals)
    for name in ("dog/0.png", "dog/1.png"):
        (animals / name).write_text("no image")
    bad.write_text("no image")
    refused(
        f"{bad} is not a PNG, JPEG or WebP image, whatever its name says. Convert it, or remove it. And 2 more images cannot be read.",
        Images.from_folder,
        animals,
    )


def test_one_common_size(tmp_path):
    root = folder(tmp_path / "a", {"x": 2, "y": 2}, height=30, width=50)
    data = Images.from_folder(root)
    assert (data.height, data.width) == (32, 32)
    assert data.findings[0].text == "4 of 4 images were cut and resized to 32 x 32 pixels."
    assert data.pixels([0]).shape == (1, 3, 32, 32)
    data = Images.from_folder(root, size=(10, 20))
    assert data.pixels(range(4)).shape == (4, 3, 10, 20)
    large = Images.from_folder(folder(tmp_path / "b", {"x": 1, "y": 1}, height=300, width=200))
    assert (large.height, large.width) == (64, 64)


def test_grey_folders_have_one_channel(tmp_path):
    data = Images.from_folder(folder(tmp_path, {"x": 2, "y": 2}, grey=True))
    assert data.channels == 1
    assert (data.pixels([0])[0, 0] == picture(0, grey=True)).all()


def test_fingerprint_is_of_names_and_content(tmp_path, animals):
    first = Images.from_folder(animals).fingerprint
    assert Images.from_folder(folder(tmp_path / "other", {"cat": 3, "dog": 4, "emu": 2})).fingerprint == first
    os.rename(animals / "cat" / "0.png", animals / "cat" / "z.png")
    assert Images.from_folder(animals).fingerprint != first


def test_threads_do_not_change_the_answer(tmp_path):
    root = folder(tmp_path, {"x": 30, "y": 30})
    one, many = Images.from_folder(root, workers=1), Images.from_folder(root, workers=4)
    assert (one.pixels(range(60)) == many.pixels(range(60))).all()
    assert one.fingerprint == many.fingerprint


def test_pixels_on_disk_when_memory_is_short(animals, monkeypatch):
    kept = Images.from_folder(animals)
    monkeypatch.setattr(module, "MOST_IN_MEMORY", 1000)
    data = Images.from_folder(animals)
    assert (data.pixels([5, 0]) == kept.pixels([5, 0])).all()
    rows = np.array([0, 2, 7])
    assert data.encoder(rows) == kept.encoder(rows)
    changed = animals / "cat" / "0.png"
    changed.write_bytes((animals / "dog" / "0.png").read_bytes())
    refused(f"{changed} has changed since the data was opened. Open the data again.", data.pixels, [0])


def test_html_shows_pictures_and_escapes(tmp_path):
    page = Images.from_folder(folder(tmp_path / "p", {"<b>": 1, "c": 2}))._repr_html_()
    assert page.count("data:image/png;base64,") == 3
    assert "&lt;b&gt;" in page
    assert "<figcaption><b>" not in page


def test_arrays_of_every_layout():
    x = picture(0, 6, 5)[None].repeat(4, 0)
    y = ["b", "a", "b", "a"]
    last = Images.from_arrays(x, y)
    first = Images.from_arrays(x.transpose(0, 3, 1, 2), y)
    assert (last.pixels([0]) == first.pixels([0])).all()
    assert last.fingerprint == first.fingerprint
    assert (last.classes, last.y.tolist(), last.task) == (["a", "b"], [1, 0, 1, 0], "binary")
    assert Images.from_arrays(x[..., 0], y).channels == 1
    assert Images.from_arrays(torch.from_numpy(x), y).height == 6
    assert Images.from_arrays(np.zeros((2, 3, 9, 3), np.uint8), layout="nhwc").width == 9


def test_numbers_are_scaled_and_it_is_said():
    x = np.array([0.0, 8, 16]).reshape(3, 1, 1)
    data = Images.from_arrays(x, [1, 2, 1], name="digits", strict=True)
    assert data.pixels([0, 1, 2]).ravel().tolist() == [0, 128, 255]
    assert data.findings[0].text == "Pixel values from 0 to 16 were scaled to 0..255."
    assert data.value_range == (0.0, 16.0)
    assert Images.from_arrays(x / 16, [1, 2, 1]).pixels([1]).item() == 128
    assert Images.from_arrays(x - 8, [1, 2, 1]).pixels([0, 2]).ravel().tolist() == [0, 255]
    assert Images.from_arrays(x.astype(int) * 15, [1, 2, 1]).pixels([2]).item() == 240


def test_labels_and_values():
    x = np.zeros((30, 4, 4), np.uint8)
    assert Images.from_arrays(x, np.arange(30.0) % 3).classes == ["0", "1", "2"]
    assert Images.from_arrays(x, np.arange(30) % 2, classes=["no", "yes"]).classes == ["no", "yes"]
    values = Images.from_arrays(x, np.linspace(0, 1, 30))
    assert (values.task, values.classes, values.y.dtype) == ("regression", None, np.float64)
    assert (
        values.findings[0].text
        == "The target has 30 different numbers, so values are predicted (regression), not classes."
    )
    assert Images.from_arrays(x, np.arange(30) % 3, task="regression").y[2] == 2.0
    assert values.summary()[0]["highest"] == "1"
    assert Images.from_arrays(x).y is None
    assert Images.from_arrays(x).summary()[0]["class"] == "(none)"


X = np.zeros((4, 8, 8))


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        ((X[0],), {}, "a has the shape (8, 8); images come as (n, h, w), (n, h, w, c) or (n, c, h, w)."),
        ((X[:0],), {}, "a is empty: its shape is (0, 1, 8, 8)."),
        (
            (np.zeros((2, 8, 8, 4)),),
            {},
            "a has the shape (2, 8, 8, 4); images have 1 channel (grey) or 3 (colour), first or last.",
        ),
        (
            (np.zeros((2, 3, 8, 3)),),
            {},
            "a has the shape (2, 3, 8, 3), where channels may be first or last: say layout='nchw' or 'nhwc'.",
        ),
        ((X,), {"layout": "hwc"}, "layout is 'nhw', 'nhwc' or 'nchw', not 'hwc'."),
        (
            (np.where(np.arange(4)[:, None, None] == 1, np.nan, X),),
            {},
            "a[1] holds NaN or infinite pixels. Repair or remove that image.",
        ),
        ((["x", "y"],), {}, "a holds no numbers of one shape: images of different sizes belong in a folder of files."),
        ((np.zeros((1, 1, 5000)),), {}, "a has images of 1 x 5000 pixels; the limit is 4096 a side."),
        ((X, [1, 2]), {}, "a has 4 images and targets of the shape (2,): give one target for each image."),
        ((X, [1, 1, 1, 1]), {}, "a holds images of one class only, '1': there is nothing to tell apart."),
        ((X, [1.0, np.inf, 0, 0]), {}, "The target of a[1] is NaN or infinite."),
        ((X, np.array(["u", None, "v", "u"], object)), {}, "The target of a[1] is missing."),
        (
            (X, ["u", "v", "u", "v"]),
            {"task": "regression"},
            "A regression needs numbers, and the targets of a are text.",
        ),
        ((X, [2, 2, 2, 2]), {"task": "regression"}, "Every target of a is 2: there is nothing to learn."),
        ((X, [0, 1, 2, 0]), {"classes": ["p", "q"]}, "With 2 classes, the targets of a are whole numbers from 0 to 1."),
        ((X, [0, 1, 1, 0]), {"classes": ["p", "p"]}, "classes names one class twice."),
        (
            (X, [0, 1, 2, 0]),
            {"task": "binary"},
            "a holds images of 3 classes: that is a multiclass task, not a binary one.",
        ),
        ((X,), {"value_range": (1, 1)}, "value_range must be two finite numbers, the lower first, not (1, 1)."),
    ],
)
def test_wrong_arrays(arguments, options, sentence):
    refused(sentence, Images.from_arrays, *arguments, name="a", **options)


def test_the_encoder_is_fitted_on_its_rows_only():
    x = np.zeros((4, 2, 2, 3), np.uint8)
    x[:2, ..., 0] = [[[0]], [[200]]]
    x[2:] = 255
    encoder = Images.from_arrays(x, [0, 1, 0, 1]).encoder(np.array([0, 1]))
    assert encoder.mean == pytest.approx([100 / 255, 0, 0])
    assert encoder.std == pytest.approx([100 / 255, 1 / 255, 1 / 255])
    encoded = encoder.encode(Images.from_arrays(x), [1, 3])
    assert encoded.dtype == torch.uint8
    assert encoded[:, :, 0, 0].tolist() == [[200, 0, 0], [255, 255, 255]]


def test_json_round_trip(animals):
    encoder = Images.from_folder(animals).encoder(np.arange(5))
    again = ImageEncoder.from_json(json.loads(json.dumps(encoder.to_json())), encoder.tensors())
    assert again == encoder


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kind": "table"}, "The preprocessing of this model is not for images: the file is damaged or not ours."),
        (
            {"channels": 2},
            "The preprocessing of this model has channels = 2, which cannot be: the file is damaged or not ours.",
        ),
        (
            {"height": 10**9},
            "The preprocessing of this model has height = 1000000000, which cannot be: the file is damaged or not ours.",
        ),
        (
            {"width": True},
            "The preprocessing of this model has width = True, which cannot be: the file is damaged or not ours.",
        ),
        (
            {"mean": [0.1]},
            "The preprocessing of this model has mean = [0.1], which cannot be: the file is damaged or not ours.",
        ),
        (
            {"std": [1, 0, 1]},
            "The preprocessing of this model has std = [1, 0, 1], which cannot be: the file is damaged or not ours.",
        ),
        (
            {"std": [1, float("nan"), 1]},
            "The preprocessing of this model has std = [1, nan, 1], which cannot be: the file is damaged or not ours.",
        ),
        (
            {"classes": ["a", "a"]},
            "The preprocessing of this model has classes = ['a', 'a'], which cannot be: the file is damaged or not ours.",
        ),
        (
            {"task": ["x"]},
            "The preprocessing of this model has task = ['x'], which cannot be: the file is damaged or not ours.",
        ),
        (
            {"value_range": [1, 0]},
            "The preprocessing of this model has value_range = [1, 0], which cannot be: the file is damaged or not ours.",
        ),
    ],
)
def test_hostile_json(animals, change, sentence):
    refused(
        sentence, ImageEncoder.from_json, {**Images.from_folder(animals).encoder(np.arange(5)).to_json(), **change}, {}
    )


def test_json_that_lacks_something():
    refused(
        "The preprocessing of this model is not for images: the file is damaged or not ours.",
        ImageEncoder.from_json,
        [],
        {},
    )
    refused(
        "The preprocessing of this model lacks 'channels': the file is damaged or not ours.",
        ImageEncoder.from_json,
        {"kind": "image"},
        {},
    )


@pytest.fixture
def encoder(animals):
    return Images.from_folder(animals, size=8).encoder(np.arange(9))


def test_new_data_in_every_form(encoder, animals, tmp_path):
    assert encoder.open(animals).y.tolist() == [0, 0, 0, 1, 1, 1, 1, 2, 2]
    flat = encoder.open(animals / "cat")
    assert (len(flat), flat.y, flat.height) == (3, None, 8)
    assert len(encoder.open(animals / "cat" / "0.png")) == 1
    several = encoder.open([animals / "emu" / "1.png", str(animals / "cat" / "0.png")])
    assert several.paths == [str(animals / "emu" / "1.png"), str(animals / "cat" / "0.png")]
    assert (encoder.encode(several)[1] == encoder.encode(flat)[0]).all()
    assert encoder.encode(encoder.open(picture(0, 8, 8))).shape == (1, 3, 8, 8)
    assert encoder.open(folder(tmp_path / "one", {"dog": 2}), need_target=True).y.tolist() == [1, 1]
    unknown = encoder.open(folder(tmp_path / "new", {"yak": 2}))
    assert (unknown.y, len(unknown)) == (None, 2)
    Image.fromarray(picture(7)).save(tmp_path / "new" / "loose.png")
    assert len(encoder.open(tmp_path / "new")) == 3
    labelled = encoder.open((np.zeros((2, 8, 8, 3), np.uint8), ["emu", "cat"]), need_target=True)
    assert labelled.y.tolist() == [2, 0]


def test_new_data_takes_size_and_channels_of_training(encoder):
    other = Images.from_arrays(picture(1, 20, 30, grey=True)[None])
    assert encoder.encode(other).shape == (1, 3, 8, 8)
    assert (
        encoder.noticed[0].text
        == "1 images of 20 x 30 grey pixels were made 8 x 8 colour pixels, the size of training."
    )
    grey = Images.from_arrays(np.zeros((2, 8, 8), np.uint8), [0, 1]).encoder(np.arange(2))
    assert grey.encode(Images.from_arrays(picture(1, 9, 9)[None])).shape == (1, 1, 8, 8)


def test_new_numbers_are_scaled_as_in_training(encoder):
    digits = Images.from_arrays(np.array([[[0.0]], [[16.0]]]), [0, 1]).encoder(np.arange(2))
    assert digits.open(np.array([[[8.0]]])).pixels([0]).item() == 128
    assert digits.open(np.array([[[8]]], np.uint8)).pixels([0]).item() == 128
    assert digits.open(np.array([[[200]]], np.uint8)).pixels([0]).item() == 200
    over = digits.open(np.array([[[32.0]]]))
    assert over.findings[-1].text == "1 images have values outside of 0 to 16, which were cut off."
    assert (encoder.open(np.ones((1, 8, 8, 3))).pixels([0]) == 255).all()


def test_new_data_that_does_not_fit(encoder, animals, tmp_path):
    refused(
        f"{animals / 'cat'} has no class folders to compare with: make one folder for each class.",
        encoder.open,
        animals / "cat",
        need_target=True,
    )
    wrong = folder(tmp_path / "wrong", {"cats": 1})
    refused(
        f"{wrong} has the class 'cats', which this model does not know. Did you mean 'cat'?",
        encoder.open,
        wrong,
        need_target=True,
    )
    refused(
        "arrays has no classes to compare with: give a folder with one folder for each class.",
        encoder.open,
        np.zeros((1, 8, 8, 3)),
        need_target=True,
    )
    refused(f"{tmp_path / 'gone'} is missing.", encoder.open, tmp_path / "gone")
    refused(f"{animals} is not a file: give images, or one folder.", encoder.open, [animals])
    refused(
        "There are 1 images and 2 targets: give one for each image.",
        encoder.open,
        (np.zeros((1, 8, 8, 3)), ["cat", "dog"]),
    )
    (tmp_path / "none").mkdir()
    refused(f"{tmp_path / 'none'} holds no PNG, JPEG or WebP images.", encoder.open, tmp_path / "none")


def test_values_to_compare_with():
    x = np.zeros((3, 4, 4), np.uint8)
    values = Images.from_arrays(x, [0.5, 1.5, 2.0]).encoder(np.arange(3))
    assert values.open((x, [1, 2, 3]), need_target=True).y.tolist() == [1.0, 2.0, 3.0]
    sentence = "This model predicts values: the targets to compare with must be finite numbers."
    refused(sentence, values.open, (x, ["a", "b", "c"]))
    refused("arrays has classes, and this model predicts values.", values.open, Images.from_arrays(x, ["a", "b", "b"]))


def test_a_given_dataset_is_matched_by_name_and_left_as_it_was(encoder):
    given = Images.from_arrays(np.zeros((2, 8, 8, 3), np.uint8), ["emu", "dog"])
    opened = encoder.open(given)
    assert (opened.y.tolist(), given.y.tolist()) == ([2, 1], [1, 0])


def test_a_table_is_not_an_image(encoder):
    class Table:
        kind, name = "table", "iris"

    refused("This model reads images, and iris is not made of images.", encoder.encode, Table())
