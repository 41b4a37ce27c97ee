"""Images: what a folder or an array becomes, and how it is shown."""

import os

import numpy as np
import pytest
from PIL import Image

from tests.data.pictures import folder, picture, refused
from wonderland.core import WonderlandError
from wonderland.kinds.image.images import Images


def test_class_folders(animals):
    data = Images.from_folder(animals)
    assert repr(data) == "<Images animals: 9 images, multiclass, 3 classes>"
    assert (data.classes, data.task, data.kind) == (["cat", "dog", "emu"], "multiclass", "image")
    assert data.y.tolist() == [0, 0, 0, 1, 1, 1, 1, 2, 2]
    assert (data.channels, data.height, data.width, data.findings) == (3, 16, 16, [])
    assert (data.pixels([3])[0] == picture(100).transpose(2, 0, 1)).all()
    shown = data.example(8)
    assert shown["path"] == str(animals / "emu" / "1.png")
    assert shown["target"] == "emu"
    assert shown["image"].shape == (16, 16, 3)
    assert data.summary()[1] == {"class": "dog", "images": 4, "share": "44.4 %", "pixels": "16 x 16, colour"}


def test_copies_in_two_classes_are_contradictions(animals):
    (animals / "cat" / "copy.png").write_bytes((animals / "dog" / "0.png").read_bytes())
    texts = [finding.text for finding in Images.from_folder(animals).findings]
    assert "1 image lies in two class folders at once: one of the two must be wrong." in texts
    with pytest.raises(WonderlandError, match=r"^Strict mode stops here\. 1 image lies in two"):
        Images.from_folder(animals, strict=True)


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


def test_fingerprint_is_of_names_and_content(tmp_path, animals):
    first = Images.from_folder(animals).fingerprint
    assert Images.from_folder(folder(tmp_path / "other", {"cat": 3, "dog": 4, "emu": 2})).fingerprint == first
    os.rename(animals / "cat" / "0.png", animals / "cat" / "z.png")
    assert Images.from_folder(animals).fingerprint != first


def test_html_shows_pictures_and_escapes(tmp_path):
    page = Images.from_folder(folder(tmp_path / "p", {"<b>": 1, "c": 2}))._repr_html_()
    assert page.count("data:image/png;base64,") == 3
    assert "&lt;b&gt;" in page
    assert "<figcaption><b>" not in page


def test_what_decoding_changes_is_counted(tmp_path):
    draw = np.random.default_rng(0)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for index in range(3):
            Image.fromarray(draw.integers(0, 256, (8, 8, 3)).astype(np.uint8)).save(tmp_path / name / f"{index}.png")
    frames = [Image.fromarray(draw.integers(0, 256, (8, 8, 3)).astype(np.uint8)) for _ in range(2)]
    frames[0].save(tmp_path / "a" / "moving.webp", save_all=True, append_images=frames[1:])
    for index in range(2):
        frames[0].convert("CMYK").save(tmp_path / "b" / f"print{index}.jpg")
    Image.fromarray(draw.integers(0, 65536, (8, 8)).astype(np.uint16)).save(tmp_path / "b" / "deep.png")
    texts = [finding.text for finding in Images.from_folder(tmp_path).findings]
    assert texts[1:4] == [
        "1 image is animated: its first frame is taken.",
        "2 images in CMYK are read as RGB.",
        "1 grey image of 16 bits is read with 8.",
    ]
