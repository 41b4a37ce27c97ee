"""Word vectors from GloVe and word2vec text files: the words asked for, in either format, and refusals."""

import gzip
import re

import pytest

from wonderland.core import WonderlandError
from wonderland.data.text.vectors import read_vectors

GLOVE = "the 0.5 1\nFox 3 4\nfox 1 2\nNew York 5 6\nmore 7 8\n"


@pytest.mark.parametrize("head", ["", "5 2\n"])
@pytest.mark.parametrize("packed", [False, True])
def test_words_are_found_in_both_formats(tmp_path, head, packed):
    path = tmp_path / ("v.txt.gz" if packed else "v.txt")
    data = (head + GLOVE).encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    table, has = read_vectors(path, {"the": 0, "fox": 2, "new york": 3, "owl": 1}, 4)
    assert table.tolist() == [[0.5, 1], [0, 0], [1, 2], [5, 6]]
    assert has.tolist() == [True, False, True, True]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "{} holds no word vectors: a line is a word and its numbers, between blanks."),
        ("a plain sentence\n", "{} holds no word vectors: a line is a word and its numbers, between blanks."),
        ("a 1 2\nfox 1\n", "{}: line 2 has no 2 numbers after its word, as the lines before it have."),
        ("a 1 2\nfox 1 nan\n", "{}: line 2 has no 2 numbers after its word, as the lines before it have."),
        ("a " + "1 " * 70_000, "{}: line 1 is longer than 128 KiB: it holds no word vector."),
    ],
)
def test_refusals(tmp_path, text, sentence):
    path = tmp_path / "v.txt"
    path.write_text(text)
    with pytest.raises(WonderlandError, match="^" + re.escape(sentence.format(path)) + "$"):
        read_vectors(path, {"fox": 0, "": 1}, 2)
    with pytest.raises(
        WonderlandError, match="^" + re.escape(f"There is no file {tmp_path / 'none'} of word vectors.") + "$"
    ):
        read_vectors(tmp_path / "none", {}, 1)
