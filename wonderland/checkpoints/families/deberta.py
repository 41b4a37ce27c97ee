"""DeBERTa-v2 and v3: BERT with disentangled attention. Papers: He et al., 2021; He et al., 2023."""

from typing import Any

from wonderland.checkpoints.families.bert import trunk_names
from wonderland.checkpoints.families.family import Family, Published, WeightsView, labels_config, trunk_of
from wonderland.checkpoints.families.options import Options, activation_name
from wonderland.core import Spec
from wonderland.models.encoder import Encoder
from wonderland.models.heads import MaskedLM, SequenceClassifier, SpanFinder, TokenClassifier
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.disentangled_attention import TERMS, DisentangledAttention
from wonderland.nn.norms.norm import LayerNorm
from wonderland.nn.positions import Learned, RelativeTable


def _to_spec(options: Options, head: str, weights: WeightsView) -> Spec:
    trunk = _trunk_spec(options)
    dim, dropout = trunk.arguments["dim"], trunk.arguments["dropout"]
    act, norm = trunk.arguments["channel"].arguments["activation"], trunk.arguments["norm"]
    tie = options.boolean("tie_word_embeddings", True)
    pooler_act = options.activation("pooler_hidden_act", "gelu")
    head_dropout = options.get("cls_dropout", None)
    head_dropout = dropout if head_dropout is None else options.probability("cls_dropout", 0.0)
    options.ignore("legacy")
    if head == "lm":
        options.require("legacy", True)  # the name of one of two heads of transformers, which have other weights
        tied = weights.tied(tie, "cls.predictions.decoder.weight", "deberta.embeddings.word_embeddings.weight")
        return MaskedLM.spec(trunk=trunk, activation=act, norm=norm, tie=tied, pad=options.pad)
    if head == "sequence":
        return SequenceClassifier.spec(
            trunk=trunk, classes=options.classes, pool="first", hidden=dim, activation=pooler_act, pad=options.pad,
            dropout=head_dropout,
        )  # fmt: skip
    if head == "tokens":
        return TokenClassifier.spec(trunk=trunk, classes=options.classes, pad=options.pad, dropout=dropout)
    if head == "spans":
        if options.classes != 2:
            raise options.error("num_labels", options.classes, "2: scores for the start and the end of a span")
        return SpanFinder.spec(trunk=trunk, pad=options.pad)
    return trunk


