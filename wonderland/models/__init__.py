"""Named architectures, each a short file built from nn."""

from wonderland.models import linear
from wonderland.models.convnet import ConvNet
from wonderland.models.corruption import hide_spans, hide_tokens, take_spans
from wonderland.models.costs import cost_table
from wonderland.models.decoder import Decoder
from wonderland.models.encoder import Encoder
from wonderland.models.encoder_decoder import EncoderDecoder
from wonderland.models.gpt2 import from_gpt2
from wonderland.models.heads import MaskedLM, SequenceClassifier, SpanFinder, TokenClassifier, best_spans
from wonderland.models.mamba import from_mamba
from wonderland.models.rwkv import from_rwkv
from wonderland.models.tablenet import TableNet
from wonderland.models.universal import approximate, approximate_with_relu

__all__ = [
    "ConvNet",
    "Decoder",
    "Encoder",
    "EncoderDecoder",
    "MaskedLM",
    "SequenceClassifier",
    "SpanFinder",
    "TableNet",
    "TokenClassifier",
    "approximate",
    "approximate_with_relu",
    "best_spans",
    "cost_table",
    "from_gpt2",
    "hide_spans",
    "hide_tokens",
    "from_mamba",
    "from_rwkv",
    "linear",
    "take_spans",
]
