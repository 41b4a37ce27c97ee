"""Models of the transformers library that are already in memory, converted to decoders with copied weights."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.checkpoints.families.family import Family
from wonderland.checkpoints.families.gpt2 import GPT2
from wonderland.checkpoints.families.mamba import MAMBA
from wonderland.checkpoints.families.options import Options
from wonderland.checkpoints.families.rwkv import RWKV_FAMILY
from wonderland.core import WonderlandError
from wonderland.models.decoder import Decoder


def from_gpt2(model: nn.Module) -> Decoder:
    """A `GPT2LMHeadModel` in memory as a `Decoder` with equal logits, gradients and greedy text, in its mode and precision.

    The weights are copied, so the two can be trained separately; `load_pretrained` reads folders. Paper: Radford et al.,
    2019.
    """
    return _convert(model, GPT2, "from_gpt2", "GPT2LMHeadModel")


def from_mamba(model: nn.Module) -> Decoder:
    """A `MambaForCausalLM` in memory as a `Decoder` with equal logits and gradients, in its mode and precision.

    The weights are copied, so the two can be trained separately; `load_pretrained` reads folders. Paper: Gu and Dao, 2023.
    """
    return _convert(model, MAMBA, "from_mamba", "MambaForCausalLM")


def from_rwkv(model: nn.Module) -> Decoder:
    """A `RwkvForCausalLM` in memory as a `Decoder` with the logits that it gives in evaluation mode, in its precision.

    In evaluation mode transformers divides some weights of later layers, and the residual stream, by powers of two; here
    the weights are those that were trained. They are copied, so the two can be trained separately; `load_pretrained` reads
    folders. Paper: Peng et al., 2023.
    """
    decoder = _convert(model, RWKV_FAMILY, "from_rwkv", "RwkvForCausalLM")
    theirs: Any = model
    every = theirs.config.rescale_every
    if theirs.rwkv.layers_are_rescaled and every > 0:
        with torch.no_grad():
            for index, block in enumerate(decoder.stack.blocks):
                block.mixer.output.weight.mul_(2 ** (index // every))
                block.channel.value.weight.mul_(2 ** (index // every))
    return decoder


def convert_weights(weights: Mapping[str, Tensor], decoder: Decoder, family: Family) -> dict[str, Tensor]:
    """Published weights, or their gradients, under the names and in the shapes of a decoder."""
    converted, state = {}, decoder.state_dict()
    for ours, conversion in family.conversions(decoder, "lm").items():
        if conversion is not None:
            converted[ours] = conversion.from_published(weights[conversion.names[0]], tuple(state[ours].shape))
    return converted


def _convert(model: nn.Module, family: Family, function: str, architecture: str) -> Decoder:
    config: Any = getattr(model, "config", None)
    if getattr(config, "model_type", "") != family.model_type or model.get_output_embeddings() is None:  # pyright: ignore
        raise WonderlandError(f"{function} takes a {architecture} of transformers, not a {type(model).__name__}.")
    options = Options(config.to_dict(), family.title)
    decoder = family.to_spec(options, "lm", _AsConfigured()).build()
    options.check_all_read()
    weights = convert_weights(model.state_dict(), decoder, family)
    embedding = weights["embedding.weight"]
    decoder.to(device=embedding.device, dtype=embedding.dtype)
    with torch.no_grad():
        for name, tensor in decoder.state_dict().items():
            if name in weights:
                tensor.copy_(weights[name])
    return decoder.train(model.training)


class _AsConfigured:
    """A view of weights that are not in a file: a model in memory is tied as its configuration says."""

    def has(self, name: str) -> bool:
        return True

    def tied(self, configured: bool, head: str, embedding: str) -> bool:
        return configured

    def equal(self, copy: str, original: str) -> bool:
        return True
