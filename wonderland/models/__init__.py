"""Named architectures, each a short file built from nn."""

from wonderland.models import generative, words
from wonderland.models.adapt import adapt, adapted, load_adapter, merge, save_adapter, train_only
from wonderland.models.birnn import BiRNN
from wonderland.models.convnet import ConvNet
from wonderland.models.corruption import hide_spans, hide_tokens, take_spans
from wonderland.models.costs import cost_table
from wonderland.models.decoder import Decoder
from wonderland.models.decomposable import DecomposableAttention
from wonderland.models.encoder import Encoder
from wonderland.models.encoder_decoder import EncoderDecoder
from wonderland.models.heads import MaskedLM, SequenceClassifier, SpanFinder, TokenClassifier, best_spans
from wonderland.models.neural_ngram import NeuralNgram
from wonderland.models.ngram import Ngram
from wonderland.models.packed import packed
from wonderland.models.recommend import (
    AutoRec,
    Caser,
    DeepFM,
    FactorisationMachine,
    MatrixFactorisation,
    NeuMF,
    Recommender,
    SequenceRecommender,
    implicit_als,
    item_neighbours,
    rating_als,
)
from wonderland.models.rnnlm import RNNLM
from wonderland.models.seq2seq import Seq2Seq
from wonderland.models.tablenet import TableNet
from wonderland.models.textcnn import TextCNN
from wonderland.models.tree import Tree
from wonderland.models.tuned_start import PrefixTuned, PromptTuned
from wonderland.models.universal import approximate, approximate_with_relu
from wonderland.models.words import FastText, GloVe, Word2Vec

__all__ = [
    "RNNLM",
    "AutoRec",
    "BiRNN",
    "Caser",
    "ConvNet",
    "Decoder",
    "DecomposableAttention",
    "DeepFM",
    "Encoder",
    "EncoderDecoder",
    "FactorisationMachine",
    "FastText",
    "GloVe",
    "MaskedLM",
    "MatrixFactorisation",
    "NeuMF",
    "NeuralNgram",
    "Ngram",
    "PrefixTuned",
    "PromptTuned",
    "Recommender",
    "Seq2Seq",
    "SequenceClassifier",
    "SequenceRecommender",
    "SpanFinder",
    "TableNet",
    "TextCNN",
    "TokenClassifier",
    "Tree",
    "Word2Vec",
    "adapt",
    "adapted",
    "approximate",
    "approximate_with_relu",
    "best_spans",
    "cost_table",
    "generative",
    "hide_spans",
    "hide_tokens",
    "implicit_als",
    "item_neighbours",
    "load_adapter",
    "merge",
    "packed",
    "rating_als",
    "save_adapter",
    "take_spans",
    "train_only",
    "words",
]
