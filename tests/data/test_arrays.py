"""Arrays of every layout and range become pixels; what cannot be one is refused."""

import numpy as np
import pytest
import torch

from tests.data.pictures import picture, refused
from wonderland.kinds.image.images import Images

X = np.zeros((4, 8, 8))


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


def test_numbers_are_scaled_with_a_finding():
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
