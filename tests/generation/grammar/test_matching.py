"""Constrained writing: every text matches, whatever the model and the vocabulary, and ends in time."""

import re

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.generation.test_generate import Table
from wonderland.core import WonderlandError
from wonderland.generation import generate, matching
from wonderland.generation.grammar.automaton import build
from wonderland.generation.grammar.expressions import allow_leading_space
from wonderland.generation.grammar.regex import parse


class Chance:
    """A model that says what a seed says: any logits at any time."""

    def __init__(self, vocab: int, seed: int = 0, spread: float = 3.0):
        self.vocab, self.seed, self.spread = vocab, seed, spread

    def stream(self, tokens, state=None, mask=None):
        seen = torch.zeros(len(tokens), dtype=torch.int64) if state is None else state[0]
        generator = torch.Generator().manual_seed(self.seed + 1000 * int(seen[0]))
        logits = torch.randn(len(tokens), tokens.shape[1], self.vocab, generator=generator)
        return logits * self.spread, (seen + tokens.shape[1],)


BYTES = [bytes([code]) for code in range(256)]
PATTERNS = [
    "", "a", "(ab|cd)*e", r"\d{4}-\d{2}-\d{2}", "(yes|no|maybe)", "[a-z]+@[a-z]+[.]com", "é{2,3}.", "(a|b){3,9}c?", r"\w+( \w+)*[.]",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_text_matches(pattern):
    pieces = [*BYTES, b"", b"ab", b"cd", b"20", b"-0", b"no", b"@a", b".com", "é".encode() * 2, b"aaa"]
    constraint = matching(pattern, pieces)
    for count in (int(constraint.distance[0]) or 1, 13, 40):
        written = generate(Chance(len(pieces)), [[0]] * 12, count, constraint=constraint, stop=[256])
        for text, tokens in zip(written.texts, written.tokens, strict=True):
            assert re.fullmatch(pattern, text.decode()), text
            assert b"".join(pieces[token] for token in tokens) == text
            assert len(tokens) <= count


WORDS = st.lists(st.text("ab1", min_size=1, max_size=3).map(str.encode), min_size=1, max_size=6, unique=True)


@settings(deadline=None, max_examples=40)
@given(
    WORDS,
    st.sampled_from(["(ab)*", "a*1?b", "(a|b1)+", "[ab]{2,5}", "(aab|1)(b|a1)*", "b", "(a|ab)(1|b1)?", "a{4}|b{3}"]),
    st.integers(1, 9),
    st.integers(0, 99),
)
def test_any_vocabulary_never_ends_in_a_dead_end(pieces, pattern, count, seed):
    """What tokens can write, and how short, is actual by trying everything."""
    reached, shortest = {b""}, None
    for size in range(count + 1):
        if any(re.fullmatch(pattern, text.decode()) for text in reached):
            shortest = size
            break
        reached = {text + piece for text in reached for piece in pieces if len(text) < 9}
        assume(len(reached) < 3000)
    vocabulary = [*pieces, b""]
    try:
        constraint = matching(pattern, vocabulary)
        constraint.check(count)
    except WonderlandError:
        assert shortest is None
        return
    assert constraint.distance[0] == shortest
    written = generate(Chance(len(vocabulary), seed), [[0]] * 3, count, constraint=constraint, stop=[len(pieces)])
    for text in written.texts:
        assert re.fullmatch(pattern, text.decode())


def test_the_end_token_is_allowed_exactly_where_the_text_matches():
    pieces = [b"a", b"b", b"<end>"]
    constraint = matching("(ab)*<?", pieces).without(frozenset([2]))
    state = constraint.start
    for token, complete in ((0, False), (1, True), (0, False), (1, True)):
        state = constraint.after(state, token)
        assert constraint.accepts(state) is complete
        assert constraint.allowed(state, 9).tolist() == [complete, not complete, False]
    written = generate(Chance(3), [[0]] * 40, 6, constraint=matching("(ab)*<?", pieces), stop=[2], pieces=pieces)
    assert {"stop"} < set(written.ended)
    for text, ended in zip(written.texts, written.ended, strict=True):
        assert re.fullmatch(b"(ab)*", text)
        assert ended == ("stop" if len(text) < 6 else "constraint")


def test_choices_keep_the_odds_of_the_model():
    """Where a constraint leaves two tokens, their odds are those that the model gives."""
    logits = torch.randn(256)
    model = Table(logits.expand(256, 256).tolist())
    model.vocab = 256
    written = generate(model, [[0]] * 800, 1, constraint=matching("a|b", BYTES)).texts
    share = written.count(b"a") / 800
    assert abs(share - torch.sigmoid(logits[97] - logits[98]).item()) < 0.06


def test_greedy_takes_the_most_likely_that_is_allowed():
    model = Chance(256)
    logits = model.stream(torch.zeros(1, 1))[0][0, -1]
    text = generate(model, [[0]], 1, temperature=0, constraint=matching("[a-z]", BYTES)).texts[0]
    assert text[0] == 97 + int(logits[97:123].argmax())


def test_an_empty_text_may_be_all():
    written = generate(Chance(256), [[0], [1]], 5, constraint=matching("", BYTES))
    assert written.tokens == [[], []]
    assert written.ended == ["constraint", "constraint"]


def test_masks_are_those_of_every_token_alone():
    rng = np.random.default_rng(0)
    pieces = [bytes(rng.integers(97, 101, rng.integers(0, 5)).astype(np.uint8)) for _ in range(300)]
    constraint = matching("(a|bc)*d[ab]{0,2}", pieces)
    state = 0
    for step in range(20):
        mask = constraint.allowed(state, 9)
        for token, piece in enumerate(pieces):
            after = constraint.after(state, token)
            assert bool(mask[token]) == (piece != b"" and after >= 0 and constraint.distance[after] < 9)
        state = constraint.after(state, int(rng.choice(np.flatnonzero(mask.numpy()))))
        if constraint.final(state, 9):
            assert step > 0
            break


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (
            lambda: matching("abc", [b"a", b"b"]),
            "No matching text can be written with these pieces: the vocabulary lacks bytes that it needs.",
        ),
        (
            lambda: generate(Chance(256), [[0]], 2, constraint=matching("abc", BYTES)),
            "The shortest matching text takes 3 tokens, but count is 2: give a larger count.",
        ),
        (
            lambda: generate(Chance(256), [[0]], 4, constraint=matching("abc", BYTES), stop=["x"]),
            "A stop string could cut off a text before the constraint is met: give only one of them.",
        ),
        (
            lambda: generate(Chance(9), [[0]], 4, constraint=matching("abc", BYTES)),
            "There are 256 pieces and the model has 9 tokens: give one for each.",
        ),
        (
            lambda: matching("a", "abc"),
            "pieces is a list with the bytes of each token (a tokenizer's pieces()).",
        ),
        (lambda: matching("a", [b"a", "b"]), "The piece of token 1 is a str, not bytes."),
        (lambda: matching("a[^\x00-\U0010ffff]", BYTES), None),
    ],
)
def test_what_does_not_fit_is_told(run, words):
    with pytest.raises(WonderlandError) as error:
        run()
    if words is None:
        words = (
            "The regular expression has a class without any character at character 1 ('[^\\x00-\\U0010ffff]'): "
            "only literals, classes, ., *, +, ?, {m,n}, |, groups and escapes are supported."
        )
    assert str(error.value) == words


@pytest.mark.parametrize("text", ["the", " the", "  the", "", " ", "cat"])
def test_a_leading_space_is_ignored_with_strip(text):
    for pattern in ("the", " the", "(the)?", "[a-z ]+"):
        automaton = build(allow_leading_space(parse(pattern)))
        shown = text.removeprefix(" ")
        assert automaton.matches(text.encode()) == (re.fullmatch(pattern, shown) is not None), pattern
