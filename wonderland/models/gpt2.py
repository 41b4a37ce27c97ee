"""GPT-2 as a decoder: the weights of a model of the transformers library, in ours."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError
from wonderland.models.decoder import Decoder
from wonderland.nn.attention import Attention
from wonderland.nn.mlp import MLP
from wonderland.nn.norm import LayerNorm
from wonderland.nn.positions import Learned

ACTIVATIONS = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
    "silu": "silu",
}


def from_gpt2(model: nn.Module) -> Decoder:
    """The same function as a `GPT2LMHeadModel`: its logits, gradients and greedy text, in the same mode and precision.

    The weights are copied, so the two can be trained apart. Paper: Radford et al., 2019.
    """
    if not hasattr(model, "config") or not hasattr(model, "lm_head") or not hasattr(model, "transformer"):
        raise WonderlandError(f"from_gpt2 takes a GPT2LMHeadModel of transformers, not a {type(model).__name__}.")
    config: Any = model.config
    for option in ("scale_attn_by_inverse_layer_idx", "add_cross_attention"):
        if getattr(config, option, False):
            raise WonderlandError(
                f"This GPT-2 was made with {option}, which a Decoder has not: it cannot be converted."
            )
    if config.activation_function not in ACTIVATIONS:
        raise WonderlandError(
            f"This GPT-2 uses the activation {config.activation_function!r}: "
            f"those that can be converted are {', '.join(ACTIVATIONS)}."
        )
    decoder = gpt2_spec(config).build()
    own = decoder.state_dict()
    theirs = gpt2_weights(model.state_dict())
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(theirs[name])
    weight = theirs["embedding.weight"]
    return decoder.to(device=weight.device, dtype=weight.dtype).train(model.training)


def gpt2_spec(config: Any) -> Spec:
    """The description of a decoder with the sizes of a `GPT2Config`."""
    scale = None if getattr(config, "scale_attn_weights", True) else 1.0
    return Decoder.spec(
        vocab=config.vocab_size,
        dim=config.n_embd,
        depth=config.n_layer,
        mixer=Attention.spec(heads=config.n_head, bias=True, dropout=config.attn_pdrop, scale=scale),
        channel=MLP.spec(
            hidden=config.n_inner or 4 * config.n_embd,
            activation=ACTIVATIONS[config.activation_function],
            bias=True,
        ),
        position=Learned.spec(length=config.n_positions),
        norm=LayerNorm.spec(eps=config.layer_norm_epsilon),
        tie=config.tie_word_embeddings,
        dropout=config.resid_pdrop,
    )


def gpt2_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors named as GPT-2 names them, weights or their gradients, under the names of a decoder.

    GPT-2 keeps its matrices as (inputs, outputs), the transpose of a linear layer's.
    """
    found = {
        "head.weight": weights.get("lm_head.weight", weights["transformer.wte.weight"]),
        "embedding.weight": weights["transformer.wte.weight"],
        "position.weight": weights["transformer.wpe.weight"],
        "stack.norm.weight": weights["transformer.ln_f.weight"],
        "stack.norm.bias": weights["transformer.ln_f.bias"],
    }
    for name, tensor in weights.items():
        pieces = name.split(".")
        if pieces[:2] == ["transformer", "h"] and ".".join(pieces[3:-1]) in _NAMES:
            place, matrix = _NAMES[".".join(pieces[3:-1])]
            kept = tensor.t() if matrix and pieces[-1] == "weight" else tensor
            found[f"stack.blocks.{pieces[2]}.{place}.{pieces[-1]}"] = kept
    return found


_NAMES = {
    "ln_1": ("norms.0", False),
    "ln_2": ("norms.1", False),
    "attn.c_attn": ("mixer.project", True),
    "attn.c_proj": ("mixer.out", True),
    "mlp.c_fc": ("channel.inward", True),
    "mlp.c_proj": ("channel.outward", True),
}
