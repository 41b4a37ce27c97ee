"""Families of published models, one file each: configuration to spec and back, and the published names of weights."""

from wonderland.checkpoints.families.bert import BERT
from wonderland.checkpoints.families.convnext import CONVNEXT
from wonderland.checkpoints.families.dinov2 import DINOV2, DINOV2_REGISTERS
from wonderland.checkpoints.families.distilbert import DISTILBERT
from wonderland.checkpoints.families.electra import ELECTRA
from wonderland.checkpoints.families.family import Family
from wonderland.checkpoints.families.gpt2 import GPT2
from wonderland.checkpoints.families.in_memory import from_gpt2, from_mamba, from_rwkv
from wonderland.checkpoints.families.llama import GEMMA, GEMMA2, LLAMA, MISTRAL, OLMO2, PHI3, QWEN2, QWEN3, SMOLLM3
from wonderland.checkpoints.families.mamba import MAMBA
from wonderland.checkpoints.families.opt import OPT
from wonderland.checkpoints.families.parallel import GPT_NEOX, PHI
from wonderland.checkpoints.families.regnet import REGNET
from wonderland.checkpoints.families.resnet import RESNET
from wonderland.checkpoints.families.roberta import ROBERTA, XLM_ROBERTA
from wonderland.checkpoints.families.rwkv import RWKV_FAMILY
from wonderland.checkpoints.families.t5 import T5
from wonderland.checkpoints.families.vit import VIT

FAMILIES: dict[str, Family] = {
    family.model_type: family
    for family in (
        GPT2,
        LLAMA,
        BERT,
        DISTILBERT,
        T5,
        MAMBA,
        RWKV_FAMILY,
        ROBERTA,
        XLM_ROBERTA,
        MISTRAL,
        QWEN2,
        QWEN3,
        PHI3,
        SMOLLM3,
        OPT,
        GPT_NEOX,
        PHI,
        ELECTRA,
        OLMO2,
        GEMMA,
        GEMMA2,
        RESNET,
        REGNET,
        CONVNEXT,
        VIT,
        DINOV2,
        DINOV2_REGISTERS,
    )
}

__all__ = ["FAMILIES", "Family", "from_gpt2", "from_mamba", "from_rwkv"]
