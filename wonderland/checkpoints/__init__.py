"""Published weights: a checkpoint folder of the transformers library to a model with equal outputs, and back."""

from wonderland.checkpoints.families import from_gpt2, from_mamba, from_rwkv
from wonderland.checkpoints.load import load_classifier, load_pretrained
from wonderland.checkpoints.outline import Outline, outline
from wonderland.checkpoints.save import save_pretrained

__all__ = [
    "Outline",
    "from_gpt2",
    "from_mamba",
    "from_rwkv",
    "load_classifier",
    "load_pretrained",
    "outline",
    "save_pretrained",
]
