"""T5: an encoder-decoder without biases, with relative position buckets shared by all layers. Paper: Raffel et al., 2020."""

from typing import Any

from wonderland.checkpoints.families.family import Family, Published, WeightsView, labels_config, trunk_of
from wonderland.checkpoints.families.options import ACTIVATIONS, Options, activation_name
from wonderland.core import Spec, WonderlandError
from wonderland.models.encoder import Encoder
from wonderland.models.encoder_decoder import EncoderDecoder
from wonderland.models.heads import SequenceClassifier, SpanFinder, TokenClassifier
from wonderland.nn.channel.glu import GLU
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.mixers.cross_attention import CrossAttention
from wonderland.nn.norms.norm import RMSNorm
from wonderland.nn.positions import RelativeBuckets


def _to_spec(options: Options, head: str, weights: WeightsView) -> Spec:
    dim, heads, width = options.integer("d_model", 512), options.integer("num_heads", 8), options.integer("d_kv", 64)
    depth = options.depth("num_layers", 6)
    target_depth = options.depth("num_decoder_layers", depth)
    dropout = options.probability("dropout_rate", 0.1)
    tie = options.get("tie_word_embeddings", True)
    scaled = options.get("scale_decoder_outputs", tie is not False)
    if not isinstance(scaled, bool):
        raise options.error("scale_decoder_outputs", scaled, "true or false")
    options.require("is_encoder_decoder", True, *((False,) if head in ("encoder", "tokens") else ()))
    attention = {"heads": heads, "key_dim": width, "value_dim": width, "scale": 1.0, "dropout": dropout}
    common = {
        "vocab": options.integer("vocab_size", 32128),
        "dim": dim,
        "depth": depth,
        "mixer": Attention.spec(**attention),
        "channel": _channel(options, dropout),
        "position": False,
        "relative": RelativeBuckets.spec(
            buckets=options.integer("relative_attention_num_buckets", 32),
            farthest=options.integer("relative_attention_max_distance", 128),
        ),
        "norm": RMSNorm.spec(eps=options.number("layer_norm_epsilon", 1e-6)),
        "placement": "pre",
        "dropout": dropout,
    }
    head_dropout = options.probability("classifier_dropout", 0.0)
    options.ignore("n_positions")  # not read: relative distances are not limited
    for side in ("encoder", "decoder"):
        if not weights.equal(f"{side}.embed_tokens.weight", "shared.weight"):
            raise WonderlandError(
                f"The {side} of this T5 has its own embedding, which is not supported: it must equal shared.weight."
            )
    if head in ("encoder", "tokens"):
        encoder = Encoder.spec(**common, embed_norm=False)
        if head == "tokens":
            return TokenClassifier.spec(trunk=encoder, classes=options.classes, pad=options.pad, dropout=head_dropout)
        return encoder
    begin = options.config.get("decoder_start_token_id")
    trunk = EncoderDecoder.spec(
        **common,
        target_depth=target_depth,
        cross=CrossAttention.spec(**attention),
        scale="head" if scaled else "none",
        tie=head != "lm" or weights.tied(True, "lm_head.weight", "shared.weight"),
        begin=begin if isinstance(begin, int) and begin >= 0 else 0,
    )
    if head == "sequence":
        end = options.config.get("eos_token_id", 1)
        if not isinstance(end, int) or isinstance(end, bool):
            raise options.error("eos_token_id", end, "one end token")
        return SequenceClassifier.spec(
            trunk=trunk,
            classes=options.classes,
            at=end,
            hidden=dim,
            activation="tanh",
            pad=options.pad,
            dropout=head_dropout,
        )
    if head == "spans":
        if options.classes != 2:
            raise options.error("num_labels", options.classes, "2: scores for the start and the end of a span")
        return SpanFinder.spec(trunk=trunk, pad=options.pad)
    return trunk


def _channel(options: Options, dropout: float) -> Spec:
    kind = options.get("feed_forward_proj", "relu")
    if not isinstance(kind, str) or kind.count("-") > 1 or ("-" in kind and not kind.startswith("gated-")):
        raise options.error("feed_forward_proj", kind, "an activation, or gated- followed by one")
    # As in transformers, "gated-gelu" is the tanh approximation, which the published checkpoints were trained with.
    act = "gelu_new" if kind == "gated-gelu" else kind.split("-")[-1]
    act, gated = options.get("dense_act_fn", act), options.boolean("is_gated_act", kind.startswith("gated-"))
    if not isinstance(act, str) or act not in ACTIVATIONS:
        raise options.error("feed_forward_proj", kind, f"one of these activations: {', '.join(ACTIVATIONS)}")
    hidden = options.integer("d_ff", 2048)
    if gated:
        return GLU.spec(hidden=hidden, gate=ACTIVATIONS[act], dropout=dropout)
    return MLP.spec(hidden=hidden, activation=ACTIVATIONS[act], dropout=dropout)


