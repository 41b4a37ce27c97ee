"""Named architectures, each a short file built from nn."""

from wonderland.models import linear
from wonderland.models.adapt import adapt, adapted, load_adapter, merge, save_adapter, train_only
from wonderland.models.convnet import ConvNet
from wonderland.models.corruption import hide_spans, hide_tokens, take_spans
from wonderland.models.costs import cost_table
from wonderland.models.decoder import Decoder
from wonderland.models.encoder import Encoder
from wonderland.models.encoder_decoder import EncoderDecoder
from wonderland.models.families import from_gpt2
from wonderland.models.heads import MaskedLM, SequenceClassifier, SpanFinder, TokenClassifier, best_spans
from wonderland.models.pretrained import load_pretrained, save_pretrained
from wonderland.models.tablenet import TableNet
from wonderland.models.tuned_start import PrefixTuned, PromptTuned
from wonderland.models.universal import approximate, approximate_with_relu

__all__ = [
    "ConvNet",
    "Decoder",
    "Encoder",
    "EncoderDecoder",
    "MaskedLM",
    "PrefixTuned",
    "PromptTuned",
    "SequenceClassifier",
    "SpanFinder",
    "TableNet",
    "TokenClassifier",
    "adapt",
    "adapted",
    "approximate",
    "approximate_with_relu",
    "best_spans",
    "cost_table",
    "from_gpt2",
    "hide_spans",
    "hide_tokens",
    "linear",
    "load_adapter",
    "load_pretrained",
    "merge",
    "save_adapter",
    "save_pretrained",
    "take_spans",
    "train_only",
]
