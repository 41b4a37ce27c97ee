"""Sparse features of texts: hand-computed weights, pieces, columns, bounds; word dropout."""

import re

import numpy as np
import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.data.text import grams as module
from wonderland.data.text.grams import Grams, split_tokens
from wonderland.data.text.word_dropout import WordDropout


def test_words_have_the_weights_of_tf_idf():
    """Two words in one text, one of them in another too: a pair and two borders beside them, all in one norm."""
    texts = [["red fox"], ["red"]]
    found = Grams.fit(texts).encode(texts)
    words = found.values[found.starts[0] : found.starts[1]]
    idf_both, idf_once = 1.0, 1 + np.log(3 / 2)
    # Of the first text: red and "start red" are in both texts; fox, "red fox" and "fox end" in one.
    norm = np.sqrt(2 * idf_both**2 + 3 * idf_once**2)
    expected = sorted([idf_both / norm] * 2 + [idf_once / norm] * 3)
    pieces = Grams.fit(texts)
    block = pieces.keys[found.ids[found.starts[0] : found.starts[1]]] & np.uint64(3)
    np.testing.assert_allclose(sorted(words[block == module.WORDS]), expected, rtol=1e-6)
    assert np.sqrt(np.square(words[block == module.PIECES]).sum()) == pytest.approx(module.BLOCK_WEIGHTS[module.PIECES])


def test_the_first_word_is_paired_with_the_next_ones():
    """Beside words and neighbours, a text of n words has pairs of its first word with the third to the seventh."""
    for words, pairs in ((2, 0), (3, 1), (7, 5), (9, 5)):
        text = [" ".join("abcdefghijk"[:words])]
        grams = Grams.fit([text])
        own = int(((grams.keys & np.uint64(3)) == module.WORDS).sum())
        assert own == words + (words + 1) + pairs


def test_pieces_are_of_words_and_columns_are_told_apart():
    grams = Grams.fit([["foxes ran", "hares sat"], ["a b", "c d"]])

    def features(*row):
        return set(grams.encode([row]).ids.tolist())

    assert features("foxes", "") & features("", "foxes")  # the same word in either column
    assert features("foxes", "") != features("", "foxes")  # but not the same place
    assert features("fox", "") & features("foxes", "")  # they share pieces
    long = Grams.fit([[" ".join(f"word{i}" for i in range(300))]] * 3)
    assert not long.pieces


def test_features_are_bounded(monkeypatch):
    monkeypatch.setattr(module, "MOST_OF_A_TEXT", 10)
    monkeypatch.setattr(module, "CHUNK", 3)
    texts = [[f"word{i} and word{i % 3} and the end of it"] for i in range(20)]
    grams = Grams.fit(texts, most=50)
    assert len(grams) == 50
    assert np.diff(grams.encode(texts).starts).max() == 10
    assert len(Grams.fit([[""]]).encode([[""], ["a"]])) == 2
    assert len(Grams.fit([]).encode([])) == 0


def test_saved_features_are_checked():
    grams = Grams.fit([["a b"], ["b c"]])
    again = Grams.read(grams.tensors(), grams.pieces)
    np.testing.assert_array_equal(again.keys, grams.keys)
    sentence = "preprocess.safetensors does not hold the features of texts: it is damaged or not ours."
    keys = grams.tensors()["keys"]
    for tensors, pieces in (
        ({}, True),
        (grams.tensors(), 1),
        (grams.tensors() | {"idf": grams.tensors()["idf"][1:]}, True),
        (grams.tensors() | {"idf": grams.tensors()["idf"] * float("nan")}, True),
        (grams.tensors() | {"keys": keys.flip(0)}, True),
    ):
        with pytest.raises(WonderlandError, match="^" + re.escape(sentence) + "$"):
            Grams.read(tensors, pieces)


def test_tokens_of_other_scripts():
    assert split_tokens("漢字 ab") == ["漢", "字", "ab"]
    assert split_tokens("Grüße, Ёлка!") == ["grüße", ",", "ёлка", "!"]
    assert len(split_tokens("x " * 30_000)) == module.LONGEST_TEXT
    assert Grams.fit([["\ud800 broken"]]).encode([["\ud800"]]).starts[-1] > 0


def test_word_dropout_leaves_padding_and_features():
    dropout = WordDropout(length=3, unknown=1, chance=0.5)
    x = torch.tensor([[4, 5, 0, 99]])
    assert dropout(x, np.zeros((1, 3))).tolist() == [[1, 1, 0, 99]]
    assert dropout(x, np.ones((1, 3))).tolist() == x.tolist()
    sentence = (
        "WordDropout takes the length of a row, the ids of the unknown and the padding token, and a chance below 1."
    )
    with pytest.raises(WonderlandError, match="^" + re.escape(sentence) + "$"):
        WordDropout(length=3, unknown=1, chance=1.0)
