"""Packing: every token once, nothing across a boundary."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wonderland.core import WonderlandError
from wonderland.data import PackedDocuments
from wonderland.data.text import pack
from wonderland.data.text.packing import spans


@settings(max_examples=60, deadline=None)
@given(lengths=st.lists(st.integers(1, 12), max_size=60))
def test_rows_hold_everything_once_and_never_too_much(lengths):
    rows = pack(lengths, 12)
    assert sorted(i for row in rows for i in row) == list(range(len(lengths)))
    assert all(sum(lengths[i] for i in row) <= 12 for row in rows)
    # A row is begun only for what fits into no other, so no two rows could have been one.
    filled = [sum(lengths[i] for i in row) for row in rows]
    assert all(a + b > 12 for a, b in itertools.combinations(filled, 2))


def test_every_token_but_the_first_is_a_target_once():
    random = np.random.default_rng(0)
    sizes = random.integers(1, 30, 40)
    documents = np.concatenate([[0], np.cumsum(sizes)])
    tokens = random.permutation(int(documents[-1]))
    packed = PackedDocuments(tokens, documents, context=16, size=3, seed=1)
    found = packed.take(range(len(packed.rows)))
    targets = found.targets[found.targets >= 0].tolist()
    wanted = [int(token) for a, b in itertools.pairwise(documents) for token in tokens[a + 1 : b]]
    assert sorted(targets) == sorted(wanted)
    follows = {int(a): int(b) for a, b in itertools.pairwise(tokens)}
    for row in range(len(packed.rows)):
        for token, target, segment in zip(found.tokens[row], found.targets[row], found.segments[row], strict=True):
            if target >= 0:
                assert segment > 0
                assert follows[int(token)] == int(target)


def test_a_batch_depends_on_epoch_and_position_only():
    make = lambda: PackedDocuments(np.arange(200), np.arange(0, 201, 5), context=20, size=3, seed=2)  # noqa: E731
    one, two = make(), make()
    whole = list(one.stream(0, 20))
    for step in (19, 0, 7):
        assert (two.batch(*divmod(step, two.per_epoch)).tokens == whole[step].tokens).all()


def test_long_documents_are_cut_with_one_token_in_common():
    assert spans(np.array([0, 1, 3, 10]), 3).tolist() == [[1, 3], [3, 6], [5, 8], [7, 10]]


def test_errors_to_the_word():
    def says(text, call):
        with pytest.raises(WonderlandError, match="^" + re.escape(text) + "$"):
            call()

    says("Document 1 has 9 tokens, and a row holds 1 to 8.", lambda: pack([3, 9], 8))
    says("A row has at least one token, not 0.", lambda: pack([1], 0))
    says(
        "Packing needs to know where each document begins: give documents.",
        lambda: PackedDocuments(np.arange(4), context=4, size=1),
    )
    says("Packing needs two tokens a row and one row, not context=1, size=1.",
         lambda: PackedDocuments(np.arange(4), np.array([0, 4]), context=1, size=1))  # fmt: skip
    says("No document has two tokens, so there is nothing to predict: give longer texts.",
         lambda: PackedDocuments(np.arange(2), np.array([0, 1, 2]), context=4, size=1))  # fmt: skip
