"""ModernBERT: an encoder with gated MLPs, rotary positions and sliding windows in most layers. Paper: Warner et al., 2024."""

from typing import Any

from wonderland.checkpoints.families.family import Family, Published, WeightsView, labels_config, trunk_of
from wonderland.checkpoints.families.gated_decoder import rope_config, rotary_of, single_precision_rotation
from wonderland.checkpoints.families.options import Options, activation_name
from wonderland.core import Spec
from wonderland.models.encoder import Encoder
from wonderland.models.heads import MaskedLM, SequenceClassifier, SpanFinder, TokenClassifier
from wonderland.nn.channel.glu import GLU
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.norms.norm import LayerNorm, NoNorm
from wonderland.nn.positions import Rotary

WHOLE, SLIDING = "full_attention", "sliding_attention"
BASES = {WHOLE: ("global_rope_theta", 160_000.0), SLIDING: ("local_rope_theta", 10_000.0)}
POOLS = {"cls": "first", "mean": "mean"}


def _to_spec(options: Options, head: str, weights: WeightsView) -> Spec:
    dim, heads = options.integer("hidden_size", 768), options.integer("num_attention_heads", 12)
    if dim % heads or dim // heads % 2:
        raise options.error("num_attention_heads", heads, f"heads of an even width that divide hidden_size = {dim}")
    # Rotary positions have no table; the others choose between equal programs, or are of training alone.
    options.ignore(
        "max_position_embeddings", "initializer_cutoff_factor", "deterministic_flash_attn", "reference_compile"
    )
    options.ignore("sparse_prediction", "sparse_pred_ignore_index", "repad_logits_with_grad", "layer_norm_eps")
    options.ignore("position_embedding_type", "sliding_window")
    norm = LayerNorm.spec(eps=options.number("norm_eps", 1e-5), bias=options.boolean("norm_bias", False))
    trunk = Encoder.spec(
        vocab=options.integer("vocab_size", 50368),
        dim=dim,
        depth=options.depth("num_hidden_layers", 22),
        mixer=_mixers(options, heads, options.depth("num_hidden_layers", 22)),
        channel=GLU.spec(
            hidden=options.integer("intermediate_size", 1152),
            gate=options.activation("hidden_activation", "gelu"),
            bias=options.boolean("mlp_bias", False),
            dropout=options.probability("mlp_dropout", 0.0),
        ),
        position=False,
        placement="pre",
        norm=norm,
        first_norm=False,
        embed_dropout=options.probability("embedding_dropout", 0.0),
    )
    tie, bias = options.boolean("tie_word_embeddings", True), options.boolean("decoder_bias", True)
    hidden = {
        "activation": options.activation("classifier_activation", "gelu"),
        "hidden_bias": options.boolean("classifier_bias", False),
        "norm": norm,
    }
    pooling = options.get("classifier_pooling", "cls")
    if pooling not in POOLS:
        raise options.error("classifier_pooling", pooling, "cls or mean")
    dropout = options.probability("classifier_dropout", 0.0)
    if head == "lm":
        tied = weights.tied(tie, "decoder.weight", "model.embeddings.tok_embeddings.weight")
        return MaskedLM.spec(trunk=trunk, **hidden, tie=tied, bias=bias, pad=options.pad)
    above = {"trunk": trunk, "hidden": dim, **hidden, "pad": options.pad, "dropout": dropout}
    if head == "sequence":
        return SequenceClassifier.spec(**above, classes=options.classes, pool=POOLS[pooling])
    if head == "tokens":
        return TokenClassifier.spec(**above, classes=options.classes)
    if head == "spans":
        if options.classes != 2:
            raise options.error("num_labels", options.classes, "2: scores for the start and the end of a span")
        return SpanFinder.spec(**above)
    return trunk


