"""Folders are walked once: classes, loose images, and all the rest."""

import os

from PIL import Image

from tests.data.pictures import folder, picture, refused
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
    (animals / "dog" / "a.gif").write_text("x")
    (animals / "fox").mkdir()
    Image.fromarray(picture(7)).save(animals / "loose.png")
    found = [finding.text for finding in Images.from_folder(animals).findings]
    assert found == [
        "Folders without images are left out: 'fox'.",
        "2 files that are not PNG, JPEG or WebP are left out (.gif: 1, .txt: 1).",
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
    refused(f"{empty} holds neither images (PNG, JPEG, WebP) nor text files.", Images.from_folder, empty)
    (empty / "a").mkdir()
    refused(f"{empty} holds neither images (PNG, JPEG, WebP) nor text files.", Images.from_folder, empty)
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
