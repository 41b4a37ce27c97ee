"""T5: an encoder-decoder without biases, its distances in buckets that all layers share."""

from typing import Any

from wonderland.checkpoints.families.family import Family, To, labels_config, trunk_of
from wonderland.checkpoints.families.options import ACTIVATIONS, Options, published
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


def _describe(options: Options, head: str, file: Any) -> Spec:
    dim, heads, width = options.whole("d_model", 512), options.whole("num_heads", 8), options.whole("d_kv", 64)
    depth = options.depth("num_layers", 6)
    target_depth = options.depth("num_decoder_layers", depth)
    dropout = options.chance("dropout_rate", 0.1)
    tie = options.get("tie_word_embeddings", True)
    scaled = options.get("scale_decoder_outputs", tie is not False)
    if not isinstance(scaled, bool):
        raise options.wrong("scale_decoder_outputs", scaled, "true or false")
    options.only("is_encoder_decoder", True, *((False,) if head in ("trunk encoder", "tags") else ()))
    how = {"heads": heads, "key_dim": width, "value_dim": width, "scale": 1.0, "dropout": dropout}
    common = {
        "vocab": options.whole("vocab_size", 32128),
        "dim": dim,
        "depth": depth,
        "mixer": Attention.spec(**how),
        "channel": _channel(options, dropout),
        "position": False,
        "relative": RelativeBuckets.spec(
            buckets=options.whole("relative_attention_num_buckets", 32),
            farthest=options.whole("relative_attention_max_distance", 128),
        ),
        "norm": RMSNorm.spec(eps=options.number("layer_norm_epsilon", 1e-6)),
        "placement": "pre",
        "dropout": dropout,
    }
    last = options.chance("classifier_dropout", 0.0)
    options.ignore("n_positions")  # which nothing reads: distances have no end
    for side in ("encoder", "decoder"):
        if not file.same(f"{side}.embed_tokens.weight", "shared.weight"):
            raise WonderlandError(f"The {side} of this T5 has an embedding of its own, which is not known here.")
    if head in ("trunk encoder", "tags"):
        encoder = Encoder.spec(**common, embed_norm=False)
        if head == "tags":
            return TokenClassifier.spec(trunk=encoder, classes=options.labels, pad=options.pad, dropout=last)
        return encoder
    begin = options.config.get("decoder_start_token_id")
    trunk = EncoderDecoder.spec(
        **common,
        target_depth=target_depth,
        cross=CrossAttention.spec(**how),
        scale="head" if scaled else "none",
        tie=head != "words" or file.tied(True, "lm_head.weight", "shared.weight"),
        begin=begin if isinstance(begin, int) and begin >= 0 else 0,
    )
    if head == "sequence":
        end = options.config.get("eos_token_id", 1)
        if not isinstance(end, int) or isinstance(end, bool):
            raise options.wrong("eos_token_id", end, "one token that ends a text")
        return SequenceClassifier.spec(
            trunk=trunk, classes=options.labels, at=end, hidden=dim, activation="tanh", pad=options.pad, dropout=last
        )
    if head == "spans":
        if options.labels != 2:
            raise options.wrong("num_labels", options.labels, "two scores a token, where a span begins and ends")
        return SpanFinder.spec(trunk=trunk, pad=options.pad)
    return trunk


def _channel(options: Options, dropout: float) -> Spec:
    kind = options.get("feed_forward_proj", "relu")
    if not isinstance(kind, str) or kind.count("-") > 1 or ("-" in kind and not kind.startswith("gated-")):
        raise options.wrong("feed_forward_proj", kind, "an activation, or gated- and one")
    # "gated-gelu" means the one with a tanh, for the sake of the checkpoints that were published with it.
    act = "gelu_new" if kind == "gated-gelu" else kind.split("-")[-1]
    act, gated = options.get("dense_act_fn", act), options.yes("is_gated_act", kind.startswith("gated-"))
    if not isinstance(act, str) or act not in ACTIVATIONS:
        raise options.wrong(
            "feed_forward_proj", kind, f"one of the activations there are here: {', '.join(ACTIVATIONS)}"
        )
    hidden = options.whole("d_ff", 2048)
    if gated:
        return GLU.spec(hidden=hidden, gate=ACTIVATIONS[act], dropout=dropout)
    return MLP.spec(hidden=hidden, activation=ACTIVATIONS[act], dropout=dropout)


