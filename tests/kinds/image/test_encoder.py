"""New images are made to fit those of training."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from tests.data.pictures import folder, picture, refused
from wonderland import kinds
from wonderland.kinds.image.encoder import ImageEncoder
from wonderland.kinds.image.images import Images


def test_the_encoder_is_fitted_on_its_rows_only():
    x = np.zeros((4, 2, 2, 3), np.uint8)
    x[:2, ..., 0] = [[[0]], [[200]]]
    x[2:] = 255
    encoder = ImageEncoder.fit(Images.from_arrays(x, [0, 1, 0, 1]), np.array([0, 1]))
    assert encoder.mean == pytest.approx([100 / 255, 0, 0])
    assert encoder.std == pytest.approx([100 / 255, 1 / 255, 1 / 255])
    encoded = encoder.encode(Images.from_arrays(x), [1, 3])
    assert encoded.dtype == torch.uint8
    assert encoded[:, :, 0, 0].tolist() == [[200, 0, 0], [255, 255, 255]]


def test_json_round_trip(animals):
    encoder = ImageEncoder.fit(Images.from_folder(animals), np.arange(5))
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
        sentence,
        ImageEncoder.from_json,
        {**ImageEncoder.fit(Images.from_folder(animals), np.arange(5)).to_json(), **change},
        {},
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
    return ImageEncoder.fit(Images.from_folder(animals, size=8), np.arange(9))


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
    assert encoder.noticed[0].text == "1 image of 20 x 30 grey pixels changed to 8 x 8 colour pixels, as in training."
    grey = ImageEncoder.fit(Images.from_arrays(np.zeros((2, 8, 8), np.uint8), [0, 1]), np.arange(2))
    assert grey.encode(Images.from_arrays(picture(1, 9, 9)[None])).shape == (1, 1, 8, 8)


def test_new_numbers_are_scaled_as_in_training(encoder):
    digits = ImageEncoder.fit(Images.from_arrays(np.array([[[0.0]], [[16.0]]]), [0, 1]), np.arange(2))
    assert digits.open(np.array([[[8.0]]])).pixels([0]).item() == 128
    assert digits.open(np.array([[[8]]], np.uint8)).pixels([0]).item() == 128
    assert digits.open(np.array([[[200]]], np.uint8)).pixels([0]).item() == 200
    over = digits.open(np.array([[[32.0]]]))
    assert over.findings[-1].text == "1 image has values outside of 0 to 16, which were cut off."
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
        "The images are 1 and the targets 2: give one for each image.",
        encoder.open,
        (np.zeros((1, 8, 8, 3)), ["cat", "dog"]),
    )
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    refused(f"This model was trained on images; {tmp_path / 'a.csv'} is a table.", encoder.open, tmp_path / "a.csv")
    (tmp_path / "none").mkdir()
    refused(
        f"{tmp_path / 'none'} holds neither images (PNG, JPEG, WebP, GIF, BMP, TIFF) nor text files.",
        encoder.open,
        tmp_path / "none",
    )


def test_values_to_compare_with():
    x = np.zeros((3, 4, 4), np.uint8)
    values = ImageEncoder.fit(Images.from_arrays(x, [0.5, 1.5, 2.0]), np.arange(3))
    assert values.open((x, [1, 2, 3]), need_target=True).y.tolist() == [1.0, 2.0, 3.0]
    sentence = "This model predicts values: the targets to compare with must be finite numbers."
    refused(sentence, values.open, (x, ["a", "b", "c"]))
    refused("arrays has classes, and this model predicts values.", values.open, Images.from_arrays(x, ["a", "b", "b"]))


def test_a_given_dataset_is_matched_by_name_and_left_as_it_was(encoder):
    given = Images.from_arrays(np.zeros((2, 8, 8, 3), np.uint8), ["emu", "dog"])
    opened = encoder.open(given)
    assert (opened.y.tolist(), given.y.tolist()) == ([2, 1], [1, 0])


def test_a_table_is_not_an_image(encoder):
    refused("This model reads images, and iris is not made of images.", encoder.encode, kinds.open("iris"))