def _trunk_spec(options: Options) -> Spec:
    dim, heads = options.integer("hidden_size", 1536), options.integer("num_attention_heads", 24)
    if dim % heads:
        raise options.error("num_attention_heads", heads, f"a number of heads that divides hidden_size = {dim}")
    for name in ("embedding_size", "pooler_hidden_size"):
        options.require(name, dim, None)
    options.require("attention_head_size", dim // heads, None)
    options.require("conv_kernel_size", 0, None)
    options.ignore("conv_act", "conv_groups", "pooler_dropout", "layer_norm_type", "padding_idx")
    norm = LayerNorm.spec(eps=options.number("layer_norm_eps", 1e-7))
    dropout, length = options.probability("hidden_dropout_prob", 0.1), options.integer("max_position_embeddings", 512)
    terms = options.get("pos_att_type", None) or []
    terms = [term.strip() for term in terms.lower().split("|")] if isinstance(terms, str) else terms
    if not isinstance(terms, list) or not set(terms) <= set(TERMS) or len(set(terms)) != len(terms):
        raise options.error("pos_att_type", terms, "c2p, p2c or both")
    farthest = options.integer("max_relative_positions", -1, least=-(1 << 24))
    buckets = options.integer("position_buckets", -1, least=-(1 << 24))
    named = options.get("norm_rel_ebd", "none")
    if named not in ("none", "layer_norm"):
        raise options.error("norm_rel_ebd", named, "none or layer_norm")
    relative = options.boolean("relative_attention", False)
    table = RelativeTable.spec(
        farthest=farthest if farthest > 0 else length,
        buckets=max(0, buckets),
        norm=norm if named == "layer_norm" else None,
        dropout=dropout,
    )
    biased = options.boolean("position_biased_input", True)
    return Encoder.spec(
        vocab=options.integer("vocab_size", 128100),
        dim=dim,
        depth=options.depth("num_hidden_layers", 24),
        mixer=DisentangledAttention.spec(
            heads=heads,
            terms=terms,
            shared_keys=options.boolean("share_att_key", False) or not relative,
            dropout=options.probability("attention_probs_dropout_prob", 0.1),
        ),
        channel=MLP.spec(
            hidden=options.integer("intermediate_size", 6144),
            activation=options.activation("hidden_act", "gelu"),
            bias=True,
        ),
        position=Learned.spec(length=length) if biased else False,
        relative=table if relative else None,
        segments=options.integer("type_vocab_size", 0, least=0),
        norm=norm,
        dropout=dropout,
    )


def _trunk_names(trunk: Any) -> dict[str, Published | None]:
    block, theirs = "stack.blocks.#.mixer.", "encoder.layer.#.attention.self."
    return trunk_names(trunk) | {
        f"{block}project.*": Published([f"{theirs}{part}_proj.*" for part in ("query", "key", "value")]),
        f"{block}position_key.*": Published(f"{theirs}pos_key_proj.*"),
        f"{block}position_query.*": Published(f"{theirs}pos_query_proj.*"),
        "stack.position.weight": Published("encoder.rel_embeddings.weight"),
        "stack.position.norm.*": Published("encoder.LayerNorm.*"),
    }


def _head_names(model: Any, head: str) -> dict[str, Published]:
    if head == "lm":
        lm = "cls.predictions."
        bias = Published(f"{lm}bias")
        if model.head is not None:  # an untied output layer has a bias of its own
            bias = Published(f"{lm}decoder.bias", copies=(f"{lm}bias",))
        return {
            "transform.*": Published(f"{lm}transform.dense.*"),
            "norm.*": Published(f"{lm}transform.LayerNorm.*"),
            "bias": bias,
            "head.weight": Published(f"{lm}decoder.weight"),
        }
    if head == "sequence":
        return {"hidden.*": Published("pooler.dense.*"), "head.*": Published("classifier.*")}
    return {"head.*": Published("qa_outputs.*" if head == "spans" else "classifier.*")}


def _to_config(model: Any) -> dict[str, Any] | None:
    trunk = trunk_of(model)
    if not isinstance(trunk, Encoder):
        return None
    block: Any = trunk.stack.blocks[0]
    mixer, channel, table = block.mixer, getattr(block, "channel", None), trunk.stack.position
    if not isinstance(mixer, DisentangledAttention) or not isinstance(channel, MLP):
        return None
    relative = isinstance(table, RelativeTable)
    config = {
        "model_type": "deberta-v2",
        "vocab_size": trunk.vocab,
        "hidden_size": trunk.dim,
        "num_hidden_layers": len(trunk.stack.blocks),
        "num_attention_heads": mixer.heads,
        "intermediate_size": channel.inward.out_features,
        "hidden_act": activation_name(channel.activation),
        "hidden_dropout_prob": trunk.dropout,
        "attention_probs_dropout_prob": mixer.dropout,
        "max_position_embeddings": trunk.position.length if isinstance(trunk.position, Learned) else 512,
        "position_biased_input": trunk.position is not None,
        "type_vocab_size": trunk.segments,
        "layer_norm_eps": getattr(block.norms[0], "eps", None),
        "relative_attention": relative,
        "pos_att_type": list(mixer.terms),
        "share_att_key": mixer.position_key is None and mixer.position_query is None,
        "tie_word_embeddings": not isinstance(model, MaskedLM) or model.head is None,
        "pad_token_id": getattr(model, "pad", 0),
    }
    if relative:
        config |= {"max_relative_positions": table.farthest, "position_buckets": table.buckets or -1}
        config["norm_rel_ebd"] = "none" if table.norm is None else "layer_norm"
    if isinstance(model, SequenceClassifier):
        config |= {"cls_dropout": model.dropout, "pooler_hidden_act": activation_name(model.activation)}
        config["pooler_hidden_size"] = trunk.dim
    return config | (labels_config(model) if isinstance(model, SequenceClassifier | TokenClassifier) else {})


DEBERTA_V2 = Family(
    model_type="deberta-v2",
    title="DeBERTa-v2",
    heads={
        "DebertaV2ForMaskedLM": "lm",
        "DebertaV2ForSequenceClassification": "sequence",
        "DebertaV2ForTokenClassification": "tokens",
        "DebertaV2ForQuestionAnswering": "spans",
        "DebertaV2Model": "trunk",
    },
    prefix="deberta.",
    to_spec=_to_spec,
    trunk_names=_trunk_names,
    head_names=_head_names,
    to_config=_to_config,
    # Published files also hold the heads of pretraining, and a table of positions that their options leave unused.
    unused=r"(deberta\.)?embeddings\.(position_ids|position_embeddings\.weight)|(lm_predictions|mask_predictions)\..*"
    r"|cls\.predictions\.(bias|decoder\.(weight|bias))|pooler\.dense\.(weight|bias)|classifier\.(weight|bias)",
)
