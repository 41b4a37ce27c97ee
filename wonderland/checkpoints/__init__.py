"""Families of published weights: a folder of the transformers library to a model with the same numbers, and back."""

from wonderland.checkpoints.families import from_gpt2, from_mamba, from_rwkv
from wonderland.checkpoints.pretrained import load_classifier, load_pretrained, save_pretrained

__all__ = ["from_gpt2", "from_mamba", "from_rwkv", "load_classifier", "load_pretrained", "save_pretrained"]
