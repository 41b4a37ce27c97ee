"""Named architectures, each a short file built from nn."""

from wonderland.models import generative, words
from wonderland.models.adapt import adapt, adapted, merge, train_only
from wonderland.models.adapter_files import load_adapter, save_adapter
from wonderland.models.birnn import BiRNN
from wonderland.models.convnet import ConvNet
from wonderland.models.corruption import mask_spans, mask_tokens, replace_spans
from wonderland.models.costs import cost_table
from wonderland.models.decoder import Decoder
from wonderland.models.decomposable import DecomposableAttention
from wonderland.models.encoder import Encoder
from wonderland.models.encoder_decoder import EncoderDecoder
from wonderland.models.heads import MaskedLM, SequenceClassifier, SpanFinder, TokenClassifier, best_spans
from wonderland.models.neural_ngram import NeuralNgram
from wonderland.models.ngram import Ngram
from wonderland.models.packed import packed
from wonderland.models.prompt_tuning import PrefixTuned, PromptTuned
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
    "implicit_als",
    "item_neighbours",
    "load_adapter",
    "mask_spans",
    "mask_tokens",
    "merge",
    "packed",
    "rating_als",
    "replace_spans",
    "save_adapter",
    "train_only",
    "words",
]
