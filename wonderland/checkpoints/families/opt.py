"""OPT: a decoder with learned positions whose table begins at its third row, and ReLU. Paper: Zhang et al., 2022."""

from typing import Any

from wonderland.checkpoints.families.family import Family, Published, WeightsView, labels_config, trunk_of
from wonderland.checkpoints.families.gated_decoder import with_head
from wonderland.checkpoints.families.options import Options, activation_name
from wonderland.core import Spec
from wonderland.models.decoder import Decoder
from wonderland.models.heads import SequenceClassifier
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.norms.norm import LayerNorm
from wonderland.nn.positions import Learned

OFFSET = 2


def _to_spec(options: Options, head: str, weights: WeightsView) -> Spec:
    dim, heads = options.integer("hidden_size", 768), options.integer("num_attention_heads", 12)
    if dim % heads:
        raise options.error("num_attention_heads", heads, f"a number of heads that divides hidden_size = {dim}")
    options.require("word_embed_proj_dim", dim, None)
    options.require("_remove_final_layer_norm", False, None)
    options.require("layer_norm_elementwise_affine", True)
    options.ignore("activation_dropout", "layerdrop", "init_std")
    bias = options.boolean("enable_bias", True)
    tie = options.boolean("tie_word_embeddings", True)
    trunk = Decoder.spec(
        vocab=options.integer("vocab_size", 50272),
        dim=dim,
        depth=options.depth("num_hidden_layers", 12),
        mixer=Attention.spec(heads=heads, bias=bias, dropout=options.probability("attention_dropout", 0.0)),
        channel=MLP.spec(
            hidden=options.integer("ffn_dim", 3072),
            activation=options.activation("activation_function", "relu"),
            bias=bias,
        ),
        position=Learned.spec(length=options.integer("max_position_embeddings", 2048), offset=OFFSET),
        placement="pre" if options.boolean("do_layer_norm_before", True) else "post",
        norm=LayerNorm.spec(eps=1e-5),
        tie=head != "lm" or weights.tied(tie, "lm_head.weight", "model.decoder.embed_tokens.weight"),
        dropout=options.probability("dropout", 0.1),
        embed_dropout=0.0,
    )
    return with_head(trunk, head, options)


def _trunk_names(trunk: Any) -> dict[str, Published | None]:
    block, theirs = "stack.blocks.#.", "decoder.layers.#."
    return {
        "embedding.weight": Published("decoder.embed_tokens.weight"),
        "position.weight": Published("decoder.embed_positions.weight"),
        "stack.norm.*": Published("decoder.final_layer_norm.*"),
        f"{block}norms.0.*": Published(f"{theirs}self_attn_layer_norm.*"),
        f"{block}norms.1.*": Published(f"{theirs}final_layer_norm.*"),
        f"{block}mixer.project.*": Published([f"{theirs}self_attn.{part}_proj.*" for part in "qkv"]),
        f"{block}mixer.out.*": Published(f"{theirs}self_attn.out_proj.*"),
        f"{block}channel.inward.*": Published(f"{theirs}fc1.*"),
        f"{block}channel.outward.*": Published(f"{theirs}fc2.*"),
    }


def _head_names(model: Any, head: str) -> dict[str, Published]:
    return {"head.*": Published({"sequence": "score.*", "spans": "qa_outputs.*"}.get(head, "lm_head.*"))}


def _to_config(model: Any) -> dict[str, Any] | None:
    trunk = trunk_of(model)
    if not isinstance(trunk, Decoder) or getattr(trunk.position, "offset", 0) != OFFSET:
        return None
    block: Any = trunk.stack.blocks[0]
    mixer, channel = block.mixer, getattr(block, "channel", None)
    if not isinstance(mixer, Attention) or not isinstance(channel, MLP) or not isinstance(trunk.position, Learned):
        return None
    config = {
        "model_type": "opt",
        "vocab_size": trunk.vocab,
        "hidden_size": trunk.dim,
        "num_hidden_layers": len(trunk.stack.blocks),
        "num_attention_heads": mixer.heads,
        "ffn_dim": channel.inward.out_features,
        "max_position_embeddings": trunk.position.length,
        "activation_function": activation_name(channel.activation),
        "do_layer_norm_before": block.placement == "pre",
        "enable_bias": mixer.out.bias is not None,
        "attention_dropout": mixer.dropout,
        "dropout": block.dropout,
        "tie_word_embeddings": trunk.head is None,
        "pad_token_id": getattr(model, "pad", None),
        "bos_token_id": None,
        "eos_token_id": None,
    }
    return config | (labels_config(model) if isinstance(model, SequenceClassifier) else {})


OPT = Family(
    model_type="opt",
    title="OPT",
    heads={
        "OPTForCausalLM": "lm",
        "OPTForSequenceClassification": "sequence",
        "OPTForQuestionAnswering": "spans",
        "OPTModel": "trunk",
    },
    prefix="model.",
    to_spec=_to_spec,
    trunk_names=_trunk_names,
    head_names=_head_names,
    to_config=_to_config,
)
