"""Decoders with RMSNorm, gated MLPs, rotary positions and grouped-query attention: what LLaMA and its followers share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from wonderland.checkpoints.families.family import Family, Published, WeightsView, labels_config, trunk_of
from wonderland.checkpoints.families.options import Options, activation_name
from wonderland.core import Spec
from wonderland.models.decoder import Decoder
from wonderland.models.heads import SequenceClassifier, SpanFinder, TokenClassifier
from wonderland.nn.channel.glu import GLU
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.norms.norm import RMSNorm, ZeroCentredRMSNorm
from wonderland.nn.positions import Rotary


@dataclass(frozen=True)
class Variant:
    """What tells one of these families from another.

    stem: what the names of its classes begin with. defaults: options whose default is not LLaMA's.
    attention_bias: "option" if config.json says whether projections have biases, "inputs" if those of queries, keys and
        values have them, "none". mlp_bias, head_dim: whether config.json may have these options.
    windows: which layers may see a limited number of tokens: "none", "all", "layers" that config.json names, or "even".
    skips: config.json says which layers have no positions. qk_norm: queries and keys are normalised in each "head", or over
        "all" of them; "" for no norm. placement: that of the norms of a block.
    gemma: gains are 1 plus the weights of norms, and embeddings are multiplied with the root of hidden_size.
    capped: scores and logits are bounded, and scores have a scale of their own.
    fused: queries, keys and values are one published matrix, and so are gates and values of the MLP.
    dropouts: whether there is dropout of embeddings and of residual branches.
    """

    model_type: str
    title: str
    stem: str
    defaults: Mapping[str, Any] = field(default_factory=dict)
    attention_bias: str = "none"
    mlp_bias: bool = False
    head_dim: bool = True
    windows: str = "none"
    skips: bool = False
    qk_norm: str = ""
    placement: str = "pre"
    gemma: bool = False
    capped: bool = False
    fused: bool = False
    dropouts: bool = False
    heads: tuple[str, ...] = ("lm", "sequence", "tokens", "spans", "trunk")


def _to_spec(variant: Variant, options: Options, head: str, weights: WeightsView) -> Spec:
    default = {
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "vocab_size": 32000,
        "rms_norm_eps": 1e-6,
    }
    default |= {"intermediate_size": 11008, "tie_word_embeddings": False, **variant.defaults}
    dim = options.integer("hidden_size", default["hidden_size"])
    heads = options.integer("num_attention_heads", default["num_attention_heads"])
    if dim % heads and "head_dim" not in default:
        raise options.error("num_attention_heads", heads, f"a number of heads that divides hidden_size = {dim}")
    kv_heads = options.integer("num_key_value_heads", default.get("num_key_value_heads", heads))
    width = options.integer("head_dim", default.get("head_dim", dim // heads)) if variant.head_dim else dim // heads
    if heads % kv_heads:
        raise options.error(
            "num_key_value_heads", kv_heads, f"a number of key heads that divides the {heads} query heads"
        )
    if width % 2:
        raise options.error("head_dim", width, "an even number, because rotary positions rotate pairs of features")
    tie = options.boolean("tie_word_embeddings", default["tie_word_embeddings"])
    eps = options.number("rms_norm_eps", default["rms_norm_eps"])
    if variant.model_type == "llama":
        options.require("pretraining_tp", 1, None)
    else:
        # Published files carry them, and transformers has its own code for these families.
        options.ignore("pretraining_tp", "auto_map")
    # Rotary positions have no table, so the length is not limited.
    options.ignore("max_position_embeddings", "is_llama_config")
    depth = options.depth("num_hidden_layers", default["num_hidden_layers"])
    bias = variant.attention_bias == "inputs"
    if variant.attention_bias == "option":
        bias = options.boolean("attention_bias", False)
    elif variant.attention_bias == "none":
        options.require("attention_bias", False, None)
    attention = Attention.spec(
        heads=heads,
        kv_heads=kv_heads,
        key_dim=width,
        value_dim=width,
        bias=bias,
        dropout=options.probability("attention_dropout", 0.0),
        position=rotary_of(options, base=default.get("rope_theta", 10000.0)),
    )
    if variant.attention_bias == "inputs":
        attention = attention.changed(out_bias=False)
    if variant.qk_norm:
        attention = attention.changed(qk_norm=RMSNorm.spec(eps=eps), qk_norm_over=variant.qk_norm)
    if variant.capped:
        scalar = options.number("query_pre_attn_scalar", 256.0, least=1e-6)
        attention = attention.changed(scale=scalar**-0.5, softcap=_cap(options, "attn_logit_softcapping", 50.0))
    mixers = _layers(variant, options, attention, depth)
    trunk = Decoder.spec(
        vocab=options.integer("vocab_size", default["vocab_size"]),
        dim=dim,
        depth=depth,
        mixer=mixers[0] if all(mixer == mixers[0] for mixer in mixers) else mixers,
        channel=GLU.spec(
            hidden=options.integer("intermediate_size", default["intermediate_size"]),
            gate=_gate(options) if variant.gemma else options.activation("hidden_act", "silu"),
            bias=options.boolean("mlp_bias", False) if variant.mlp_bias else False,
        ),
        norm=(ZeroCentredRMSNorm if variant.gemma else RMSNorm).spec(eps=eps),
        placement=variant.placement,
        tie=head != "lm" or weights.tied(tie, "lm_head.weight", "model.embed_tokens.weight"),
    )
    if variant.gemma:
        options.require("use_bidirectional_attention", None, False)
        trunk = trunk.changed(embed_scale=dim**0.5)
    if variant.capped and head == "lm":
        trunk = trunk.changed(logit_cap=_cap(options, "final_logit_softcapping", 30.0))
    if variant.capped:
        options.ignore("final_logit_softcapping", "cache_implementation")
    if variant.dropouts:
        options.ignore("original_max_position_embeddings")  # for longer texts than "rope_type": "default" has
        options.ignore("embd_pdrop")  # transformers keeps it, and does not drop embeddings
        trunk = trunk.changed(dropout=options.probability("resid_pdrop", 0.0), embed_dropout=0.0)
    return with_head(trunk, head, options)


def _cap(options: Options, name: str, default: float) -> float | None:
    """The bound of scores; null in the file means none."""
    if options.get(name, default) is None:
        return None
    return options.number(name, default, least=1e-6)


def _gate(options: Options) -> str:
    """The gate of Gemma: as in transformers, "gelu" under the older name is its tanh approximation."""
    newer = options.get("hidden_activation", None)
    if newer is not None:
        options.ignore("hidden_act")
        return options.activation("hidden_activation", "gelu_pytorch_tanh")
    gate = options.activation("hidden_act", "gelu_pytorch_tanh")
    return "gelu_tanh" if gate == "gelu" else gate


def with_head(trunk: Spec, head: str, options: Options) -> Spec:
    """A head that the decoders of transformers share, on a trunk."""
    if head == "sequence":
        return SequenceClassifier.spec(trunk=trunk, classes=options.classes, pool="last", bias=False, pad=options.pad)
    options.ignore("classifier_dropout", "hidden_dropout")
    if head == "tokens":
        # transformers takes the first of the two that is set.
        given = [options.config.get(name) for name in ("classifier_dropout", "hidden_dropout")]
        dropout = next((value for value in given if value is not None), 0.1)
        return TokenClassifier.spec(trunk=trunk, classes=options.classes, dropout=dropout, pad=options.pad)
    return SpanFinder.spec(trunk=trunk, pad=options.pad) if head == "spans" else trunk


def _layers(variant: Variant, options: Options, attention: Spec, depth: int) -> list[Spec]:
    """The mixer of each layer: with a window or not, with positions or not."""
    if variant.windows == "none":
        return [attention]
    window = options.get("sliding_window", variant.defaults.get("sliding_window"))
    if window is not None:
        window = options.integer("sliding_window", window)
    if variant.windows == "all":
        return [attention if window is None else attention.changed(window=window)]
    used = options.boolean("use_sliding_window", variant.windows == "even")
    rotated = [1] * depth
    if variant.skips:
        options.ignore("max_window_layers")
        every = options.integer("no_rope_layer_interval", 4)
        rotated = options.get("no_rope_layers", None) or [int((layer + 1) % every != 0) for layer in range(depth)]
        if not isinstance(rotated, list) or len(rotated) != depth or not all(item in (0, 1) for item in rotated):
            raise options.error("no_rope_layers", rotated, f"{depth} numbers, 0 or 1")
        windowed = [not rotates for rotates in rotated]
    elif variant.windows == "even":
        windowed = [layer % 2 == 0 for layer in range(depth)]
    else:
        first = options.integer("max_window_layers", 28, least=0)
        windowed = [layer >= first for layer in range(depth)]
    sliding, whole = "sliding_attention", "full_attention"
    usual = [sliding if used and window is not None and limited else whole for limited in windowed]
    kinds = options.get("layer_types", None) or usual
    if not isinstance(kinds, list) or len(kinds) != depth or not all(kind in (sliding, whole) for kind in kinds):
        raise options.error("layer_types", kinds, f"{depth} kinds of layers, {whole} or {sliding}")
    if sliding in kinds and (window is None or not used):
        raise options.error("layer_types", kinds, "a sliding_window for these layers")
    return [
        attention.changed(**({"window": window} if kind == sliding else {}), **({} if rotates else {"position": None}))
        for kind, rotates in zip(kinds, rotated, strict=True)
    ]


def rotary_of(options: Options, *, base: float = 10000.0, fraction: float | None = None) -> Spec:
    """The rotary positions that config.json describes; `fraction` is the default of a family that rotates a part of a head."""
    # As in transformers: rope_scaling, the older name, has precedence, and rope_theta outside the table is its default.
    tables = {name: options.get(name, None) or {} for name in ("rope_parameters", "rope_scaling")}
    base = options.get("rope_theta", base)
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise options.error(name, table, "an object of options")
    options.require("rope_interleaved", False, None)
    inner = Options({"rope_theta": base, **(tables["rope_scaling"] or tables["rope_parameters"])}, options.title)
    part: dict[str, Any] = {}
    if fraction is None:
        inner.require("partial_rotary_factor", 1.0, None)
    else:
        part = {"fraction": inner.number("partial_rotary_factor", fraction, least=1e-6, most=1.0)}
    kind = inner.get("rope_type", inner.get("type", "default"))
    inner.ignore("type")
    base = inner.number("rope_theta", 10000.0, least=1.0)
    if base <= 1:
        raise options.error("rope_theta", base, "a base above 1")
    if kind == "default":
        rotary = Rotary.spec(base=base, **part)
        inner.ignore("factor", "original_max_position_embeddings")
    elif kind == "linear":
        rotary = Rotary.spec(base=base, stretch=inner.number("factor", None), **part)
        inner.ignore("original_max_position_embeddings")
    elif kind == "llama3":
        low, high = inner.number("low_freq_factor", None), inner.number("high_freq_factor", None)
        length = inner.integer("original_max_position_embeddings")
        rotary = Rotary.spec(base=base, stretch=inner.number("factor", None), bands=(low, high, length), **part)
    else:
        raise options.error("rope_type", kind, "default, linear or llama3")
    inner.check_all_read()
    return rotary


def _trunk_names(variant: Variant, trunk: Any) -> dict[str, Published | None]:
    block, theirs = "stack.blocks.#.", "layers.#."
    attention, network = f"{theirs}self_attn.", f"{theirs}mlp."
    before, between = "input_layernorm", "post_attention_layernorm"
    norms = {
        "branch": (between, "post_feedforward_layernorm"),
        "sandwich": (before, "pre_feedforward_layernorm", between, "post_feedforward_layernorm"),
    }.get(variant.placement, (before, between))
    return {
        "embedding.weight": Published("embed_tokens.weight"),
        "stack.norm.weight": Published("norm.weight"),
        **{f"{block}norms.{i}.weight": Published(f"{theirs}{name}.weight") for i, name in enumerate(norms)},
        f"{block}mixer.project.*": Published(
            f"{attention}qkv_proj.*" if variant.fused else [f"{attention}{part}_proj.*" for part in "qkv"]
        ),
        f"{block}mixer.query_norm.weight": Published(f"{attention}q_norm.weight"),
        f"{block}mixer.key_norm.weight": Published(f"{attention}k_norm.weight"),
        f"{block}mixer.out.*": Published(f"{attention}o_proj.*"),
        f"{block}mixer.position.frequencies": None,
        f"{block}channel.inward.*": Published(
            f"{network}gate_up_proj.*" if variant.fused else [f"{network}gate_proj.*", f"{network}up_proj.*"]
        ),
        f"{block}channel.outward.*": Published(f"{network}down_proj.*"),
    }


def _head_names(model: Any, head: str) -> dict[str, Published]:
    return {
        "head.*": Published(
            {"sequence": "score.*", "tokens": "score.*", "spans": "qa_outputs.*"}.get(head, "lm_head.*")
        )
    }


def _to_config(variant: Variant, model: Any) -> dict[str, Any] | None:
    trunk = trunk_of(model)
    if not isinstance(trunk, Decoder):
        return None
    block = trunk.stack.blocks[0]
    mixer, channel = block.mixer, getattr(block, "channel", None)
    positions = [getattr(getattr(layer, "mixer", None), "position", None) for layer in trunk.stack.blocks]
    position = next((position for position in positions if isinstance(position, Rotary)), None)
    if not isinstance(mixer, Attention) or not isinstance(channel, GLU) or position is None:
        return None
    norm = ZeroCentredRMSNorm if variant.gemma else RMSNorm
    if bool(variant.qk_norm) != (mixer.query_norm is not None) or block.placement != variant.placement:
        return None
    if type(block.norms[0]) is not norm or variant.capped != (mixer.softcap is not None):
        return None
    config = {
        "model_type": variant.model_type,
        "vocab_size": trunk.vocab,
        "hidden_size": trunk.dim,
        "num_hidden_layers": len(trunk.stack.blocks),
        "num_attention_heads": mixer.heads,
        "num_key_value_heads": mixer.kv_heads,
        "intermediate_size": channel.outward.in_features if channel.outward is not None else None,
        "hidden_act": activation_name(channel.gate),
        "rms_norm_eps": getattr(block.norms[0], "eps", None),
        "attention_dropout": mixer.dropout,
        "rope_parameters": rope_config(position),
        "tie_word_embeddings": trunk.head is None,
        "pad_token_id": getattr(model, "pad", None),
        "bos_token_id": None,
        "eos_token_id": None,
    }
    if variant.head_dim:
        config["head_dim"] = mixer.key_dim
    if variant.attention_bias == "option":
        config["attention_bias"] = mixer.out.bias is not None
    if variant.mlp_bias:
        config["mlp_bias"] = channel.inward.bias is not None
    if variant.gemma:
        config["hidden_activation" if variant.capped else "hidden_act"] = config.pop("hidden_act")
    if variant.capped:
        config |= {"attn_logit_softcapping": mixer.softcap, "final_logit_softcapping": trunk.logit_cap}
        config["query_pre_attn_scalar"] = mixer.scale**-2
    if variant.dropouts:
        config["resid_pdrop"] = block.dropout
    if variant.windows != "none":
        mixers = [getattr(layer, "mixer", None) for layer in trunk.stack.blocks]
        windows = [getattr(layer, "window", None) for layer in mixers]
        widest = next((window for window in windows if window is not None), None)
        config["sliding_window"] = widest
        if variant.windows in ("layers", "even"):
            config["layer_types"] = ["full_attention" if w is None else "sliding_attention" for w in windows]
        if variant.windows == "layers":
            config["use_sliding_window"] = widest is not None
        if variant.skips:
            config["no_rope_layers"] = [int(position is not None) for position in positions]
    if isinstance(model, TokenClassifier) and not isinstance(model, SpanFinder):
        config["classifier_dropout"] = model.dropout
    return config | (labels_config(model) if isinstance(model, SequenceClassifier | TokenClassifier) else {})


def rope_config(position: Rotary) -> dict[str, Any]:
    """Rotary positions as config.json describes them."""
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": position.base}
    if position.bands is not None:
        low, high, length = position.bands
        rope |= {"rope_type": "llama3", "factor": position.stretch, "low_freq_factor": low}
        rope |= {"high_freq_factor": high, "original_max_position_embeddings": length}
    elif position.stretch != 1:
        rope |= {"rope_type": "linear", "factor": position.stretch}
    return rope


def single_precision_rotation(model: Any) -> None:
    """Compute rotary frequencies in single precision, as the published code does, for equal angles."""
    for module in model.modules():
        if isinstance(module, Rotary):
            module.frequencies.copy_(module.speeds(module.frequencies.shape[0], torch.float32))


HEADS = {
    "lm": "ForCausalLM",
    "sequence": "ForSequenceClassification",
    "tokens": "ForTokenClassification",
    "spans": "ForQuestionAnswering",
    "trunk": "Model",
}


def family(variant: Variant, *, spans: str = "transformer.") -> Family:
    return Family(
        model_type=variant.model_type,
        title=variant.title,
        heads={variant.stem + HEADS[head]: head for head in variant.heads},
        prefix="model.",
        prefixes={"spans": spans},
        to_spec=partial(_to_spec, variant),
        trunk_names=partial(_trunk_names, variant),
        head_names=_head_names,
        to_config=partial(_to_config, variant),
        unused=r"(model\.)?layers\.\d+\.self_attn\.rotary_emb\.inv_freq",
        after_load=single_precision_rotation,
    )
