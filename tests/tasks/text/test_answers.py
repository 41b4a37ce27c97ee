"""Question answering as in SQuAD, word vectors, and likelihood."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from wonderland.core import WonderlandError
from wonderland.tasks import metrics, text

TEXTS = st.one_of(
    st.lists(st.sampled_from(["The", "a", "cat", "Cat!", "an", "(the)", "42", "—"]), max_size=6).map(" ".join),
    st.text("aAn the.,’'", max_size=12),
)


@pytest.mark.parametrize(
    ("answer", "references", "exact", "f1"),
    [
        ("Denver Broncos", ["Denver Broncos", "The Broncos"], 1, 1),
        ("the Denver Broncos!", ["denver   broncos"], 1, 1),
        ("Broncos", ["Denver Broncos"], 0, 2 / 3),
        ("a an the", [""], 1, 1),
        ("", ["something"], 0, 0),
        ("theatre", ["atre"], 0, 0),
        ("cat cat dog", ["cat dog dog"], 0, 2 / 3),
        ("it's", ["its"], 1, 1),
        ("in 1998", ["1998", "the year 1998 itself"], 0, 2 / 3),
    ],
)
def test_scores_equal_those_of_squad(answer, references, exact, f1):
    assert text.exact_match(answer, references) == exact
    assert text.span_f1(answer, references) == pytest.approx(f1, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(TEXTS, TEXTS)
def test_f1_is_symmetric(first, second):
    assert text.span_f1(first, second) == pytest.approx(text.span_f1(second, first))
    assert text.exact_match(first, second) <= text.span_f1(first, second) <= 1
    assert text.normalize_answer(text.normalize_answer(first)) == text.normalize_answer(first)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.floats(-9, 9)), min_size=2, max_size=12))
def test_spearman_equals_scipy(rows):
    a, b = (np.array(column, float) for column in zip(*rows, strict=True))
    if len(set(a)) > 1 and len(set(b)) > 1:
        assert abs(text.spearman(a, b) - spearmanr(a, b).statistic) < 1e-12


def test_analogies_leave_out_the_words_of_the_question():
    vectors = np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 1.0], [4.0, 0.0, 1.0], [4.0, 1.0, 1.0], [-1.0, 0.2, 0.0]])
    assert [row for row, _ in text.analogy(vectors, 0, 1, 2, 2)] == [3, 4]
    # The nearest of all is a word of the question.
    assert text.nearest_words(vectors, vectors[1] - vectors[0] + vectors[2], 5)[1][0] == 2
    assert text.nearest_words(np.zeros((2, 3)), np.ones(3)) == [(0, 0.0), (1, 0.0)]


def test_likelihood():
    assert text.perplexity(0) == 1
    assert text.perplexity(1e9) == math.inf
    # Four bytes a token: two bits for each byte are eight for each token.
    assert text.bits_per_byte(8 * math.log(2), tokens=25, size=100) == 2


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: text.corpus_bleu([], []), "corpus_bleu got no texts."),
        (
            lambda: text.corpus_bleu(["a"], [[]]),
            "corpus_bleu got no reference for text 0: remove the text, or give at least one.",
        ),
        (
            lambda: text.corpus_bleu(["a"], ["a", "b"]),
            "corpus_bleu got 1 texts and references for 2: give references for each text.",
        ),
        (
            lambda: text.corpus_bleu("a", ["a"]),
            "corpus_bleu takes a list of texts, not a str: write [text] for a single one.",
        ),
        (lambda: text.chrf(["a"], [[3]]), "chrf compares strings, and text 0 is a int."),
        (
            lambda: text.corpus_bleu(["a"], ["a"], tokenize="13b"),
            "There is no tokenization '13b'. Did you mean '13a'? The choices are 13a, characters, spaces.",
        ),
        (
            lambda: text.sentence_bleu("a", "a", smoothing="add"),
            "There is no smoothing 'add'. Did you mean 'add-k'? The choices are exp, floor, add-k, none.",
        ),
        (lambda: text.corpus_bleu(["a"], ["a"], longest=0), "corpus_bleu counts n-grams of at least one word, not 0."),
        (
            lambda: text.chrf(["a"], ["a"], letters=0),
            "chrf takes letters from 1, words from 0 and a beta above 0, not 0, 0 and 2.",
        ),
        (lambda: text.rouge("a", "a", ["3L"]), "rouge has the kinds '1' to '9' and 'L', not '3L'."),
        (
            lambda: text.rouge("a", []),
            "rouge got no reference for text 0: remove the text, or give at least one.",
        ),
        (
            lambda: text.exact_match("a", []),
            "exact_match got no reference for text 0: remove the text, or give at least one.",
        ),
        (lambda: text.perplexity(-1), "perplexity takes a loss of at least 0 nats per token, not -1."),
        (lambda: text.perplexity(math.nan), "perplexity takes a loss of at least 0 nats per token, not nan."),
        (
            lambda: text.bits_per_byte(1.0, tokens=0, size=5),
            "bits_per_byte takes a text of at least one token and one byte, not 0 and 5.",
        ),
        (
            lambda: text.spearman([1, 1], [1, 2]),
            "spearman is not defined where all values of one list are equal.",
        ),
        (
            lambda: text.spearman([1], [1]),
            "spearman takes two lists of the same length, at least two numbers each, not (1,) and (1,).",
        ),
        (lambda: text.analogy(np.eye(3), 0, 1, 3), "Word 3 has no vector: words are 0 to 2."),
        (
            lambda: text.analogy_accuracy(np.eye(3), [[0, 1, 2]]),
            "analogy_accuracy takes questions as rows of four words, (m, 4), not of shape (1, 3).",
        ),
        (
            lambda: text.similarity(np.eye(3), [[0, 1]], [1, 2]),
            "similarity takes pairs of words (m, 2) and a judgement for each, not (1, 2) and 2.",
        ),
        (
            lambda: text.nearest_words(np.eye(3), np.ones(2)),
            "nearest_words compares vectors of 3 numbers, not a query of shape (2,).",
        ),
        (lambda: metrics.bleu([], ["a"]), "bleu got an empty reference."),
        (lambda: metrics.d2l_bleu([], ["a"]), "d2l_bleu got an empty reference."),
    ],
)
def test_error_messages(call, sentence):
    with pytest.raises(WonderlandError) as caught:
        call()
    assert str(caught.value) == sentence
