"""Regular expressions against Python's re: the same texts match, and what is not supported is refused."""

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wonderland.core import WonderlandError
from wonderland.generation.grammar import automaton
from wonderland.generation.grammar.automaton import build
from wonderland.generation.grammar.characters import ANY, complement, utf8
from wonderland.generation.grammar.regex import parse

ALPHABET = 'ab1-é"\n'
TEXTS = ["".join(text) for size in range(4) for text in itertools.product(ALPHABET, repeat=size)]


@pytest.mark.parametrize(
    "pattern",
    [
        "", "a", "ab|b", "(ab)*", "a+b?", "[ab]{2}", "[ab]{,2}", "[^a]{1,2}", "a{2,}", ".", ".*a", "(a|b|)+1", "(a*)*b", "a{0}",
        "[a-]+", "[]a]", "[^]a]", "é|\\n", r"\d+", r"\w*", r"[\d-]{2}", r"\x61\u0062", r"[\x61-\x62]+", "(?:a|b)1", "(?P<x>a)b",
        "^a|b$", "^(ab)$", "a*?b", "a??", "((((a))))", "a|", "|", "()", "[a-b1]{3}", r"\-\"", "a}", "]", "(a|b){0,2}(1|-){1,2}",
    ],
)  # fmt: skip
def test_the_same_texts_match(pattern):
    actual = build(parse(pattern))
    for text in TEXTS:
        expected = re.fullmatch(pattern, text, re.ASCII) is not None
        assert actual.matches(text.encode()) == expected, (pattern, text)


@pytest.mark.parametrize("pattern", ["^a", "b$", "^ab$", "a", "a|^b$", "1{2}", "$", "^", ""])
def test_a_search_finds_it_anywhere(pattern):
    actual = build(parse(pattern, search=True))
    for text in TEXTS:
        # For re, $ also stands before a line break at the end.
        expected = re.search(pattern.replace("$", r"\Z"), text) is not None
        assert actual.matches(text.encode()) == expected, (pattern, text)


ATOMS = st.sampled_from(["a", "b", "1", ".", "[ab]", "[^a]", "[a-c]", "é", r"\n", r"\.", "(?:a|b1)"])


def _grow(inner):
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{1,}"])).map(
            lambda two: f"({two[0]}){two[1]}"
        ),
    )


@settings(deadline=None, max_examples=40)
@given(st.data(), st.recursive(ATOMS, _grow, max_leaves=5))
def test_any_expression_of_the_kind(data, pattern):
    actual = build(parse(pattern))
    for text in data.draw(st.lists(st.text(ALPHABET, max_size=8), max_size=5)):
        assert actual.matches(text.encode()) == (re.fullmatch(pattern, text) is not None)
    text = data.draw(st.from_regex(pattern, fullmatch=True))
    assert actual.matches(text.encode())


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 0x10FFFF), st.integers(0, 0x10FFFF), st.lists(st.integers(0, 0x10FFFF), max_size=5))
def test_ranges_of_characters_in_bytes(one, other, codes):
    low, high = sorted((one, other))
    spelled = utf8(((low, high),))
    for code in {low, high, (low + high) // 2, *codes}:
        if 0xD800 <= code <= 0xDFFF:
            continue
        text = chr(code).encode()
        hits = [
            way
            for way in spelled
            if len(way) == len(text) and all(a <= byte <= b for (a, b), byte in zip(way, text, strict=True))
        ]
        assert len(hits) == (low <= code <= high)


@pytest.mark.parametrize("name", ["d", "w", "s"])
def test_what_is_not_in_a_class_is_so_by_every_reading(name):
    inside, outside = build(parse(rf"\{name}")), build(parse(rf"\{name.upper()}"))
    inverted = build(parse(rf"[^\{name}]"))
    for code in [*range(0x300), 0x660, 0x3000, 0x4E00, 0x1D7CE, 0x10FFFF]:
        text = chr(code)
        member = [re.fullmatch(rf"\{name}", text, flag) is not None for flag in (0, re.ASCII)]
        assert inside.matches(text.encode()) == all(member)
        assert outside.matches(text.encode()) == inverted.matches(text.encode()) == (not any(member))
    both = build(parse(rf"[^\{name.upper()}]"))
    assert both.matches(b"1") == inside.matches(b"1")
    assert not both.matches("\u0660".encode())


def test_bytes_that_are_no_text_never_match():
    actual = build(parse("[^a]*"))
    for text in (b"\xff", b"\x80", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80"):
        assert not actual.matches(text)
    assert complement(ANY) == ()


SUPPORTED = ": only literals, classes, ., *, +, ?, {m,n}, |, groups and escapes are supported."


@pytest.mark.parametrize(
    ("pattern", "problem", "at"),
    [
        ("a(b", "a ( without a )", 1),
        ("ab)", "a ) without a (", 2),
        ("x[ab", "a [ without a ]", 1),
        ("*a", "a * with nothing to repeat", 0),
        ("a{2", r"a { that is not a repetition (a literal one is \{)", 1),
        ("{2}", r"a { with nothing to repeat (a literal one is \{)", 0),
        ("a{3,2}", "a repetition from 3 to 2 times", 1),
        ("a{2000}", "more than 1000 repetitions", 1),
        ("a**", "a repetition of a repetition without a group", 2),
        ("a*+", "a possessive repetition", 2),
        ("(?=a)", "a group with ? that is neither (?: ) nor (?P<name> )", 0),
        ("(?i)a", "a group with ? that is neither (?: ) nor (?P<name> )", 0),
        (r"(a)\1", r"\1", 3),
        (r"\bword", r"\b", 0),
        ("a^b", r"a ^ that is not at the start or end (a literal one is \^)", 1),
        ("(a$)", r"a $ that is not at the start or end (a literal one is \$)", 2),
        ("[z-a]", "a range that does not go from one character up to another", 2),
        (r"[\d-z]", "a range that does not go from one character up to another", 3),
        ("a\\", "a \\ at the end", 1),
        (r"\u12", r"\u without 4 hexadecimal digits", 0),
        (r"\ud800", "half of a surrogate pair", 0),
        (r"[^\x00-\ud7ff\ue000-\uffff]", "", 0),
        (r"\012", "an octal escape", 0),
        ("(" * 60 + ")" * 60, "groups nested more than 50 deep", 50),
    ],
)
def test_the_rest_is_refused(pattern, problem, at):
    if not problem:
        parse(pattern)
        return
    with pytest.raises(WonderlandError) as error:
        parse(pattern)
    assert (
        str(error.value)
        == f"The regular expression has {problem} at character {at} ({pattern[at : at + 12]!r}){SUPPORTED}"
    )


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (lambda: parse("a" * 10_001), "The regular expression has 10,001 characters: at most 10,000 are allowed."),
        (lambda: parse(b"a"), "A regular expression is a string, not a bytes."),
        (
            lambda: build(parse("((a{1000}){1000}){9}")),
            "The expression needs more than 2,000 nodes: make its repetitions smaller or nest it less.",
        ),
        (
            lambda: build(parse("(a|b)*a(a|b){17}")),
            "The expression needs more than 10,000 states: make its repetitions smaller or nest it less.",
        ),
    ],
)
def test_what_is_too_large_is_told(run, words, monkeypatch):
    monkeypatch.setattr(automaton, "MAX_NODES", 2000)
    with pytest.raises(WonderlandError) as error:
        run()
    assert str(error.value) == words
