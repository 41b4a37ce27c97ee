"""LLaMA: a decoder with RMSNorm, gated MLPs, rotary positions and grouped-query attention. Paper: Touvron et al., 2023."""

from typing import Any

import torch

from wonderland.checkpoints.families.family import Family, Published, WeightsView, labels_config, trunk_of
from wonderland.checkpoints.families.options import Options, activation_name
from wonderland.core import Spec
from wonderland.models.decoder import Decoder
from wonderland.models.heads import SequenceClassifier, SpanFinder, TokenClassifier
from wonderland.nn.channel.glu import GLU
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.norms.norm import RMSNorm
from wonderland.nn.positions import Rotary


def _to_spec(options: Options, head: str, weights: WeightsView) -> Spec:
    dim, heads = options.integer("hidden_size", 4096), options.integer("num_attention_heads", 32)
    if dim % heads:
        raise options.error("num_attention_heads", heads, f"a number of heads that divides hidden_size = {dim}")
    kv_heads = options.integer("num_key_value_heads", heads)
    width = options.integer("head_dim", dim // heads)
    if heads % kv_heads:
        raise options.error(
            "num_key_value_heads", kv_heads, f"a number of key heads that divides the {heads} query heads"
        )
    if width % 2:
        raise options.error("head_dim", width, "an even number, because rotary positions rotate pairs of features")
    tie = options.boolean("tie_word_embeddings", False)
    options.require("pretraining_tp", 1, None)
    # Rotary positions have no table, so the length is not limited.
    options.ignore("max_position_embeddings", "is_llama_config")
    trunk = Decoder.spec(
        vocab=options.integer("vocab_size", 32000),
        dim=dim,
        depth=options.depth("num_hidden_layers", 32),
        mixer=Attention.spec(
            heads=heads,
            kv_heads=kv_heads,
            key_dim=width,
            value_dim=width,
            bias=options.boolean("attention_bias", False),
            dropout=options.probability("attention_dropout", 0.0),
            position=_rotary(options),
        ),
        channel=GLU.spec(
            hidden=options.integer("intermediate_size", 11008),
            gate=options.activation("hidden_act", "silu"),
            bias=options.boolean("mlp_bias", False),
        ),
        norm=RMSNorm.spec(eps=options.number("rms_norm_eps", 1e-6)),
        tie=head != "lm" or weights.tied(tie, "lm_head.weight", "model.embed_tokens.weight"),
    )
    if head == "sequence":
        return SequenceClassifier.spec(trunk=trunk, classes=options.classes, pool="last", bias=False, pad=options.pad)
    options.ignore("classifier_dropout", "hidden_dropout")
    if head == "tokens":
        # transformers takes the first of the two that is set.
        given = [options.config.get(name) for name in ("classifier_dropout", "hidden_dropout")]
        dropout = next((value for value in given if value is not None), 0.1)
        return TokenClassifier.spec(trunk=trunk, classes=options.classes, dropout=dropout, pad=options.pad)
    return SpanFinder.spec(trunk=trunk, pad=options.pad) if head == "spans" else trunk


def _rotary(options: Options) -> Spec:
    # As in transformers: rope_scaling, the older name, has precedence, and rope_theta outside the table is its default.
    tables = {name: options.get(name, None) or {} for name in ("rope_parameters", "rope_scaling")}
    base = options.get("rope_theta", 10000.0)
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise options.error(name, table, "an object of options")
    options.require("rope_interleaved", False, None)
    inner = Options({"rope_theta": base, **(tables["rope_scaling"] or tables["rope_parameters"])}, options.title)
    inner.require("partial_rotary_factor", 1.0, None)
    kind = inner.get("rope_type", inner.get("type", "default"))
    inner.ignore("type")
    base = inner.number("rope_theta", 10000.0, least=1.0)
    if base <= 1:
        raise options.error("rope_theta", base, "a base above 1")
    if kind == "default":
        rotary = Rotary.spec(base=base)
        inner.ignore("factor", "original_max_position_embeddings")
    elif kind == "linear":
        rotary = Rotary.spec(base=base, stretch=inner.number("factor", None))
        inner.ignore("original_max_position_embeddings")
    elif kind == "llama3":
        low, high = inner.number("low_freq_factor", None), inner.number("high_freq_factor", None)
        length = inner.integer("original_max_position_embeddings")
        rotary = Rotary.spec(base=base, stretch=inner.number("factor", None), bands=(low, high, length))
    else:
        raise options.error("rope_type", kind, "default, linear or llama3")
    inner.check_all_read()
    return rotary


def _trunk_names(trunk: Any) -> dict[str, Published | None]:
    block, theirs = "stack.blocks.#.", "layers.#."
    attention, network = f"{theirs}self_attn.", f"{theirs}mlp."
    return {
        "embedding.weight": Published("embed_tokens.weight"),
        "stack.norm.weight": Published("norm.weight"),
        f"{block}norms.0.weight": Published(f"{theirs}input_layernorm.weight"),
        f"{block}norms.1.weight": Published(f"{theirs}post_attention_layernorm.weight"),
        f"{block}mixer.project.*": Published([f"{attention}{part}_proj.*" for part in "qkv"]),
        f"{block}mixer.out.*": Published(f"{attention}o_proj.*"),
        f"{block}mixer.position.frequencies": None,
        f"{block}channel.inward.*": Published([f"{network}gate_proj.*", f"{network}up_proj.*"]),
        f"{block}channel.outward.*": Published(f"{network}down_proj.*"),
    }


def _head_names(model: Any, head: str) -> dict[str, Published]:
    return {
        "head.*": Published(
            {"sequence": "score.*", "tokens": "score.*", "spans": "qa_outputs.*"}.get(head, "lm_head.*")
        )
    }


def _to_config(model: Any) -> dict[str, Any] | None:
    trunk = trunk_of(model)
    if not isinstance(trunk, Decoder):
        return None
    block = trunk.stack.blocks[0]
    mixer, channel = block.mixer, getattr(block, "channel", None)
    if not isinstance(mixer, Attention) or not isinstance(channel, GLU) or not isinstance(mixer.position, Rotary):
        return None
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": mixer.position.base}
    if mixer.position.bands is not None:
        low, high, length = mixer.position.bands
        rope |= {"rope_type": "llama3", "factor": mixer.position.stretch, "low_freq_factor": low}
        rope |= {"high_freq_factor": high, "original_max_position_embeddings": length}
    elif mixer.position.stretch != 1:
        rope |= {"rope_type": "linear", "factor": mixer.position.stretch}
    config = {
        "model_type": "llama",
        "vocab_size": trunk.vocab,
        "hidden_size": trunk.dim,
        "num_hidden_layers": len(trunk.stack.blocks),
        "num_attention_heads": mixer.heads,
        "num_key_value_heads": mixer.kv_heads,
        "head_dim": mixer.key_dim,
        "intermediate_size": channel.outward.in_features if channel.outward is not None else None,
        "hidden_act": activation_name(channel.gate),
        "rms_norm_eps": getattr(block.norms[0], "eps", None),
        "attention_bias": mixer.out.bias is not None,
        "mlp_bias": channel.inward.bias is not None,
        "attention_dropout": mixer.dropout,
        "rope_parameters": rope,
        "tie_word_embeddings": trunk.head is None,
        "pad_token_id": getattr(model, "pad", None),
        "bos_token_id": None,
        "eos_token_id": None,
    }
    if isinstance(model, TokenClassifier) and not isinstance(model, SpanFinder):
        config["classifier_dropout"] = model.dropout
    return config | (labels_config(model) if isinstance(model, SequenceClassifier | TokenClassifier) else {})


def _after_load(model: Any) -> None:
    """Compute rotary frequencies in single precision, as the published code does, for equal angles."""
    for module in model.modules():
        if isinstance(module, Rotary):
            module.frequencies.copy_(module.speeds(module.frequencies.shape[0], torch.float32))


LLAMA = Family(
    model_type="llama",
    title="LLaMA",
    heads={
        "LlamaForCausalLM": "lm",
        "LlamaForSequenceClassification": "sequence",
        "LlamaForTokenClassification": "tokens",
        "LlamaForQuestionAnswering": "spans",
        "LlamaModel": "trunk",
    },
    prefix="model.",
    prefixes={"spans": "transformer."},
    to_spec=_to_spec,
    trunk_names=_trunk_names,
    head_names=_head_names,
    to_config=_to_config,
    unused=r"(model\.)?layers\.\d+\.self_attn\.rotary_emb\.inv_freq",
    after_load=_after_load,
)
