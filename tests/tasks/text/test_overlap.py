"""BLEU, chrF and ROUGE equal sacrebleu and rouge-score on random text."""

import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from wonderland.tasks import text

WORDS = [
    "the",
    "cat",
    "The",
    "sat",
    "1,000.5",
    "3-4",
    "it's",
    "end.",
    "(hi)",
    "&amp;",
    "naïve",
    "a",
    ".",
    "<skipped>",
    "x",
    "ß",
]
TEXTS = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join),
    st.text(st.sampled_from("ab .,-19'\n&\"{/\t\u00a0é"), max_size=30),
)
CASES = settings(max_examples=50, deadline=None)


@st.composite
def corpora(draw):
    """Texts, and one to three references for each."""
    count, several = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    return (
        draw(st.lists(TEXTS, min_size=count, max_size=count)),
        [draw(st.lists(TEXTS, min_size=several, max_size=several)) for _ in range(count)],
    )


@CASES
@given(corpora(), st.sampled_from(["exp", "floor", "add-k", "none"]), st.booleans(), st.integers(1, 5))
def test_bleu_of_a_corpus(corpus, smoothing, lowercase, longest):
    texts, references = corpus
    peer = sacrebleu.BLEU(smooth_method=smoothing, lowercase=lowercase, max_ngram_order=longest)
    theirs = peer.corpus_score(texts, [list(column) for column in zip(*references, strict=True)])
    ours = text.corpus_bleu(texts, references, smoothing=smoothing, lowercase=lowercase, longest=longest)
    assert abs(ours.score - theirs.score) < 1e-9
    assert max(abs(a - b) for a, b in zip(ours.precisions, theirs.precisions, strict=True)) < 1e-9
    assert (ours.length, ours.reference_length) == (theirs.sys_len, theirs.ref_len)
    assert abs(ours.brevity_penalty - theirs.bp) < 1e-12


@CASES
@given(
    TEXTS,
    st.lists(TEXTS, min_size=1, max_size=3),
    st.sampled_from([("13a", "13a"), ("char", "characters"), ("none", "spaces")]),
)
def test_bleu_of_a_sentence(sentence, references, tokenizations):
    theirs = sacrebleu.sentence_bleu(sentence, references, tokenize=tokenizations[0])
    assert abs(text.sentence_bleu(sentence, references, tokenize=tokenizations[1]).score - theirs.score) < 1e-9


@CASES
@given(corpora(), st.sampled_from([0, 2]), st.booleans(), st.sampled_from([1, 2, 3]))
def test_chrf(corpus, words, lowercase, beta):
    texts, references = corpus
    peer = sacrebleu.CHRF(word_order=words, lowercase=lowercase, beta=beta)
    theirs = peer.corpus_score(texts, [list(column) for column in zip(*references, strict=True)])
    assert abs(text.chrf(texts, references, words=words, lowercase=lowercase, beta=beta) - theirs.score) < 1e-9


@CASES
@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
def test_rouge(summary, references):
    names = {"1": "rouge1", "2": "rouge2", "L": "rougeL"}
    theirs = RougeScorer(list(names.values())).score_multi(references, summary)
    for kind, scores in text.rouge(summary, references).items():
        assert max(abs(a - b) for a, b in zip(scores, theirs[names[kind]], strict=True)) < 1e-12


def test_rouge_l_of_a_long_text():
    one, other = "a b c d e f g " * 40, "b d a c g e f " * 40
    theirs = RougeScorer(["rougeL"]).score(other, one)["rougeL"]
    assert abs(text.rouge(one, other)["L"].f1 - theirs.fmeasure) < 1e-12


def test_d2l_bleu_is_as_the_book_prints_it():
    assert round(text.d2l_bleu(["il", "est", "calme", "."], ["il", "est", "mouillé", "."], 2), 3) == 0.658
    assert round(text.d2l_bleu(["je", "gagne", "."], ["je", "gagne", "!"], 2), 4) == 0.6866
    assert round(text.d2l_bleu(["il", "est", "calme", "."], ["il", "est", "mouillé", "."], 2), 4) == 0.6580
    assert text.d2l_bleu(["va", "!"], ["va", "!"], 2) == 1.0
