"""Named architectures, each a short file built from nn."""

from wonderland.models import generation, linear, words
from wonderland.models.birnn import BiRNN
from wonderland.models.convnet import ConvNet
from wonderland.models.costs import cost_table
from wonderland.models.decoder import Decoder
from wonderland.models.decomposable import DecomposableAttention
from wonderland.models.generation import generate, write
from wonderland.models.gpt2 import from_gpt2
from wonderland.models.neural_ngram import NeuralNgram
from wonderland.models.ngram import Ngram
from wonderland.models.packed import packed
from wonderland.models.rnnlm import RNNLM
from wonderland.models.seq2seq import Seq2Seq
from wonderland.models.tablenet import TableNet
from wonderland.models.textcnn import TextCNN
from wonderland.models.tree import Tree
from wonderland.models.universal import approximate, approximate_with_relu
from wonderland.models.words import FastText, GloVe, Word2Vec

__all__ = [
    "RNNLM",
    "BiRNN",
    "ConvNet",
    "Decoder",
    "DecomposableAttention",
    "FastText",
    "GloVe",
    "NeuralNgram",
    "Ngram",
    "Seq2Seq",
    "TableNet",
    "TextCNN",
    "Tree",
    "Word2Vec",
    "approximate",
    "approximate_with_relu",
    "cost_table",
    "from_gpt2",
    "generate",
    "generation",
    "linear",
    "packed",
    "words",
    "write",
]
