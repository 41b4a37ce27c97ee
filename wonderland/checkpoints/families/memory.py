"""Models of the transformers library that are in memory: the same function as a decoder of ours, weights copied."""

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
    """The same function as a `GPT2LMHeadModel` in memory: its logits, gradients and greedy text, in its mode and precision.

    The weights are copied, so the two can be trained apart; `load_pretrained` reads folders. Paper: Radford et al., 2019.
    """
    return _taken_over(model, GPT2, "from_gpt2", "GPT2LMHeadModel")


def from_mamba(model: nn.Module) -> Decoder:
    """The same function as a `MambaForCausalLM` in memory: its logits and gradients, in its mode and precision.

    The weights are copied, so the two can be trained apart; `load_pretrained` reads folders. Paper: Gu and Dao, 2023.
    """
    return _taken_over(model, MAMBA, "from_mamba", "MambaForCausalLM")


def from_rwkv(model: nn.Module) -> Decoder:
    """The same function as a `RwkvForCausalLM` in memory, as it answers in evaluation: its logits, in its precision.

    For evaluation transformers halves some weights of the later layers, and the stream with them; here they are as trained.
    The weights are copied, so the two can be trained apart; `load_pretrained` reads folders. Paper: Peng et al., 2023.
    """
    decoder = _taken_over(model, RWKV_FAMILY, "from_rwkv", "RwkvForCausalLM")
    theirs: Any = model
    every = theirs.config.rescale_every
    if theirs.rwkv.layers_are_rescaled and every > 0:
        with torch.no_grad():
            for index, block in enumerate(decoder.stack.blocks):
                block.mixer.output.weight.mul_(2 ** (index // every))
                block.channel.value.weight.mul_(2 ** (index // every))
    return decoder


def published_weights(weights: Mapping[str, Tensor], decoder: Decoder, family: Family) -> dict[str, Tensor]:
    """Tensors named as a family names them, weights or their gradients, under the names of a decoder."""
    found, own = {}, decoder.state_dict()
    for ours, piece in family.pieces(decoder, "words").items():
        if piece is not None:
            found[ours] = piece.to_ours(weights[piece.names[0]], tuple(own[ours].shape))
    return found


def _taken_over(model: nn.Module, family: Family, function: str, takes: str) -> Decoder:
    config: Any = getattr(model, "config", None)
    if getattr(config, "model_type", "") != family.kind or model.get_output_embeddings() is None:  # pyright: ignore
        raise WonderlandError(f"{function} takes a {takes} of transformers, not a {type(model).__name__}.")
    options = Options(config.to_dict(), family.title)
    decoder = family.describe(options, "words", _InMemory()).build()
    options.finish()
    theirs = published_weights(model.state_dict(), decoder, family)
    weight = theirs["embedding.weight"]
    decoder.to(device=weight.device, dtype=weight.dtype)
    with torch.no_grad():
        for name, tensor in decoder.state_dict().items():
            if name in theirs:
                tensor.copy_(theirs[name])
    return decoder.train(model.training)


class _InMemory:
    """A look into a file that is none: a model in memory is tied as its configuration says."""

    def tied(self, said: bool, head: str, table: str) -> bool:
        return said
