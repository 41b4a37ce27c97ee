"""Named architectures, each a short file built from nn."""

from wonderland.models import generation, linear, words
from wonderland.models.adapt import adapt, adapted, load_adapter, merge, save_adapter, train_only
from wonderland.models.birnn import BiRNN
from wonderland.models.convnet import ConvNet
from wonderland.models.corruption import hide_spans, hide_tokens, take_spans
from wonderland.models.costs import cost_table
from wonderland.models.decoder import Decoder
from wonderland.models.decomposable import DecomposableAttention
from wonderland.models.encoder import Encoder
from wonderland.models.encoder_decoder import EncoderDecoder
from wonderland.models.families import from_gpt2, from_mamba, from_rwkv
from wonderland.models.generation import beam_search, best_of, generate, speculate, write
from wonderland.models.heads import MaskedLM, SequenceClassifier, SpanFinder, TokenClassifier, best_spans
from wonderland.models.neural_ngram import NeuralNgram
from wonderland.models.ngram import Ngram
from wonderland.models.packed import packed
from wonderland.models.pretrained import load_classifier, load_pretrained, save_pretrained
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
    "BiRNN",
    "ConvNet",
    "Decoder",
    "DecomposableAttention",
    "Encoder",
    "EncoderDecoder",
    "FastText",
    "GloVe",
    "MaskedLM",
    "NeuralNgram",
    "Ngram",
    "PrefixTuned",
    "PromptTuned",
    "Seq2Seq",
    "SequenceClassifier",
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
    "beam_search",
    "best_of",
    "best_spans",
    "cost_table",
    "from_gpt2",
    "from_mamba",
    "from_rwkv",
    "generate",
    "generation",
    "hide_spans",
    "hide_tokens",
    "linear",
    "load_adapter",
    "load_classifier",
    "load_pretrained",
    "merge",
    "packed",
    "save_adapter",
    "save_pretrained",
    "speculate",
    "take_spans",
    "train_only",
    "words",
    "write",
]