def _mixers(options: Options, heads: int, depth: int) -> list[Spec]:
    """The attention of each layer: over the whole text, or over a window around each token."""
    every = options.integer("global_attn_every_n_layers", 3)
    usual = [SLIDING if layer % every else WHOLE for layer in range(depth)]
    kinds = options.get("layer_types", None) or usual
    if not isinstance(kinds, list) or len(kinds) != depth or not all(kind in (WHOLE, SLIDING) for kind in kinds):
        raise options.error("layer_types", kinds, f"{depth} kinds of layers, {WHOLE} or {SLIDING}")
    tables = options.get("rope_parameters", None) or {}
    if not isinstance(tables, dict) or not all(isinstance(tables.get(kind) or {}, dict) for kind in BASES):
        raise options.error("rope_parameters", tables, f"options for {WHOLE} and for {SLIDING}")
    options.require("rope_scaling", None)
    windows = {WHOLE: {}, SLIDING: {"window": options.integer("local_attention", 128) // 2 + 1}}
    common = {
        "heads": heads,
        "bias": options.boolean("attention_bias", False),
        "dropout": options.probability("attention_dropout", 0.0),
    }
    mixers = {}
    for kind, (name, base) in BASES.items():
        table = {"rope_theta": options.number(name, base, least=1.0), **(tables.get(kind) or {})}
        rotary = rotary_of(Options({"rope_parameters": table}, options.title))
        mixers[kind] = Attention.spec(**common, position=rotary, **windows[kind])
    return [mixers[kind] for kind in kinds]


def _trunk_names(trunk: Any) -> dict[str, Published | None]:
    block, theirs = "stack.blocks.#.", "layers.#."
    return {
        "embedding.weight": Published("embeddings.tok_embeddings.weight"),
        "norm.*": Published("embeddings.norm.*"),
        "stack.norm.*": Published("final_norm.*"),
        f"{block}norms.0.*": Published(f"{theirs}attn_norm.*"),
        f"{block}norms.1.*": Published(f"{theirs}mlp_norm.*"),
        f"{block}mixer.project.*": Published(f"{theirs}attn.Wqkv.*"),
        f"{block}mixer.out.*": Published(f"{theirs}attn.Wo.*"),
        f"{block}mixer.position.frequencies": None,
        f"{block}channel.inward.*": Published(f"{theirs}mlp.Wi.*"),
        f"{block}channel.outward.*": Published(f"{theirs}mlp.Wo.*"),
    }


def _head_names(model: Any, head: str) -> dict[str, Published]:
    if head == "trunk":
        return {}
    names = {"norm.*": Published("head.norm.*")}
    if head == "lm":
        own = {"bias": Published("decoder.bias"), "head.weight": Published("decoder.weight")}
        return names | own | {"transform.*": Published("head.dense.*")}
    return names | {"hidden.*": Published("head.dense.*"), "head.*": Published("classifier.*")}


def _to_config(model: Any) -> dict[str, Any] | None:
    trunk = trunk_of(model)
    if not isinstance(trunk, Encoder):
        return None
    blocks: Any = trunk.stack.blocks
    mixer, channel = blocks[0].mixer, getattr(blocks[0], "channel", None)
    rotates = isinstance(mixer, Attention) and isinstance(mixer.position, Rotary)
    if not rotates or not isinstance(channel, GLU) or not isinstance(blocks[0].norms[0], NoNorm):
        return None
    norm = blocks[0].norms[1]
    layers = {WHOLE if block.mixer.window is None else SLIDING: block.mixer for block in blocks}
    window = layers[SLIDING].window if SLIDING in layers else 65
    masked, plain = isinstance(model, MaskedLM), model is trunk
    hidden = model.transform if masked else None if plain else model.hidden
    config = {
        "model_type": "modernbert",
        "vocab_size": trunk.vocab,
        "hidden_size": trunk.dim,
        "num_hidden_layers": len(blocks),
        "num_attention_heads": mixer.heads,
        "intermediate_size": channel.outward.in_features if channel.outward is not None else None,
        "hidden_activation": activation_name(channel.gate),
        "norm_eps": getattr(norm, "eps", None),
        "norm_bias": getattr(norm, "bias", None) is not None,
        "attention_bias": mixer.out.bias is not None,
        "attention_dropout": mixer.dropout,
        "mlp_bias": channel.inward.bias is not None,
        "mlp_dropout": channel.dropout,
        "embedding_dropout": trunk.dropout,
        "local_attention": 2 * (window - 1),
        "layer_types": [WHOLE if block.mixer.window is None else SLIDING for block in blocks],
        "rope_parameters": {kind: rope_config(layer.position) for kind, layer in layers.items()},
        "decoder_bias": not masked or model.bias is not None,
        "classifier_bias": hidden is not None and hidden.bias is not None,
        "classifier_activation": "gelu" if plain else activation_name(model.activation),
        "classifier_dropout": 0.0 if plain else model.dropout,
        "tie_word_embeddings": not masked or model.head is None,
        "pad_token_id": getattr(model, "pad", 0),
    }
    if isinstance(model, SequenceClassifier):
        config["classifier_pooling"] = "mean" if model.pool is not None and model.pool.how == "mean" else "cls"
    return config | (labels_config(model) if isinstance(model, SequenceClassifier | TokenClassifier) else {})


MODERNBERT = Family(
    model_type="modernbert",
    title="ModernBERT",
    heads={
        "ModernBertForMaskedLM": "lm",
        "ModernBertForSequenceClassification": "sequence",
        "ModernBertForTokenClassification": "tokens",
        "ModernBertForQuestionAnswering": "spans",
        "ModernBertModel": "trunk",
    },
    prefix="model.",
    to_spec=_to_spec,
    trunk_names=_trunk_names,
    head_names=_head_names,
    to_config=_to_config,
    after_load=single_precision_rotation,
)
