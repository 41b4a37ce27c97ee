"""Folders are walked once: classes, loose images, and all the rest."""

import os

import numpy as np
from PIL import Image

from tests.data.pictures import folder, picture, refused
from wonderland.data.split import split
from wonderland.kinds import open as open_data
from wonderland.kinds.image.images import Images


def test_classes_are_sorted_naturally(tmp_path):
    assert Images.from_folder(folder(tmp_path, {"10": 1, "2": 1, "a": 1})).classes == ["2", "10", "a"]


def test_files_may_lie_deeper_and_hidden_ones_do_not_count(animals):
    (animals / "cat" / "more").mkdir()
    Image.fromarray(picture(7)).save(animals / "cat" / "more" / "x.JPG", "JPEG")
    (animals / ".cache").mkdir()
    (animals / "cat" / ".DS_Store").write_text("x")
    data = Images.from_folder(animals, strict=True)
    assert len(data) == 10
    assert data.y[:4].tolist() == [0] * 4


def test_findings_about_foreign_empty_and_loose_files(animals):
    (animals / "cat" / "notes.txt").write_text("x")
    (animals / "dog" / "a.mp4").write_text("x")
    (animals / "fox").mkdir()
    Image.fromarray(picture(7)).save(animals / "loose.png")
    found = [finding.text for finding in Images.from_folder(animals).findings]
    assert found == [
        "Folders without images are left out: 'fox'.",
        "2 files that are not PNG, JPEG, WebP, GIF, BMP or TIFF are left out (.mp4: 1, .txt: 1).",
        "1 image outside of the class folders is left out.",
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
        "2 links to folders or out of the data are not followed.",
        "1 image is a copy of another: scores may look better than they are.",
    ]


def test_wrong_folders(tmp_path, animals):
    missing, empty = tmp_path / "missing", tmp_path / "empty"
    empty.mkdir()
    (tmp_path / "file").write_text("x")
    refused(f"{missing} is missing.", Images.from_folder, missing)
    refused(f"{tmp_path / 'file'} is a file where a folder of images should be.", Images.from_folder, tmp_path / "file")
    refused(
        f"{empty} holds neither images (PNG, JPEG, WebP, GIF, BMP, TIFF) nor text files.", Images.from_folder, empty
    )
    (empty / "a").mkdir()
    refused(
        f"{empty} holds neither images (PNG, JPEG, WebP, GIF, BMP, TIFF) nor text files.", Images.from_folder, empty
    )
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
        "Put class folders into them, or give one of them: its own folders are then the classes.",
        Images.from_folder,
        parts,
    )


def test_train_validation_and_test_folders_are_the_parts(tmp_path):
    for part, count in {"Train": 8, "val": 4, "test": 3}.items():
        folder(tmp_path / "pets" / part, {"cat": count, "dog": count})
    data = Images.from_folder(tmp_path / "pets")
    assert data.classes == ["cat", "dog"]
    assert np.bincount(data.assigned).tolist() == [16, 8, 0, 6]
    assert [finding.text for finding in data.findings if finding.kind == "group"] == [
        "The folders are the parts of a split, and those in them the classes: train 16, validation 8, test 6."
    ]
    assert isinstance(open_data(tmp_path / "pets"), Images)  # not clips, whose folders look alike
    made = split(data)
    assert [len(rows) for rows in made.parts.values()] == [16, 4, 4, 6]
    assert all("Train" in data.paths[row] for row in made.train)


def test_images_of_validation_are_the_test_part_where_there_is_no_other(tmp_path):
    for part, count in {"train": 8, "val": 4}.items():
        folder(tmp_path / "pets" / part, {"cat": count, "dog": count})
    (tmp_path / "pets" / "test").mkdir()
    Image.fromarray(picture(3)).save(tmp_path / "pets" / "test" / "unnamed.png")
    data = Images.from_folder(tmp_path / "pets")
    assert np.bincount(data.assigned).tolist() == [16, 0, 0, 8]
    found = {finding.kind: finding.text for finding in data.findings}
    assert found["loose images"] == "1 image outside of the class folders is left out."
    assert found["group"] == (
        "The folders are the parts of a split, and those in them the classes: train 16, validation 8. Images of validation are the test part."
    )
