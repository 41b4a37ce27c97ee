"""Metrics of text: likelihood, overlap with references, answers to questions, and word vectors."""

from wonderland.tasks.metrics import d2l_bleu
from wonderland.tasks.text.answers import exact_match, normalize_answer, span_f1
from wonderland.tasks.text.bleu import Bleu, corpus_bleu, sentence_bleu
from wonderland.tasks.text.chrf import chrf
from wonderland.tasks.text.likelihood import bits_per_byte, perplexity
from wonderland.tasks.text.mt_tokenize import mt_tokenize
from wonderland.tasks.text.rouge import Rouge, rouge
from wonderland.tasks.text.word_vectors import analogy, analogy_accuracy, nearest_words, similarity, spearman

__all__ = [
    "Bleu",
    "Rouge",
    "analogy",
    "analogy_accuracy",
    "bits_per_byte",
    "chrf",
    "corpus_bleu",
    "d2l_bleu",
    "exact_match",
    "mt_tokenize",
    "nearest_words",
    "normalize_answer",
    "perplexity",
    "rouge",
    "sentence_bleu",
    "similarity",
    "span_f1",
    "spearman",
]
