"""BART and Marian: encoder-decoders with norms after each sum and a fixed bias of the logits.

Papers: Lewis et al., 2020; Junczys-Dowmunt et al., 2018.
"""

from functools import partial
from typing import Any

from wonderland.checkpoints.families.family import Family, Published, WeightsView, labels_config, trunk_of
from wonderland.checkpoints.families.options import Options, activation_name
from wonderland.core import Spec, WonderlandError
from wonderland.models.encoder_decoder import EncoderDecoder
from wonderland.models.heads import SequenceClassifier, SpanFinder
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.mixers.cross_attention import CrossAttention
from wonderland.nn.norms.norm import LayerNorm
from wonderland.nn.positions import Learned, Sinusoidal

OFFSET = 2  # rows of BART's tables of positions before that of position 0
SIDES = ("encoder", "decoder")


def _to_spec(marian: bool, options: Options, head: str, weights: WeightsView) -> Spec:
    dim = options.integer("d_model", 1024)
    depths = [options.depth(f"{side}_layers", 12) for side in SIDES]
    heads = [options.integer(f"{side}_attention_heads", 16) for side in SIDES]
    for side, count in zip(SIDES, heads, strict=True):
        if dim % count:
            raise options.error(f"{side}_attention_heads", count, f"a number of heads that divides d_model = {dim}")
    # What older programs wrote: it has to say what is so in all published models.
    said = {"normalize_before": False, "add_final_layer_norm": False, "normalize_embedding": not marian}
    said |= {"static_position_embeddings": marian, "num_hidden_layers": depths[0], "is_encoder_decoder": True}
    for name, value in said.items():
        options.require(name, value, None)
    options.ignore("encoder_layerdrop", "decoder_layerdrop", "init_std", "classif_dropout", "add_bias_logits")
    options.ignore("extra_pos_embeddings", "force_bos_token_to_be_generated", "num_attention_heads", "hidden_size")
    act, attention_dropout = "activation_function", options.probability("attention_dropout", 0.0)
    inner = [
        MLP.spec(
            hidden=options.integer(f"{side}_ffn_dim", 4096),
            activation=options.activation(act, "gelu"),
            bias=True,
            dropout=options.probability("activation_dropout", 0.0),
        )
        for side in SIDES
    ]
    common = {"bias": True, "dropout": attention_dropout}
    begin = options.config.get("decoder_start_token_id", 58100 if marian else 2)
    trunk = EncoderDecoder.spec(
        vocab=options.integer("vocab_size", 58101 if marian else 50265),
        dim=dim,
        depth=depths[0],
        target_depth=depths[1],
        reader=Attention.spec(heads=heads[0], **common, causal=False),
        mixer=Attention.spec(heads=heads[1], **common),
        cross=CrossAttention.spec(heads=heads[1], **common),
        reader_channel=inner[0],
        channel=inner[1],
        position=_positions(marian, options),
        placement="post",
        norm=LayerNorm.spec(eps=1e-5),
        embed_norm=not marian,
        scale="embedding" if options.boolean("scale_embedding", False) else "none",
        logit_bias=head == "lm",
        begin=begin if isinstance(begin, int) and begin >= 0 else 0,
        dropout=options.probability("dropout", 0.1),
        **_embeddings(marian, options, head, weights),
    )
    classifier_dropout = options.probability("classifier_dropout", 0.0)
    if head == "sequence":
        end = options.config.get("eos_token_id", 2)
        if not isinstance(end, int) or isinstance(end, bool):
            raise options.error("eos_token_id", end, "one end token")
        classes = options.classes if "id2label" in options.config else options.integer("num_labels", 3)
        return SequenceClassifier.spec(
            trunk=trunk, classes=classes, at=end, hidden=dim, activation="tanh", pad=options.pad,
            dropout=classifier_dropout,
        )  # fmt: skip
    if head == "spans":
        if options.classes != 2:
            raise options.error("num_labels", options.classes, "2: scores for the start and the end of a span")
        return SpanFinder.spec(trunk=trunk, pad=options.pad)
    return trunk


def _positions(marian: bool, options: Options) -> Spec:
    if marian:
        # A computed table, so the length is not limited here.
        options.ignore("max_position_embeddings")
        return Sinusoidal.spec(halves=True)
    return Learned.spec(length=options.integer("max_position_embeddings", 1024), offset=OFFSET)


def _embeddings(marian: bool, options: Options, head: str, weights: WeightsView) -> dict[str, Any]:
    """Whether source, target and head share their weights."""
    share, vocab = True, options.config.get("vocab_size", 58101)
    more: dict[str, Any] = {}
    if marian:
        share = options.boolean("share_encoder_decoder_embeddings", True)
        target = options.integer("decoder_vocab_size", vocab)
        if share and target != vocab:
            raise options.error("decoder_vocab_size", target, f"vocab_size = {vocab}, if embeddings are shared")
        more = {} if share else {"target_vocab": target}
    for side in SIDES if share else ():
        if not weights.equal(f"{side}.embed_tokens.weight", "shared.weight"):
            raise WonderlandError(
                f"The {side} of this {options.title} has its own embedding, which is not supported: it must equal shared.weight."
            )
    table = "model.shared.weight" if share else "model.decoder.embed_tokens.weight"
    tie = options.boolean("tie_word_embeddings", True)
    return {**more, "share": share, "tie": head != "lm" or weights.tied(tie, "lm_head.weight", table)}


