"""Word vectors: word2vec, GloVe and fastText, and the functions that make their training examples."""

from wonderland.models.words.fasttext import FastText, subwords
from wonderland.models.words.glove import GloVe, cooccurrences
from wonderland.models.words.huffman import Huffman, huffman
from wonderland.models.words.learn import learn
from wonderland.models.words.samples import NegativeSampler, context_windows, counts, pairs, subsample
from wonderland.models.words.word2vec import Word2Vec

__all__ = [
    "FastText",
    "GloVe",
    "Huffman",
    "NegativeSampler",
    "Word2Vec",
    "context_windows",
    "cooccurrences",
    "counts",
    "huffman",
    "learn",
    "pairs",
    "subsample",
    "subwords",
]
