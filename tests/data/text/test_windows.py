"""Windows: deterministic, resumable anywhere, within documents."""

import re

import numpy as np
import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.data import Tokenizer, Windows, write_tokens


def test_a_batch_depends_on_epoch_and_position_only():
    tokens = np.arange(1000)
    one, two = (Windows(tokens, context=10, size=4, seed=3) for _ in range(2))
    whole = list(one.stream(0, 60))
    for step in (59, 7, 30):
        assert all((a == b).all() for a, b in zip(two.batch(*divmod(step, two.per_epoch)), whole[step], strict=True))
    rest = list(two.stream(25, 60))
    assert all((a[0] == b[0]).all() for a, b in zip(rest, whole[25:], strict=True))
    assert one.per_epoch == 24
    assert not (whole[0][0] == whole[24][0]).all()
    assert not (Windows(tokens, context=10, size=4, seed=4).batch(0, 0)[0] == whole[0][0]).all()


def test_random_windows_reach_everywhere():
    windows = Windows(np.arange(33), context=8, size=16, seed=0)
    starts = np.concatenate([windows.starts(epoch, 0) for epoch in range(60)])
    assert sorted(set(starts.tolist())) == list(range(25))


def test_contiguous_rows_continue_the_previous_batch():
    windows = Windows(np.arange(101), context=5, size=4, seed=1, order="contiguous")
    for epoch in range(3):
        xs = [windows.batch(epoch, position)[0] for position in range(windows.per_epoch)]
        rows = torch.cat(xs, 1)
        assert (rows[:, 1:] == rows[:, :-1] + 1).all()
    assert windows.per_epoch == 5


def test_targets_do_not_cross_documents(tmp_path):
    tokenizer = Tokenizer.train("abcdefgh", kind="characters")
    file = write_tokens([("abc", True), ("def", True), ("gh", True)], tokenizer, tmp_path / "t")
    windows = Windows(file, context=10, size=1)
    x, y = windows.batch(0, 0)
    begins = windows.starts(0, 0)[0]
    for i in range(10):
        place = int(begins) + i + 1
        assert y[0, i] == (-100 if place in (4, 8) else int(file.tokens[place]))
    assert (x[0].numpy() == file.tokens[begins : begins + 10]).all()


def test_errors_to_the_word():
    def says(text, *args, **named):
        with pytest.raises(WonderlandError, match="^" + re.escape(text) + "$"):
            Windows(*args, **named).batch(0, 0)

    says("The text has 5 tokens, and a window needs 9: give more text, or a context of at most 4.", np.arange(5), context=8,
         size=1)  # fmt: skip
    says(
        "Windows come in the order 'random' or 'contiguous', not 'other'.",
        np.arange(9),
        context=2,
        size=1,
        order="other",
    )
    says("Windows need at least one token and one row, not context=0, size=1.", np.arange(9), context=0, size=1)
    says("Token 5 at position 5 is not in the vocabulary: tokens are 0 to 4.", np.arange(9), context=8, size=1, vocab=5)
