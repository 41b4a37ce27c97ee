"""ALBERT: BERT with narrow embeddings, whose layers share their weights in groups. Paper: Lan et al., 2020."""

from typing import Any

from wonderland.checkpoints.families.bert import trunk_config, trunk_names, trunk_spec
from wonderland.checkpoints.families.family import Family, Published, WeightsView, trunk_of
from wonderland.checkpoints.families.options import Options
from wonderland.core import Spec
from wonderland.models.heads import MaskedLM, SequenceClassifier, SpanFinder, TokenClassifier
from wonderland.nn.blocks.shared_stack import SharedStack
from wonderland.nn.norms.norm import LayerNorm

SIZES = {"hidden_size": 4096, "num_attention_heads": 64, "intermediate_size": 16384, "vocab_size": 30000}
OTHER = {"hidden_act": "gelu_new", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def _to_spec(options: Options, head: str, weights: WeightsView) -> Spec:
    options.config = {**SIZES, **OTHER, **options.config}
    # Published files still carry these options of older programs; nothing reads them.
    options.ignore("down_scale_factor", "gap_size", "net_structure_type", "num_memory_blocks", "layers_to_keep")
    act, eps = options.activation("hidden_act", "gelu_new"), options.number("layer_norm_eps", 1e-12)
    tie = options.boolean("tie_word_embeddings", True)
    dropout = options.probability("classifier_dropout_prob", 0.1)
    groups, depth = options.integer("num_hidden_groups", 1), options.depth("num_hidden_layers", 12)
    if groups > depth:
        raise options.error("num_hidden_groups", groups, f"at most num_hidden_layers = {depth} groups")
    with_pooler = head in ("sequence", "pretraining") or (head == "trunk" and weights.has("pooler.weight"))
    trunk = trunk_spec(options, pooler=with_pooler).changed(
        embed_dim=options.integer("embedding_size", 128),
        groups=groups,
        group_depth=options.integer("inner_group_num", 1),
    )
    if head in ("lm", "pretraining"):
        tied = weights.tied(tie, "predictions.decoder.weight", "albert.embeddings.word_embeddings.weight")
        norm = LayerNorm.spec(eps=eps)
        return MaskedLM.spec(
            trunk=trunk, activation=act, norm=norm, tie=tied, sentences=head == "pretraining", pad=options.pad
        )
    if head == "sequence":
        return SequenceClassifier.spec(
            trunk=trunk, classes=options.classes, pool="summary", pad=options.pad, dropout=dropout
        )
    if head == "tokens":
        return TokenClassifier.spec(trunk=trunk, classes=options.classes, pad=options.pad, dropout=dropout)
    if head == "spans":
        if options.classes != 2:
            raise options.error("num_labels", options.classes, "2: scores for the start and the end of a span")
        return SpanFinder.spec(trunk=trunk, pad=options.pad)
    return trunk


def _trunk_names(trunk: Any) -> dict[str, Published | None]:
    names: dict[str, Published | None] = {
        ours: published for ours, published in trunk_names(trunk).items() if not ours.startswith("stack.")
    }
    names |= {
        "pooler.*": Published("pooler.*"),
        "expand.*": Published("encoder.embedding_hidden_mapping_in.*"),
    }
    for index in range(len(trunk.stack.blocks)):
        group, layer = divmod(index, trunk.stack.group_depth)
        block, theirs = f"stack.blocks.{index}.", f"encoder.albert_layer_groups.{group}.albert_layers.{layer}."
        attention = f"{theirs}attention."
        names |= {
            f"{block}norms.0.*": Published(f"{attention}LayerNorm.*"),
            f"{block}norms.1.*": Published(f"{theirs}full_layer_layer_norm.*"),
            f"{block}mixer.project.*": Published([f"{attention}{part}.*" for part in ("query", "key", "value")]),
            f"{block}mixer.out.*": Published(f"{attention}dense.*"),
            f"{block}channel.inward.*": Published(f"{theirs}ffn.*"),
            f"{block}channel.outward.*": Published(f"{theirs}ffn_output.*"),
        }
    return names


def _head_names(model: Any, head: str) -> dict[str, Published]:
    if head in ("lm", "pretraining"):
        bias = Published("predictions.bias")
        if model.head is not None:  # an untied output layer has a bias of its own
            bias = Published("predictions.decoder.bias", copies=("predictions.bias",))
        return {
            "transform.*": Published("predictions.dense.*"),
            "norm.*": Published("predictions.LayerNorm.*"),
            "bias": bias,
            "head.weight": Published("predictions.decoder.weight"),
            "pair.*": Published("sop_classifier.classifier.*"),
        }
    return {"head.*": Published("qa_outputs.*" if head == "spans" else "classifier.*")}


def _to_config(model: Any) -> dict[str, Any] | None:
    config, trunk = trunk_config(model), trunk_of(model)
    if config is None or not isinstance(trunk.stack, SharedStack):
        return None
    dropout = config.pop("classifier_dropout")
    return {
        **config,
        "model_type": "albert",
        "embedding_size": trunk.embed_dim,
        "num_hidden_layers": len(trunk.stack.order) // trunk.stack.group_depth,
        "num_hidden_groups": trunk.stack.groups,
        "inner_group_num": trunk.stack.group_depth,
        "classifier_dropout_prob": 0.1 if dropout is None else dropout,
    }


ALBERT = Family(
    model_type="albert",
    title="ALBERT",
    heads={
        "AlbertForMaskedLM": "lm",
        "AlbertForPreTraining": "pretraining",
        "AlbertForSequenceClassification": "sequence",
        "AlbertForTokenClassification": "tokens",
        "AlbertForQuestionAnswering": "spans",
        "AlbertModel": "trunk",
    },
    prefix="albert.",
    to_spec=_to_spec,
    trunk_names=_trunk_names,
    head_names=_head_names,
    to_config=_to_config,
    unused=r"(albert\.)?(embeddings\.position_ids|pooler\.(weight|bias))|predictions\.(bias|decoder\.(weight|bias))"
    r"|sop_classifier\.classifier\.(weight|bias)",
)
