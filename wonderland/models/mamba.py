"""Mamba as a decoder: the weights of a model of the transformers library, in ours."""

from typing import Any

import torch
from torch import nn

from wonderland.core import Spec, WonderlandError
from wonderland.models.decoder import Decoder
from wonderland.nn.mamba import Mamba
from wonderland.nn.norm import RMSNorm


def from_mamba(model: nn.Module) -> Decoder:
    """The same function as a `MambaForCausalLM`: its logits and gradients, in the same mode and precision.

    The weights are copied, so the two can be trained apart. Paper: Gu and Dao, 2023.
    """
    config: Any = getattr(model, "config", None)
    if getattr(config, "model_type", "") != "mamba" or not hasattr(model, "lm_head"):
        raise WonderlandError(f"from_mamba takes a MambaForCausalLM of transformers, not a {type(model).__name__}.")
    if config.hidden_act != "silu":
        raise WonderlandError(f"This Mamba uses the activation {config.hidden_act!r}: only 'silu' can be converted.")
    theirs: Any = model
    decoder = mamba_spec(config).build()
    weight = theirs.backbone.embeddings.weight
    with torch.no_grad():
        decoder.embedding.weight.copy_(weight)
        if decoder.head is not None:
            decoder.head.weight.copy_(theirs.lm_head.weight)
        for own, layer in zip(decoder.stack.blocks, theirs.backbone.layers, strict=True):
            own.norms[0].weight.copy_(layer.norm.weight)
            own.mixer.load_published(layer.mixer.state_dict())
        decoder.stack.norm.weight.copy_(theirs.backbone.norm_f.weight)
    return decoder.to(device=weight.device, dtype=weight.dtype).train(model.training)


def mamba_spec(config: Any) -> Spec:
    """The description of a decoder with the sizes of a `MambaConfig`."""
    if config.intermediate_size % config.hidden_size:
        raise WonderlandError(
            f"This Mamba widens {config.hidden_size} features to {config.intermediate_size}: "
            "only whole multiples can be converted."
        )
    mixer = Mamba.spec(
        state_size=config.state_size,
        expand=config.intermediate_size // config.hidden_size,
        width=config.conv_kernel,
        rank=config.time_step_rank,
        bias=config.use_bias,
        conv_bias=config.use_conv_bias,
    )
    return Decoder.spec(
        vocab=config.vocab_size,
        dim=config.hidden_size,
        depth=config.num_hidden_layers,
        mixer=mixer,
        norm=RMSNorm.spec(eps=config.layer_norm_epsilon),
        tie=bool(config.tie_word_embeddings),
    )