def _trunk_names(trunk: Any) -> dict[str, Published | None]:
    both_sides = isinstance(trunk, EncoderDecoder)
    names: dict[str, Published | None] = {"embedding.weight": Published("shared.weight")}
    for theirs in ("encoder", "decoder") if both_sides else ("encoder",):
        ours = theirs if both_sides else "stack"
        mlp = 2 if theirs == "decoder" else 1
        block, layer = f"{ours}.blocks.#.", f"{theirs}.block.#.layer."
        network = f"{layer}{mlp}.DenseReluDense."
        gated = isinstance(getattr(trunk, ours).blocks[0].channel, GLU)
        names |= {
            f"{ours}.position.weight": Published(
                f"{theirs}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
            ),
            f"{ours}.norm.weight": Published(f"{theirs}.final_layer_norm.weight"),
            f"{block}norms.0.weight": Published(f"{layer}0.layer_norm.weight"),
            f"{block}norms.1.weight": Published(f"{layer}1.layer_norm.weight"),
            f"{block}norms.2.weight": Published(f"{layer}2.layer_norm.weight"),
            f"{block}mixer.project.weight": Published([f"{layer}0.SelfAttention.{part}.weight" for part in "qkv"]),
            f"{block}mixer.out.weight": Published(f"{layer}0.SelfAttention.o.weight"),
            f"{block}cross.query.weight": Published(f"{layer}1.EncDecAttention.q.weight"),
            f"{block}cross.project.weight": Published([f"{layer}1.EncDecAttention.{part}.weight" for part in "kv"]),
            f"{block}cross.out.weight": Published(f"{layer}1.EncDecAttention.o.weight"),
            f"{block}channel.inward.weight": Published(
                [f"{network}wi_0.weight", f"{network}wi_1.weight"] if gated else f"{network}wi.weight"
            ),
            f"{block}channel.outward.weight": Published(f"{network}wo.weight"),
        }
    return names


def _head_names(model: Any, head: str) -> dict[str, Published]:
    if head == "sequence":
        return {
            "hidden.*": Published("classification_head.dense.*"),
            "head.*": Published("classification_head.out_proj.*"),
        }
    return {"head.*": Published({"tokens": "classifier.*", "spans": "qa_outputs.*"}.get(head, "lm_head.*"))}


def _to_config(model: Any) -> dict[str, Any] | None:
    trunk = trunk_of(model)
    if not isinstance(trunk, EncoderDecoder | Encoder):
        return None
    both_sides = isinstance(trunk, EncoderDecoder)
    stack: Any = trunk.encoder if both_sides else trunk.stack
    block = stack.blocks[0]
    mixer, channel = block.mixer, getattr(block, "channel", None)
    if not isinstance(mixer, Attention) or not isinstance(stack.position, RelativeBuckets):
        return None
    gated = isinstance(channel, GLU)
    if not gated and not isinstance(channel, MLP):
        return None
    act = activation_name(channel.gate if gated else channel.activation)
    config = {
        "model_type": "t5",
        "vocab_size": trunk.vocab,
        "d_model": trunk.dim,
        "d_kv": mixer.key_dim,
        "d_ff": channel.outward.in_features if channel.outward is not None else None,
        "num_layers": len(stack.blocks),
        "num_decoder_layers": len(trunk.decoder.blocks) if both_sides else len(stack.blocks),
        "num_heads": mixer.heads,
        "relative_attention_num_buckets": stack.position.buckets,
        "relative_attention_max_distance": stack.position.farthest,
        "dropout_rate": trunk.dropout,
        "layer_norm_epsilon": getattr(block.norms[0], "eps", None),
        "feed_forward_proj": f"gated-{act}" if gated else act,
        "dense_act_fn": act,
        "is_gated_act": gated,
        "is_encoder_decoder": both_sides,
        "scale_decoder_outputs": not both_sides or trunk.scale == "head",
        "tie_word_embeddings": True,
        "pad_token_id": getattr(model, "pad", 0),
        "decoder_start_token_id": trunk.begin if both_sides else 0,
        "eos_token_id": model.at if isinstance(model, SequenceClassifier) and model.at is not None else 1,
        "classifier_dropout": model.dropout if isinstance(model, SequenceClassifier | TokenClassifier) else 0.0,
    }
    return config | (labels_config(model) if isinstance(model, SequenceClassifier | TokenClassifier) else {})


T5 = Family(
    model_type="t5",
    title="T5",
    heads={
        "T5ForConditionalGeneration": "lm",
        "T5ForSequenceClassification": "sequence",
        "T5ForTokenClassification": "tokens",
        "T5ForQuestionAnswering": "spans",
        "T5EncoderModel": "encoder",
        "T5Model": "trunk",
    },
    prefix="",
    prefixes={"sequence": "transformer.", "tokens": "transformer."},
    to_spec=_to_spec,
    trunk_names=_trunk_names,
    head_names=_head_names,
    to_config=_to_config,
    unused=r"(transformer\.)?(encoder|decoder)\.embed_tokens\.weight"
    r"|(transformer\.)?decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",
)
