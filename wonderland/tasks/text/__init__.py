"""How good a text is: likelihood, overlap with what people wrote, answers, and word vectors."""

from wonderland.tasks.metrics import d2l_bleu
from wonderland.tasks.text.answers import exact_match, normal, span_f1
from wonderland.tasks.text.bleu import Bleu, corpus_bleu, sentence_bleu
from wonderland.tasks.text.chrf import chrf
from wonderland.tasks.text.cut import cut
from wonderland.tasks.text.likelihood import bits_per_byte, perplexity
from wonderland.tasks.text.rouge import Rouge, rouge
from wonderland.tasks.text.words import analogy, analogy_accuracy, nearest_words, similarity, spearman

__all__ = [
    "Bleu",
    "Rouge",
    "analogy",
    "analogy_accuracy",
    "bits_per_byte",
    "chrf",
    "corpus_bleu",
    "cut",
    "d2l_bleu",
    "exact_match",
    "nearest_words",
    "normal",
    "perplexity",
    "rouge",
    "sentence_bleu",
    "similarity",
    "span_f1",
    "spearman",
]