def _trunk_names(trunk: Any) -> dict[str, Published | None]:
    shared = trunk.source_embedding is None
    table = "shared.weight" if shared else "decoder.embed_tokens.weight"
    names: dict[str, Published | None] = {
        "embedding.weight": Published(table),
        "source_embedding.weight": Published("encoder.embed_tokens.weight"),
        "position.weight": Published("decoder.embed_positions.weight"),
        "position.frequencies": None,
        "source_position.weight": Published("encoder.embed_positions.weight"),
        "embed_norm.*": Published("decoder.layernorm_embedding.*"),
        "source_embed_norm.*": Published("encoder.layernorm_embedding.*"),
        "logit_bias": Published("final_logits_bias", unit_axes=(0,)),
    }
    for side in SIDES:
        block, layer = f"{side}.blocks.#.", f"{side}.layers.#."
        norms = [
            "self_attn_layer_norm",
            *(["encoder_attn_layer_norm"] if side == "decoder" else []),
            "final_layer_norm",
        ]
        names |= {
            **{f"{block}norms.{i}.*": Published(f"{layer}{norm}.*") for i, norm in enumerate(norms)},
            f"{block}mixer.project.*": Published([f"{layer}self_attn.{part}_proj.*" for part in "qkv"]),
            f"{block}mixer.out.*": Published(f"{layer}self_attn.out_proj.*"),
            f"{block}cross.query.*": Published(f"{layer}encoder_attn.q_proj.*"),
            f"{block}cross.project.*": Published([f"{layer}encoder_attn.{part}_proj.*" for part in "kv"]),
            f"{block}cross.out.*": Published(f"{layer}encoder_attn.out_proj.*"),
            f"{block}channel.inward.*": Published(f"{layer}fc1.*"),
            f"{block}channel.outward.*": Published(f"{layer}fc2.*"),
        }
    return names


def _head_names(model: Any, head: str) -> dict[str, Published]:
    if head == "sequence":
        return {
            "hidden.*": Published("classification_head.dense.*"),
            "head.*": Published("classification_head.out_proj.*"),
        }
    own = {"logit_bias": Published("final_logits_bias", unit_axes=(0,))} if head == "lm" else {}
    return own | {"head.*": Published("qa_outputs.*" if head == "spans" else "lm_head.*")}


def _to_config(marian: bool, model: Any) -> dict[str, Any] | None:
    trunk = trunk_of(model)
    if not isinstance(trunk, EncoderDecoder):
        return None
    blocks: list[Any] = [trunk.encoder.blocks[0], trunk.decoder.blocks[0]]
    position = trunk.position
    if not isinstance(position, Sinusoidal if marian else Learned) or trunk.scale == "head":
        return None
    if not all(isinstance(block.mixer, Attention) and isinstance(block.channel, MLP) for block in blocks):
        return None
    config: dict[str, Any] = {
        "model_type": "marian" if marian else "bart",
        "vocab_size": trunk.source_vocab,
        "d_model": trunk.dim,
        "activation_function": activation_name(blocks[0].channel.activation),
        "activation_dropout": blocks[0].channel.dropout,
        "attention_dropout": blocks[0].mixer.dropout,
        "dropout": trunk.dropout,
        "scale_embedding": trunk.scale == "embedding",
        "max_position_embeddings": position.length if isinstance(position, Learned) else 1024,
        "is_encoder_decoder": True,
        "tie_word_embeddings": trunk.head is None,
        "pad_token_id": getattr(model, "pad", 1),
        "decoder_start_token_id": trunk.begin,
        "eos_token_id": model.at if isinstance(model, SequenceClassifier) and model.at is not None else 2,
    }
    for side, block in zip(SIDES, blocks, strict=True):
        config |= {
            f"{side}_layers": len(getattr(trunk, side).blocks),
            f"{side}_attention_heads": block.mixer.heads,
            f"{side}_ffn_dim": block.channel.inward.out_features,
        }
    if marian:
        config |= {
            "decoder_vocab_size": trunk.vocab,
            "share_encoder_decoder_embeddings": trunk.source_embedding is None,
        }
    else:
        config["classifier_dropout"] = model.dropout if isinstance(model, SequenceClassifier) else 0.0
    return config | (labels_config(model) if isinstance(model, SequenceClassifier) else {})


def _family(marian: bool, heads: dict[str, str]) -> Family:
    return Family(
        model_type="marian" if marian else "bart",
        title="Marian" if marian else "BART",
        heads=heads,
        prefix="model.",
        to_spec=partial(_to_spec, marian),
        trunk_names=_trunk_names,
        head_names=_head_names,
        to_config=partial(_to_config, marian),
        # Copies of the shared embedding, which `to_spec` compares, and the computed tables of Marian.
        unused=r"(model\.)?((encoder|decoder)\.(embed_tokens|version)(\.weight)?|shared\.weight"
        + (r"|(encoder|decoder)\.embed_positions\.weight)" if marian else ")"),
    )


BART = _family(
    False,
    {
        "BartForConditionalGeneration": "lm",
        "BartForSequenceClassification": "sequence",
        "BartForQuestionAnswering": "spans",
        "BartModel": "trunk",
    },
)
MARIAN = _family(True, {"MarianMTModel": "lm", "MarianModel": "trunk"})
