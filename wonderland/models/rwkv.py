"""RWKV as a decoder: the weights of a model of the transformers library, in ours."""

from typing import Any

import torch
from torch import nn

from wonderland.core import Spec, WonderlandError
from wonderland.models.decoder import Decoder
from wonderland.nn.norm import LayerNorm
from wonderland.nn.rwkv import RWKV, RWKVChannel

EPS = 1e-5  # of the last norm, whatever the configuration says of the others


def from_rwkv(model: nn.Module) -> Decoder:
    """The same function as a `RwkvForCausalLM`: its logits, in the same mode and precision.

    The norm between embedding and first block sees each token alone, so it is worked into the embedding. For evaluation
    transformers halves the stream every `rescale_every` blocks, which is the same function up to what norms add; here it
    is never halved, as in training. The weights are copied. Paper: Peng et al., 2023.
    """
    config: Any = getattr(model, "config", None)
    if getattr(config, "model_type", "") != "rwkv" or not hasattr(model, "head"):
        raise WonderlandError(f"from_rwkv takes a RwkvForCausalLM of transformers, not a {type(model).__name__}.")
    if config.tie_word_embeddings or config.layer_norm_epsilon != EPS:
        raise WonderlandError(
            "from_rwkv takes a model whose head is its own and whose norms add 1e-5: this one has "
            f"tie_word_embeddings={config.tie_word_embeddings}, layer_norm_epsilon={config.layer_norm_epsilon}."
        )
    theirs: Any = model
    decoder, inner = rwkv_spec(config).build(), theirs.rwkv
    weight = inner.embeddings.weight
    decoder.to(device=weight.device, dtype=weight.dtype)
    with torch.no_grad():
        decoder.embedding.weight.copy_(inner.blocks[0].pre_ln(weight))
        decoder.head.weight.copy_(theirs.head.weight)
        for index, (own, block) in enumerate(zip(decoder.stack.blocks, inner.blocks, strict=True)):
            for norm, given in zip(own.norms, (block.ln1, block.ln2), strict=True):
                norm.load_state_dict(given.state_dict())
            own.mixer.load_published(block.attention.state_dict())
            own.channel.load_published(block.feed_forward.state_dict())
            if inner.layers_are_rescaled and config.rescale_every > 0:
                factor = 2 ** (index // config.rescale_every)
                own.mixer.output.weight.mul_(factor)
                own.channel.value.weight.mul_(factor)
        decoder.stack.norm.load_state_dict(inner.ln_out.state_dict())
    return decoder.train(model.training)


def rwkv_spec(config: Any) -> Spec:
    """The description of a decoder with the sizes of a `RwkvConfig`."""
    return Decoder.spec(
        vocab=config.vocab_size,
        dim=config.hidden_size,
        depth=config.num_hidden_layers,
        mixer=RWKV.spec(inner=config.attention_hidden_size),
        channel=RWKVChannel.spec(hidden=config.intermediate_size),
        norm=LayerNorm.spec(eps=EPS),
        tie=False,
    )
