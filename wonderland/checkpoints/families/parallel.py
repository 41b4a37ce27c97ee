"""GPT-NeoX and Phi: decoders whose attention and MLP read the same features, with a part of each head rotated.

Papers: Black et al., 2022; Biderman et al., 2023 (Pythia); Li et al., 2023 (Phi).
"""

from functools import partial
from typing import Any

from wonderland.checkpoints.families.family import Family, Published, WeightsView, labels_config, trunk_of
from wonderland.checkpoints.families.gated_decoder import rope_config, rotary_of, single_precision_rotation, with_head
from wonderland.checkpoints.families.options import Options, activation_name
from wonderland.core import Spec
from wonderland.models.decoder import Decoder
from wonderland.models.heads import SequenceClassifier, SpanFinder, TokenClassifier
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.norms.norm import LayerNorm
from wonderland.nn.positions import Rotary


def _common(options: Options, default: dict[str, int], base: float, fraction: float) -> dict[str, Any]:
    """Arguments that both families have."""
    dim = options.integer("hidden_size", default["hidden_size"])
    heads = options.integer("num_attention_heads", default["num_attention_heads"])
    if dim % heads:
        raise options.error("num_attention_heads", heads, f"a number of heads that divides hidden_size = {dim}")
    norm = LayerNorm.spec(eps=options.number("layer_norm_eps", 1e-5))
    rotary = rotary_of(options, base=base, fraction=fraction)
    turned = rotary.arguments["fraction"] * (dim // heads)
    if round(turned) % 2 or abs(turned - round(turned)) > 1e-9:
        raise options.error(
            "partial_rotary_factor", rotary.arguments["fraction"], f"an even part of a head of width {dim // heads}"
        )
    # Rotary positions have no table, so the length is not limited.
    # The others stand in published files, and transformers does not read them.
    options.ignore("max_position_embeddings", "auto_map", "attention_probs_dropout_prob", "hidden_dropout_prob")
    return {
        "vocab": options.integer("vocab_size", default["vocab_size"]),
        "dim": dim,
        "depth": options.depth("num_hidden_layers", default["num_hidden_layers"]),
        "mixer": Attention.spec(
            heads=heads, bias=True, position=rotary, dropout=options.probability("attention_dropout", 0.0)
        ),
        "channel": MLP.spec(
            hidden=options.integer("intermediate_size", default["intermediate_size"]),
            activation=options.activation("hidden_act", "gelu"),
            bias=True,
        ),
        "norm": norm,
    }


def _neox_spec(options: Options, head: str, weights: WeightsView) -> Spec:
    default = {"hidden_size": 6144, "num_hidden_layers": 44, "num_attention_heads": 64, "intermediate_size": 24576}
    base, part = options.number("rotary_emb_base", 10000.0), options.number("rotary_pct", 0.25, most=1.0)
    arguments = _common(options, {**default, "vocab_size": 50432}, base, part)
    dropout = options.probability("hidden_dropout", 0.0)
    tie = options.boolean("tie_word_embeddings", False)
    arguments["mixer"] = arguments["mixer"].changed(bias=options.boolean("attention_bias", True))
    trunk = Decoder.spec(
        **arguments,
        placement="parallel_each" if options.boolean("use_parallel_residual", True) else "pre",
        tie=head != "lm" or weights.tied(tie, NEOX_HEAD, "gpt_neox.embed_in.weight"),
        dropout=dropout,
    )
    if head == "tokens":
        dropout = options.probability("classifier_dropout", 0.1)
        return TokenClassifier.spec(trunk=trunk, classes=options.classes, dropout=dropout, pad=options.pad)
    options.ignore("classifier_dropout")
    return with_head(trunk, head, options)


def _phi_spec(options: Options, head: str, weights: WeightsView) -> Spec:
    default = {"hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32, "intermediate_size": 8192}
    part = options.number("partial_rotary_factor", 0.5, most=1.0)
    options.config = {"hidden_act": "gelu_new", **options.config}
    arguments = _common(options, {**default, "vocab_size": 51200}, 10000.0, part)
    heads, norm = arguments["mixer"].arguments["heads"], arguments["norm"]
    kv_heads = options.integer("num_key_value_heads", heads)
    if heads % kv_heads:
        raise options.error(
            "num_key_value_heads", kv_heads, f"a number of key heads that divides the {heads} query heads"
        )
    mixer = arguments["mixer"].changed(kv_heads=kv_heads)
    arguments["mixer"] = mixer.changed(qk_norm=norm) if options.boolean("qk_layernorm", False) else mixer
    options.require("tie_word_embeddings", False)  # the bias of the head has no place in the embedding
    trunk = Decoder.spec(
        **arguments,
        placement="parallel",
        tie=head != "lm",
        head_bias=head == "lm",
        dropout=options.probability("resid_pdrop", 0.0),
        embed_dropout=options.probability("embd_pdrop", 0.0),
    )
    return with_head(trunk, head, options)


NEOX_HEAD = "embed_out.weight"


def _neox_names(trunk: Any) -> dict[str, Published | None]:
    block, theirs = "stack.blocks.#.", "layers.#."
    return {
        "embedding.weight": Published("embed_in.weight"),
        "stack.norm.*": Published("final_layer_norm.*"),
        f"{block}norms.0.*": Published(f"{theirs}input_layernorm.*"),
        f"{block}norms.1.*": Published(f"{theirs}post_attention_layernorm.*"),
        f"{block}mixer.project.*": Published(f"{theirs}attention.query_key_value.*", by_head=True),
        f"{block}mixer.out.*": Published(f"{theirs}attention.dense.*"),
        f"{block}mixer.position.frequencies": None,
        f"{block}channel.inward.*": Published(f"{theirs}mlp.dense_h_to_4h.*"),
        f"{block}channel.outward.*": Published(f"{theirs}mlp.dense_4h_to_h.*"),
    }


def _phi_names(trunk: Any) -> dict[str, Published | None]:
    block, theirs = "stack.blocks.#.", "layers.#."
    return {
        "embedding.weight": Published("embed_tokens.weight"),
        "stack.norm.*": Published("final_layernorm.*"),
        f"{block}norms.0.*": Published(f"{theirs}input_layernorm.*"),
        f"{block}mixer.project.*": Published([f"{theirs}self_attn.{part}_proj.*" for part in "qkv"]),
        f"{block}mixer.out.*": Published(f"{theirs}self_attn.dense.*"),
        f"{block}mixer.query_norm.*": Published(f"{theirs}self_attn.q_layernorm.*"),
        f"{block}mixer.key_norm.*": Published(f"{theirs}self_attn.k_layernorm.*"),
        f"{block}mixer.position.frequencies": None,
        f"{block}channel.inward.*": Published(f"{theirs}mlp.fc1.*"),
        f"{block}channel.outward.*": Published(f"{theirs}mlp.fc2.*"),
    }


def _neox_head_names(model: Any, head: str) -> dict[str, Published]:
    names = {"sequence": "score.*", "tokens": "classifier.*", "spans": "qa_outputs.*"}
    return {"head.*": Published(names.get(head, "embed_out.*"))}


def _phi_head_names(model: Any, head: str) -> dict[str, Published]:
    return {"head.*": Published("score.*" if head in ("sequence", "tokens") else "lm_head.*")}


def _to_config(model_type: str, model: Any) -> dict[str, Any] | None:
    trunk = trunk_of(model)
    if not isinstance(trunk, Decoder):
        return None
    block: Any = trunk.stack.blocks[0]
    mixer, channel = block.mixer, getattr(block, "channel", None)
    if not isinstance(mixer, Attention) or not isinstance(channel, MLP) or not isinstance(mixer.position, Rotary):
        return None
    if model_type == "phi" and block.placement != "parallel":
        return None
    part = (mixer.key_dim if mixer.position.width is None else mixer.position.width) / mixer.key_dim
    config = {
        "model_type": model_type,
        "vocab_size": trunk.vocab,
        "hidden_size": trunk.dim,
        "num_hidden_layers": len(trunk.stack.blocks),
        "num_attention_heads": mixer.heads,
        "intermediate_size": channel.inward.out_features,
        "hidden_act": activation_name(channel.activation),
        "layer_norm_eps": getattr(block.norms[0], "eps", None),
        "attention_dropout": mixer.dropout,
        "rope_parameters": rope_config(mixer.position) | {"partial_rotary_factor": part},
        "tie_word_embeddings": False,
        "pad_token_id": getattr(model, "pad", None),
        "bos_token_id": None,
        "eos_token_id": None,
    }
    if model_type == "gpt_neox":
        config |= {"hidden_dropout": block.dropout, "use_parallel_residual": block.placement != "pre"}
        config |= {"attention_bias": mixer.out.bias is not None, "tie_word_embeddings": trunk.head is None}
    else:
        config |= {"resid_pdrop": block.dropout, "embd_pdrop": trunk.dropout, "num_key_value_heads": mixer.kv_heads}
        config["qk_layernorm"] = mixer.query_norm is not None
    if isinstance(model, TokenClassifier) and not isinstance(model, SpanFinder):
        config["classifier_dropout"] = model.dropout
    return config | (labels_config(model) if isinstance(model, SequenceClassifier | TokenClassifier) else {})


GPT_NEOX = Family(
    model_type="gpt_neox",
    title="GPT-NeoX",
    heads={
        "GPTNeoXForCausalLM": "lm",
        "GPTNeoXForSequenceClassification": "sequence",
        "GPTNeoXForTokenClassification": "tokens",
        "GPTNeoXForQuestionAnswering": "spans",
        "GPTNeoXModel": "trunk",
    },
    prefix="gpt_neox.",
    to_spec=_neox_spec,
    trunk_names=_neox_names,
    head_names=_neox_head_names,
    to_config=partial(_to_config, "gpt_neox"),
    unused=r"(gpt_neox\.)?layers\.\d+\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)",
    after_load=single_precision_rotation,
)
PHI = Family(
    model_type="phi",
    title="Phi",
    heads={
        "PhiForCausalLM": "lm",
        "PhiForSequenceClassification": "sequence",
        "PhiForTokenClassification": "tokens",
        "PhiModel": "trunk",
    },
    prefix="model.",
    to_spec=_phi_spec,
    trunk_names=_phi_names,
    head_names=_phi_head_names,
    to_config=partial(_to_config, "phi"),
    unused=r"(model\.)?layers\.\d+\.self_attn\.rotary_emb\.inv_freq",
    after_load=single_precision_rotation,
)
