"""Named architectures, each a short file built from nn."""

from wonderland.models import generation, linear
from wonderland.models.birnn import BiRNN
from wonderland.models.convnet import ConvNet
from wonderland.models.costs import cost_table
from wonderland.models.decoder import Decoder
from wonderland.models.generation import generate, write
from wonderland.models.gpt2 import from_gpt2
from wonderland.models.packed import packed
from wonderland.models.tablenet import TableNet
from wonderland.models.textcnn import TextCNN
from wonderland.models.universal import approximate, approximate_with_relu

__all__ = [
    "BiRNN",
    "ConvNet",
    "Decoder",
    "TableNet",
    "TextCNN",
    "approximate",
    "approximate_with_relu",
    "cost_table",
    "from_gpt2",
    "generate",
    "generation",
    "linear",
    "packed",
    "write",
]
