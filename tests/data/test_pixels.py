"""Pixels have one size, in memory or on disk, whatever the number of threads."""

import re

import numpy as np
import pytest
from PIL import Image

import wonderland.data.pixels as module
from tests.data.pictures import folder, picture, refused
from wonderland.core import WonderlandError
from wonderland.data.decode import look
from wonderland.data.pixels import _common_size
from wonderland.kinds.image.encoder import ImageEncoder
from wonderland.kinds.image.images import Images


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
        f"{bad} is not a PNG, JPEG, WebP, GIF, BMP or TIFF image, whatever its name says. Convert it, or remove it. And 2 more images cannot be read.",
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
    assert (large.height, large.width) == (120, 80)  # their shape, with about as many pixels as 96 x 96


def test_larger_images_keep_their_shape_where_most_have_the_same(tmp_path):
    assert _common_size([(200, 300)] * 8 + [(300, 200)] * 2) == (80, 120)
    assert _common_size([(200, 300)] * 5 + [(300, 200)] * 5) == (96, 96)
    assert _common_size([(70, 4000)] * 8) == (48, 96)  # at most twice as wide as high
    assert _common_size([(200, 300)] * 5001) == (56, 80)
    photo = Image.fromarray(picture(0, height=200, width=300))
    exif = Image.Exif()
    exif[0x0112] = 6
    photo.save(tmp_path / "turned.jpg", exif=exif)
    assert look(tmp_path / "turned.jpg")[:2] == (300, 200)  # as it is looked at, not as it is stored


def test_grey_folders_have_one_channel(tmp_path):
    data = Images.from_folder(folder(tmp_path, {"x": 2, "y": 2}, grey=True))
    assert data.channels == 1
    assert (data.pixels([0])[0, 0] == picture(0, grey=True)).all()


def test_threads_do_not_change_the_result(tmp_path):
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
    assert ImageEncoder.fit(data, rows) == ImageEncoder.fit(kept, rows)
    changed = animals / "cat" / "0.png"
    changed.write_bytes((animals / "dog" / "0.png").read_bytes())
    refused(f"{changed} has changed since the data was opened. Open the data again.", data.pixels, [0])
