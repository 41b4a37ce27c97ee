"""Vectors of words, learned from the company they keep."""

from wonderland.models.words.fasttext import FastText, subwords
from wonderland.models.words.glove import GloVe, cooccurrences
from wonderland.models.words.huffman import Huffman, huffman
from wonderland.models.words.learn import learn
from wonderland.models.words.samples import Negatives, counts, pairs, subsample, surroundings
from wonderland.models.words.word2vec import Word2Vec

__all__ = [
    "FastText",
    "GloVe",
    "Huffman",
    "Negatives",
    "Word2Vec",
    "cooccurrences",
    "counts",
    "huffman",
    "learn",
    "pairs",
    "subsample",
    "subwords",
    "surroundings",
]
