"""DistilBERT: BERT without segments and pooler, half as deep."""

from typing import Any

from wonderland.checkpoints.families.family import Family, To, labels_config, trunk_of
from wonderland.checkpoints.families.options import Options, published
from wonderland.core import Spec
from wonderland.models.encoder import Encoder
from wonderland.models.heads import MaskedLM, SequenceClassifier, SpanFinder, TokenClassifier
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.norms.norm import LayerNorm
from wonderland.nn.positions import Learned

EPS = 1e-12


def _describe(options: Options, head: str, file: Any) -> Spec:
    dim, heads = options.whole("dim", 768), options.whole("n_heads", 12)
    if dim % heads:
        raise options.wrong("n_heads", heads, f"heads that divide dim = {dim}")
    # Sinusoidal positions are where the table begins; the file has it as it is.
    options.ignore("sinusoidal_pos_embds")
    act, norm = options.activation("activation", "gelu"), LayerNorm.spec(eps=EPS)
    dropout = options.chance("dropout", 0.1)
    spans, sequence = options.chance("qa_dropout", 0.1), options.chance("seq_classif_dropout", 0.2)
    tie = options.yes("tie_word_embeddings", True)
    options.ignore("tie_weights_")
    trunk = Encoder.spec(
        vocab=options.whole("vocab_size", 30522),
        dim=dim,
        depth=options.depth("n_layers", 6),
        mixer=Attention.spec(heads=heads, bias=True, dropout=options.chance("attention_dropout", 0.1)),
        channel=MLP.spec(hidden=options.whole("hidden_dim", 3072), activation=act, bias=True),
        position=Learned.spec(length=options.whole("max_position_embeddings", 512)),
        norm=norm,
        dropout=dropout,
    )
    if head == "words":
        tied = file.tied(tie, "vocab_projector.weight", "distilbert.embeddings.word_embeddings.weight")
        return MaskedLM.spec(trunk=trunk, activation=act, norm=norm, tie=tied, pad=options.pad)
    if head == "sequence":
        how = {"pool": "first", "hidden": dim, "activation": "relu", "dropout": sequence}
        return SequenceClassifier.spec(trunk=trunk, classes=options.labels, pad=options.pad, **how)
    if head == "tags":
        return TokenClassifier.spec(trunk=trunk, classes=options.labels, pad=options.pad, dropout=dropout)
    if head == "spans":
        if options.labels != 2:
            raise options.wrong("num_labels", options.labels, "two scores a token, where a span begins and ends")
        return SpanFinder.spec(trunk=trunk, pad=options.pad, dropout=spans)
    return trunk


def _names(trunk: Any) -> dict[str, To | None]:
    block, theirs = "stack.blocks.#.", "transformer.layer.#."
    return {
        "embedding.weight": To("embeddings.word_embeddings.weight"),
        "position.weight": To("embeddings.position_embeddings.weight"),
        "norm.*": To("embeddings.LayerNorm.*"),
        f"{block}norms.0.*": To(f"{theirs}sa_layer_norm.*"),
        f"{block}norms.1.*": To(f"{theirs}output_layer_norm.*"),
        f"{block}mixer.project.*": To([f"{theirs}attention.{part}_lin.*" for part in "qkv"]),
        f"{block}mixer.out.*": To(f"{theirs}attention.out_lin.*"),
        f"{block}channel.inward.*": To(f"{theirs}ffn.lin1.*"),
        f"{block}channel.outward.*": To(f"{theirs}ffn.lin2.*"),
    }


def _head_names(model: Any, head: str) -> dict[str, To]:
    if head == "words":
        return {
            "transform.*": To("vocab_transform.*"),
            "norm.*": To("vocab_layer_norm.*"),
            "bias": To("vocab_projector.bias"),
            "head.weight": To("vocab_projector.weight"),
        }
    if head == "sequence":
        return {"hidden.*": To("pre_classifier.*"), "head.*": To("classifier.*")}
    return {"head.*": To("qa_outputs.*" if head == "spans" else "classifier.*")}


def _config(model: Any) -> dict[str, Any] | None:
    trunk = trunk_of(model)
    if not isinstance(trunk, Encoder) or trunk.segment is not None or not isinstance(trunk.position, Learned):
        return None
    block = trunk.stack.blocks[0]
    if not isinstance(block.mixer, Attention) or not isinstance(getattr(block, "channel", None), MLP):
        return None
    found = {
        "model_type": "distilbert",
        "vocab_size": trunk.vocab,
        "dim": trunk.dim,
        "n_layers": len(trunk.stack.blocks),
        "n_heads": block.mixer.heads,
        "hidden_dim": block.channel.inward.out_features,
        "activation": published(block.channel.activation),
        "dropout": trunk.dropout,
        "attention_dropout": block.mixer.dropout,
        "max_position_embeddings": trunk.position.weight.shape[0],
        "tie_word_embeddings": not isinstance(model, MaskedLM) or model.head is None,
        "pad_token_id": getattr(model, "pad", 0),
    }
    if isinstance(model, SpanFinder):
        found["qa_dropout"] = model.dropout
    if isinstance(model, SequenceClassifier):
        found["seq_classif_dropout"] = model.dropout
    return found | (labels_config(model) if isinstance(model, SequenceClassifier | TokenClassifier) else {})


DISTILBERT = Family(
    kind="distilbert",
    title="DistilBERT",
    heads={
        "DistilBertForMaskedLM": "words",
        "DistilBertForSequenceClassification": "sequence",
        "DistilBertForTokenClassification": "tags",
        "DistilBertForQuestionAnswering": "spans",
        "DistilBertModel": "trunk",
    },
    prefix="distilbert.",
    describe=_describe,
    names=_names,
    head_names=_head_names,
    config=_config,
    spare=r"(distilbert\.)?embeddings\.position_ids",
)
