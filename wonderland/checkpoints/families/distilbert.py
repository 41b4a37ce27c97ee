"""DistilBERT: BERT without segment embeddings and pooler, at half the depth. Paper: Sanh et al., 2019."""

from typing import Any

from wonderland.checkpoints.families.family import Family, Published, WeightsView, labels_config, trunk_of
from wonderland.checkpoints.families.options import Options, activation_name
from wonderland.core import Spec
from wonderland.models.encoder import Encoder
from wonderland.models.heads import MaskedLM, SequenceClassifier, SpanFinder, TokenClassifier
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.norms.norm import LayerNorm
from wonderland.nn.positions import Learned

EPS = 1e-12


def _to_spec(options: Options, head: str, weights: WeightsView) -> Spec:
    dim, heads = options.integer("dim", 768), options.integer("n_heads", 12)
    if dim % heads:
        raise options.error("n_heads", heads, f"a number of heads that divides dim = {dim}")
    # It only chooses the initial values of the position table, which the file holds.
    options.ignore("sinusoidal_pos_embds")
    act, norm = options.activation("activation", "gelu"), LayerNorm.spec(eps=EPS)
    dropout = options.probability("dropout", 0.1)
    span_dropout = options.probability("qa_dropout", 0.1)
    sequence_dropout = options.probability("seq_classif_dropout", 0.2)
    tie = options.boolean("tie_word_embeddings", True)
    options.ignore("tie_weights_")
    trunk = Encoder.spec(
        vocab=options.integer("vocab_size", 30522),
        dim=dim,
        depth=options.depth("n_layers", 6),
        mixer=Attention.spec(heads=heads, bias=True, dropout=options.probability("attention_dropout", 0.1)),
        channel=MLP.spec(hidden=options.integer("hidden_dim", 3072), activation=act, bias=True),
        position=Learned.spec(length=options.integer("max_position_embeddings", 512)),
        norm=norm,
        dropout=dropout,
    )
    if head == "lm":
        tied = weights.tied(tie, "vocab_projector.weight", "distilbert.embeddings.word_embeddings.weight")
        return MaskedLM.spec(trunk=trunk, activation=act, norm=norm, tie=tied, pad=options.pad)
    if head == "sequence":
        head_options = {"pool": "first", "hidden": dim, "activation": "relu", "dropout": sequence_dropout}
        return SequenceClassifier.spec(trunk=trunk, classes=options.classes, pad=options.pad, **head_options)
    if head == "tokens":
        return TokenClassifier.spec(trunk=trunk, classes=options.classes, pad=options.pad, dropout=dropout)
    if head == "spans":
        if options.classes != 2:
            raise options.error("num_labels", options.classes, "2: scores for the start and the end of a span")
        return SpanFinder.spec(trunk=trunk, pad=options.pad, dropout=span_dropout)
    return trunk


def _trunk_names(trunk: Any) -> dict[str, Published | None]:
    block, theirs = "stack.blocks.#.", "transformer.layer.#."
    return {
        "embedding.weight": Published("embeddings.word_embeddings.weight"),
        "position.weight": Published("embeddings.position_embeddings.weight"),
        "norm.*": Published("embeddings.LayerNorm.*"),
        f"{block}norms.0.*": Published(f"{theirs}sa_layer_norm.*"),
        f"{block}norms.1.*": Published(f"{theirs}output_layer_norm.*"),
        f"{block}mixer.project.*": Published([f"{theirs}attention.{part}_lin.*" for part in "qkv"]),
        f"{block}mixer.out.*": Published(f"{theirs}attention.out_lin.*"),
        f"{block}channel.inward.*": Published(f"{theirs}ffn.lin1.*"),
        f"{block}channel.outward.*": Published(f"{theirs}ffn.lin2.*"),
    }


def _head_names(model: Any, head: str) -> dict[str, Published]:
    if head == "lm":
        return {
            "transform.*": Published("vocab_transform.*"),
            "norm.*": Published("vocab_layer_norm.*"),
            "bias": Published("vocab_projector.bias"),
            "head.weight": Published("vocab_projector.weight"),
        }
    if head == "sequence":
        return {"hidden.*": Published("pre_classifier.*"), "head.*": Published("classifier.*")}
    return {"head.*": Published("qa_outputs.*" if head == "spans" else "classifier.*")}


def _to_config(model: Any) -> dict[str, Any] | None:
    trunk = trunk_of(model)
    if not isinstance(trunk, Encoder) or trunk.segment is not None or not isinstance(trunk.position, Learned):
        return None
    block = trunk.stack.blocks[0]
    if not isinstance(block.mixer, Attention) or not isinstance(getattr(block, "channel", None), MLP):
        return None
    config = {
        "model_type": "distilbert",
        "vocab_size": trunk.vocab,
        "dim": trunk.dim,
        "n_layers": len(trunk.stack.blocks),
        "n_heads": block.mixer.heads,
        "hidden_dim": block.channel.inward.out_features,
        "activation": activation_name(block.channel.activation),
        "dropout": trunk.dropout,
        "attention_dropout": block.mixer.dropout,
        "max_position_embeddings": trunk.position.weight.shape[0],
        "tie_word_embeddings": not isinstance(model, MaskedLM) or model.head is None,
        "pad_token_id": getattr(model, "pad", 0),
    }
    if isinstance(model, SpanFinder):
        config["qa_dropout"] = model.dropout
    if isinstance(model, SequenceClassifier):
        config["seq_classif_dropout"] = model.dropout
    return config | (labels_config(model) if isinstance(model, SequenceClassifier | TokenClassifier) else {})


DISTILBERT = Family(
    model_type="distilbert",
    title="DistilBERT",
    heads={
        "DistilBertForMaskedLM": "lm",
        "DistilBertForSequenceClassification": "sequence",
        "DistilBertForTokenClassification": "tokens",
        "DistilBertForQuestionAnswering": "spans",
        "DistilBertModel": "trunk",
    },
    prefix="distilbert.",
    to_spec=_to_spec,
    trunk_names=_trunk_names,
    head_names=_head_names,
    to_config=_to_config,
    unused=r"(distilbert\.)?embeddings\.position_ids",
)
