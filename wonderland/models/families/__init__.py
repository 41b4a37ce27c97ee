"""Families of published models: one file each, from a configuration to a spec, and the names of weights both ways."""

from wonderland.models.families.bert import BERT
from wonderland.models.families.distilbert import DISTILBERT
from wonderland.models.families.family import Family
from wonderland.models.families.gpt2 import GPT2
from wonderland.models.families.llama import LLAMA
from wonderland.models.families.mamba import MAMBA
from wonderland.models.families.memory import from_gpt2, from_mamba, from_rwkv
from wonderland.models.families.rwkv import RWKV_FAMILY
from wonderland.models.families.t5 import T5

FAMILIES: dict[str, Family] = {one.kind: one for one in (GPT2, LLAMA, BERT, DISTILBERT, T5, MAMBA, RWKV_FAMILY)}

__all__ = ["FAMILIES", "Family", "from_gpt2", "from_mamba", "from_rwkv"]
