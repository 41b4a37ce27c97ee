import gzip

import numpy as np
import pytest

from wonderland.core import WonderlandError
from wonderland.data.idx import file_of_test_images, image_files, labels_beside, read_idx, read_pair


def written(path, array):
    content = b"\0\0\x08" + bytes([array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize(
    ("images", "labels"),
    [
        ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
        ("train-images-idx3-ubyte", "train-labels-idx1-ubyte.gz"),
        ("train-images.idx3-ubyte", "train-labels.idx1-ubyte"),
    ],
)
def test_pairs_are_read_as_they_come(tmp_path, images, labels):
    x, y = np.arange(48, dtype=np.uint8).reshape(3, 4, 4), np.array([0, 1, 2], np.uint8)
    file = written(tmp_path / images, x)
    assert read_pair(file)[1] is None
    written(tmp_path / labels, y)
    found = read_pair(file)
    assert np.array_equal(found[0], x)
    assert np.array_equal(found[1], y)
    assert image_files(tmp_path) == [file]
    assert labels_beside(file) == tmp_path / labels
    test = written(tmp_path / "t10k-images-idx3-ubyte", x[:1])
    assert file_of_test_images(tmp_path) == test
    assert file_of_test_images(file) == file


def test_damaged_files(tmp_path):
    file = written(tmp_path / "train-images-idx3-ubyte", np.zeros((2, 4, 4), np.uint8))
    good = file.read_bytes()
    for content, sentence in (
        (good[:-1], "holds only 31 of the 32 bytes it announces: it is damaged"),
        (good + b"\0", "holds more than the 32 bytes it announces: it is damaged"),
        (b"\x89PNG" + good[4:], "is not an IDX file of bytes: its first four bytes are 89 50 4e 47"),
        (good[:4] + b"\xff" * 12 + good[16:], "says it holds 4294967295 x 4294967295 x 4294967295 bytes, which is empty or too much"),
    ):  # fmt: skip
        file.write_bytes(content)
        with pytest.raises(WonderlandError, match=sentence):
            read_idx(file)
    packed = tmp_path / "t10k-images-idx3-ubyte.gz"
    packed.write_bytes(gzip.compress(good)[:-12])
    with pytest.raises(WonderlandError, match=r"t10k-images-idx3-ubyte\.gz (cannot be read|holds)"):
        read_idx(packed)
    file.write_bytes(good)
    written(tmp_path / "train-labels-idx1-ubyte", np.zeros(3, np.uint8))
    with pytest.raises(WonderlandError, match=r"holds 2 images, and .* labels of the shape \(3,\)"):
        read_pair(file)
