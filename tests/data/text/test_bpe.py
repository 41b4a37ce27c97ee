"""Byte pair encoding: the book's merges, and the package learns the same."""

import pytest

from wonderland.core import WonderlandError
from wonderland.data.text import apply_merges, learn_merges, longest_first

WORDS = {"fast_": 4, "faster_": 3, "tall_": 5, "taller_": 4}
MERGES = [("t", "a"), ("ta", "l"), ("tal", "l"), ("f", "a"), ("fa", "s"), ("fas", "t"), ("e", "r"), ("er", "_"),
          ("tall", "_"), ("fast", "_")]  # fmt: skip


def test_ten_merges_of_the_book():
    assert learn_merges(WORDS, 10) == MERGES


def test_new_words_of_the_book():
    symbols = {*"abcdefghijklmnopqrstuvwxyz_", *(a + b for a, b in MERGES)}
    assert apply_merges("tallest_", MERGES) == ["tall", "e", "s", "t", "_"]
    assert longest_first("tallest_", symbols) == ["tall", "e", "s", "t", "_"]
    assert apply_merges("fatter_", MERGES) == ["fa", "t", "t", "er_"] == longest_first("fatter_", symbols)
    assert longest_first("tall!", symbols) == ["tall", "[UNK]"]


def test_the_package_learns_the_same_merges_where_no_two_pairs_are_equally_frequent():
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    words = {"banana_": 13, "bandana_": 7, "cabana_": 3}
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(vocab_size=len(set("".join(words))) + 4, show_progress=False)
    made.train_from_iterator([" ".join([word] * count) for word, count in words.items()], trainer)
    merges = learn_merges(words, 4)
    assert [made.encode(word).tokens for word in words] == [apply_merges(word, merges) for word in words]


def test_merges_end_when_no_pair_is_left():
    assert learn_merges({"ab": 1}, 10) == [("a", "b")]
    assert learn_merges({}, 3) == []
    with pytest.raises(
        WonderlandError, match=r"^learn_merges takes a number of merges and counts of words that are at least 0\.$"
    ):
        learn_merges({"ab": 1}, -1)
