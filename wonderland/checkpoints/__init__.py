"""Published weights: a checkpoint folder of the transformers library to a model with equal outputs, and back."""

from wonderland.checkpoints.efficientnet_lite import load_efficientnet_lite
from wonderland.checkpoints.families import from_gpt2, from_mamba, from_rwkv
from wonderland.checkpoints.load import load_classifier, load_pretrained
from wonderland.checkpoints.outline import Outline, outline
from wonderland.checkpoints.save import save_pretrained
from wonderland.checkpoints.torch_archive import read_torch_archive

__all__ = [
    "Outline",
    "from_gpt2",
    "from_mamba",
    "from_rwkv",
    "load_classifier",
    "load_efficientnet_lite",
    "load_pretrained",
    "outline",
    "read_torch_archive",
    "save_pretrained",
]