def _names(trunk: Any) -> dict[str, To | None]:
    whole = isinstance(trunk, EncoderDecoder)
    found: dict[str, To | None] = {"embedding.weight": To("shared.weight")}
    for theirs in ("encoder", "decoder") if whole else ("encoder",):
        ours = theirs if whole else "stack"
        last = 2 if theirs == "decoder" else 1
        block, layer = f"{ours}.blocks.#.", f"{theirs}.block.#.layer."
        network = f"{layer}{last}.DenseReluDense."
        gated = isinstance(getattr(trunk, ours).blocks[0].channel, GLU)
        found |= {
            f"{ours}.position.weight": To(f"{theirs}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"),
            f"{ours}.norm.weight": To(f"{theirs}.final_layer_norm.weight"),
            f"{block}norms.#.weight".replace("norms.#", "norms.0"): To(f"{layer}0.layer_norm.weight"),
            f"{block}norms.1.weight": To(f"{layer}1.layer_norm.weight"),
            f"{block}norms.2.weight": To(f"{layer}2.layer_norm.weight"),
            f"{block}mixer.project.weight": To([f"{layer}0.SelfAttention.{part}.weight" for part in "qkv"]),
            f"{block}mixer.out.weight": To(f"{layer}0.SelfAttention.o.weight"),
            f"{block}cross.query.weight": To(f"{layer}1.EncDecAttention.q.weight"),
            f"{block}cross.project.weight": To([f"{layer}1.EncDecAttention.{part}.weight" for part in "kv"]),
            f"{block}cross.out.weight": To(f"{layer}1.EncDecAttention.o.weight"),
            f"{block}channel.inward.weight": To(
                [f"{network}wi_0.weight", f"{network}wi_1.weight"] if gated else f"{network}wi.weight"
            ),
            f"{block}channel.outward.weight": To(f"{network}wo.weight"),
        }
    return found


def _head_names(model: Any, head: str) -> dict[str, To]:
    if head == "sequence":
        return {"hidden.*": To("classification_head.dense.*"), "head.*": To("classification_head.out_proj.*")}
    return {"head.*": To({"tags": "classifier.*", "spans": "qa_outputs.*"}.get(head, "lm_head.*"))}


def _config(model: Any) -> dict[str, Any] | None:
    trunk = trunk_of(model)
    if not isinstance(trunk, EncoderDecoder | Encoder):
        return None
    whole = isinstance(trunk, EncoderDecoder)
    stack: Any = trunk.encoder if whole else trunk.stack
    block = stack.blocks[0]
    mixer, channel = block.mixer, getattr(block, "channel", None)
    if not isinstance(mixer, Attention) or not isinstance(stack.position, RelativeBuckets):
        return None
    gated = isinstance(channel, GLU)
    if not gated and not isinstance(channel, MLP):
        return None
    act = published(channel.gate if gated else channel.activation)
    found = {
        "model_type": "t5",
        "vocab_size": trunk.vocab,
        "d_model": trunk.dim,
        "d_kv": mixer.key_dim,
        "d_ff": channel.outward.in_features if channel.outward is not None else None,
        "num_layers": len(stack.blocks),
        "num_decoder_layers": len(trunk.decoder.blocks) if whole else len(stack.blocks),
        "num_heads": mixer.heads,
        "relative_attention_num_buckets": stack.position.buckets,
        "relative_attention_max_distance": stack.position.farthest,
        "dropout_rate": trunk.dropout,
        "layer_norm_epsilon": getattr(block.norms[0], "eps", None),
        "feed_forward_proj": f"gated-{act}" if gated else act,
        "dense_act_fn": act,
        "is_gated_act": gated,
        "is_encoder_decoder": whole,
        "scale_decoder_outputs": not whole or trunk.scale == "head",
        "tie_word_embeddings": True,
        "pad_token_id": getattr(model, "pad", 0),
        "decoder_start_token_id": trunk.begin if whole else 0,
        "eos_token_id": model.at if isinstance(model, SequenceClassifier) and model.at is not None else 1,
        "classifier_dropout": model.dropout if isinstance(model, SequenceClassifier | TokenClassifier) else 0.0,
    }
    return found | (labels_config(model) if isinstance(model, SequenceClassifier | TokenClassifier) else {})


T5 = Family(
    kind="t5",
    title="T5",
    heads={
        "T5ForConditionalGeneration": "words",
        "T5ForSequenceClassification": "sequence",
        "T5ForTokenClassification": "tags",
        "T5ForQuestionAnswering": "spans",
        "T5EncoderModel": "trunk encoder",
        "T5Model": "trunk",
    },
    prefix="",
    prefixes={"sequence": "transformer.", "tags": "transformer."},
    describe=_describe,
    names=_names,
    head_names=_head_names,
    config=_config,
    spare=r"(transformer\.)?(encoder|decoder)\.embed_tokens\.weight"
    r"|(transformer\.)?decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",
)
