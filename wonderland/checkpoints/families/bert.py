"""BERT: an encoder with segments and norms after each step."""

from typing import Any

from wonderland.checkpoints.families.family import Family, To, labels_config, trunk_of
from wonderland.checkpoints.families.options import Options, published
from wonderland.core import Spec, WonderlandError
from wonderland.models.encoder import Encoder
from wonderland.models.heads import MaskedLM, SequenceClassifier, SpanFinder, TokenClassifier
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.norms.norm import LayerNorm
from wonderland.nn.positions import Learned


def _describe(options: Options, head: str, file: Any) -> Spec:
    dim, heads = options.whole("hidden_size", 768), options.whole("num_attention_heads", 12)
    if dim % heads:
        raise options.wrong("num_attention_heads", heads, f"heads that divide hidden_size = {dim}")
    options.only("position_embedding_type", "absolute", None)
    # Left over in published files from programs that are no more.
    options.ignore(
        "directionality", *(f"pooler_{name}" for name in ("fc_size", "num_attention_heads", "num_fc_layers"))
    )
    options.ignore("pooler_size_per_head", "pooler_type")
    act, eps = options.activation("hidden_act", "gelu"), options.number("layer_norm_eps", 1e-12)
    dropout = options.chance("hidden_dropout_prob", 0.1)
    tie = options.yes("tie_word_embeddings", True)
    trunk = Encoder.spec(
        vocab=options.whole("vocab_size", 30522),
        dim=dim,
        depth=options.depth("num_hidden_layers", 12),
        mixer=Attention.spec(heads=heads, bias=True, dropout=options.chance("attention_probs_dropout_prob", 0.1)),
        channel=MLP.spec(hidden=options.whole("intermediate_size", 3072), activation=act, bias=True),
        position=Learned.spec(length=options.whole("max_position_embeddings", 512)),
        segments=options.whole("type_vocab_size", 2),
        norm=LayerNorm.spec(eps=eps),
        pooler=head in ("sequence", "next", "pretraining") or (head == "trunk" and file.has("pooler.dense.weight")),
        dropout=dropout,
    )
    last = options.get("classifier_dropout", None)
    last = dropout if last is None else options.chance("classifier_dropout", 0.0)
    if head in ("words", "pretraining"):
        tied = file.tied(tie, "cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight")
        if tied and not file.same("cls.predictions.decoder.bias", "cls.predictions.bias"):
            raise WonderlandError("The file has two different biases of the masked language model's head: which is it?")
        pairs = head == "pretraining"
        norm = LayerNorm.spec(eps=eps)
        return MaskedLM.spec(trunk=trunk, activation=act, norm=norm, tie=tied, sentences=pairs, pad=options.pad)
    if head in ("sequence", "next"):
        classes, last = (options.labels, last) if head == "sequence" else (2, 0.0)
        return SequenceClassifier.spec(trunk=trunk, classes=classes, pool="summary", pad=options.pad, dropout=last)
    if head == "tags":
        return TokenClassifier.spec(trunk=trunk, classes=options.labels, pad=options.pad, dropout=last)
    if head == "spans":
        if options.labels != 2:
            raise options.wrong("num_labels", options.labels, "two scores a token, where a span begins and ends")
        return SpanFinder.spec(trunk=trunk, pad=options.pad)
    return trunk


def _names(trunk: Any) -> dict[str, To | None]:
    block, theirs = "stack.blocks.#.", "encoder.layer.#."
    return {
        "embedding.weight": To("embeddings.word_embeddings.weight"),
        "position.weight": To("embeddings.position_embeddings.weight"),
        "segment.weight": To("embeddings.token_type_embeddings.weight"),
        "norm.*": To("embeddings.LayerNorm.*"),
        "pooler.*": To("pooler.dense.*"),
        f"{block}norms.0.*": To(f"{theirs}attention.output.LayerNorm.*"),
        f"{block}norms.1.*": To(f"{theirs}output.LayerNorm.*"),
        f"{block}mixer.project.*": To([f"{theirs}attention.self.{part}.*" for part in ("query", "key", "value")]),
        f"{block}mixer.out.*": To(f"{theirs}attention.output.dense.*"),
        f"{block}channel.inward.*": To(f"{theirs}intermediate.dense.*"),
        f"{block}channel.outward.*": To(f"{theirs}output.dense.*"),
    }


def _head_names(model: Any, head: str) -> dict[str, To]:
    if head in ("words", "pretraining"):
        words = "cls.predictions."
        bias = To(f"{words}bias")
        if model.head is not None:  # an untied decoder has its bias for itself
            bias = To(f"{words}decoder.bias", also=(f"{words}bias",))
        return {
            "transform.*": To(f"{words}transform.dense.*"),
            "norm.*": To(f"{words}transform.LayerNorm.*"),
            "bias": bias,
            "head.weight": To(f"{words}decoder.weight"),
            "pair.*": To("cls.seq_relationship.*"),
        }
    return {"head.*": To({"next": "cls.seq_relationship.*", "spans": "qa_outputs.*"}.get(head, "classifier.*"))}


def _config(model: Any) -> dict[str, Any] | None:
    trunk = trunk_of(model)
    if not isinstance(trunk, Encoder) or trunk.segment is None or not isinstance(trunk.position, Learned):
        return None
    block = trunk.stack.blocks[0]
    if not isinstance(block.mixer, Attention) or not isinstance(getattr(block, "channel", None), MLP):
        return None
    found = {
        "model_type": "bert",
        "vocab_size": trunk.vocab,
        "hidden_size": trunk.dim,
        "num_hidden_layers": len(trunk.stack.blocks),
        "num_attention_heads": block.mixer.heads,
        "intermediate_size": block.channel.inward.out_features,
        "hidden_act": published(block.channel.activation),
        "hidden_dropout_prob": trunk.dropout,
        "attention_probs_dropout_prob": block.mixer.dropout,
        "max_position_embeddings": trunk.position.weight.shape[0],
        "type_vocab_size": trunk.segments,
        "layer_norm_eps": getattr(block.norms[0], "eps", None),
        "classifier_dropout": getattr(model, "dropout", None) if model is not trunk else None,
        "tie_word_embeddings": not isinstance(model, MaskedLM) or model.head is None,
        "pad_token_id": getattr(model, "pad", 0),
    }
    return found | (labels_config(model) if isinstance(model, SequenceClassifier | TokenClassifier) else {})


BERT = Family(
    kind="bert",
    title="BERT",
    heads={
        "BertForMaskedLM": "words",
        "BertForPreTraining": "pretraining",
        "BertForNextSentencePrediction": "next",
        "BertForSequenceClassification": "sequence",
        "BertForTokenClassification": "tags",
        "BertForQuestionAnswering": "spans",
        "BertModel": "trunk",
    },
    prefix="bert.",
    describe=_describe,
    names=_names,
    head_names=_head_names,
    config=_config,
    # What the first published checkpoints have beside what a head needs: ids, the pooler, the other head, copies.
    spare=r"(bert\.)?(embeddings\.position_ids|pooler\.dense\.(weight|bias))|cls\.seq_relationship\.(weight|bias)"
    r"|cls\.predictions\.(bias|decoder\.bias)",
)
