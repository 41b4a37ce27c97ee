"""BERT: an encoder with segment embeddings and post-norm blocks. Paper: Devlin et al., 2019."""

from collections.abc import Mapping
from typing import Any

from wonderland.checkpoints.families.family import Family, Published, WeightsView, labels_config, trunk_of
from wonderland.checkpoints.families.options import Options, activation_name
from wonderland.core import Spec, WonderlandError
from wonderland.models.encoder import Encoder
from wonderland.models.heads import MaskedLM, SequenceClassifier, SpanFinder, TokenClassifier
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.norms.norm import LayerNorm
from wonderland.nn.positions import Learned


def trunk_spec(
    options: Options, *, pooler: bool, offset: int = 0, segments: int = 2, default: Mapping[str, int] | None = None
) -> Spec:
    """The encoder that BERT and the families that follow it share.

    `offset` is the row of the table of positions that position 0 has; `segments` the default of type_vocab_size; `default`
    has those of sizes where they are not BERT's.
    """
    sizes = {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072, **(default or {})}
    dim, heads = (options.integer(name, sizes[name]) for name in ("hidden_size", "num_attention_heads"))
    if dim % heads:
        raise options.error("num_attention_heads", heads, f"a number of heads that divides hidden_size = {dim}")
    options.require("position_embedding_type", "absolute", None)
    rows = options.integer("max_position_embeddings", 512)
    if rows <= offset:
        raise options.error("max_position_embeddings", rows, f"more than {offset} rows, which come before position 0")
    position = Learned.spec(length=rows - offset, offset=offset) if offset else Learned.spec(length=rows)
    return Encoder.spec(
        vocab=options.integer("vocab_size", 30522),
        dim=dim,
        depth=options.depth("num_hidden_layers", 12),
        mixer=Attention.spec(heads=heads, bias=True, dropout=options.probability("attention_probs_dropout_prob", 0.1)),
        channel=MLP.spec(
            hidden=options.integer("intermediate_size", sizes["intermediate_size"]),
            activation=options.activation("hidden_act", "gelu"),
            bias=True,
        ),
        position=position,
        segments=options.integer("type_vocab_size", segments),
        norm=LayerNorm.spec(eps=options.number("layer_norm_eps", 1e-12)),
        pooler=pooler,
        dropout=options.probability("hidden_dropout_prob", 0.1),
    )


def _to_spec(options: Options, head: str, weights: WeightsView) -> Spec:
    # Published files still carry these options of older programs; nothing reads them.
    options.ignore(
        "directionality", *(f"pooler_{name}" for name in ("fc_size", "num_attention_heads", "num_fc_layers"))
    )
    options.ignore("pooler_size_per_head", "pooler_type")
    act, eps = options.activation("hidden_act", "gelu"), options.number("layer_norm_eps", 1e-12)
    dropout = options.probability("hidden_dropout_prob", 0.1)
    tie = options.boolean("tie_word_embeddings", True)
    pooler = head in ("sequence", "next_sentence", "pretraining")
    trunk = trunk_spec(options, pooler=pooler or (head == "trunk" and weights.has("pooler.dense.weight")))
    head_dropout = options.get("classifier_dropout", None)
    head_dropout = dropout if head_dropout is None else options.probability("classifier_dropout", 0.0)
    if head in ("lm", "pretraining"):
        tied = weights.tied(tie, "cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight")
        if tied and not weights.equal("cls.predictions.decoder.bias", "cls.predictions.bias"):
            raise WonderlandError(
                "The head of this masked language model has two biases that differ, cls.predictions.bias and "
                "cls.predictions.decoder.bias, so it is not clear which one it uses."
            )
        norm, sentences = LayerNorm.spec(eps=eps), head == "pretraining"
        return MaskedLM.spec(trunk=trunk, activation=act, norm=norm, tie=tied, sentences=sentences, pad=options.pad)
    if head in ("sequence", "next_sentence"):
        classes, head_dropout = (options.classes, head_dropout) if head == "sequence" else (2, 0.0)
        return SequenceClassifier.spec(
            trunk=trunk, classes=classes, pool="summary", pad=options.pad, dropout=head_dropout
        )
    if head == "tokens":
        return TokenClassifier.spec(trunk=trunk, classes=options.classes, pad=options.pad, dropout=head_dropout)
    if head == "spans":
        if options.classes != 2:
            raise options.error("num_labels", options.classes, "2: scores for the start and the end of a span")
        return SpanFinder.spec(trunk=trunk, pad=options.pad)
    return trunk


def trunk_names(trunk: Any) -> dict[str, Published | None]:
    block, theirs = "stack.blocks.#.", "encoder.layer.#."
    return {
        "embedding.weight": Published("embeddings.word_embeddings.weight"),
        "position.weight": Published("embeddings.position_embeddings.weight"),
        "segment.weight": Published("embeddings.token_type_embeddings.weight"),
        "norm.*": Published("embeddings.LayerNorm.*"),
        "pooler.*": Published("pooler.dense.*"),
        f"{block}norms.0.*": Published(f"{theirs}attention.output.LayerNorm.*"),
        f"{block}norms.1.*": Published(f"{theirs}output.LayerNorm.*"),
        f"{block}mixer.project.*": Published(
            [f"{theirs}attention.self.{part}.*" for part in ("query", "key", "value")]
        ),
        f"{block}mixer.out.*": Published(f"{theirs}attention.output.dense.*"),
        f"{block}channel.inward.*": Published(f"{theirs}intermediate.dense.*"),
        f"{block}channel.outward.*": Published(f"{theirs}output.dense.*"),
    }


def _head_names(model: Any, head: str) -> dict[str, Published]:
    if head in ("lm", "pretraining"):
        lm = "cls.predictions."
        bias = Published(f"{lm}bias")
        if model.head is not None:  # an untied output layer has a bias of its own
            bias = Published(f"{lm}decoder.bias", copies=(f"{lm}bias",))
        return {
            "transform.*": Published(f"{lm}transform.dense.*"),
            "norm.*": Published(f"{lm}transform.LayerNorm.*"),
            "bias": bias,
            "head.weight": Published(f"{lm}decoder.weight"),
            "pair.*": Published("cls.seq_relationship.*"),
        }
    return {
        "head.*": Published(
            {"next_sentence": "cls.seq_relationship.*", "spans": "qa_outputs.*"}.get(head, "classifier.*")
        )
    }


def trunk_config(model: Any) -> dict[str, Any] | None:
    """The options of config.json that BERT and the families that follow it share; None for a model of another kind."""
    trunk = trunk_of(model)
    if not isinstance(trunk, Encoder) or trunk.segment is None or not isinstance(trunk.position, Learned):
        return None
    block = trunk.stack.blocks[0]
    if not isinstance(block.mixer, Attention) or not isinstance(getattr(block, "channel", None), MLP):
        return None
    config = {
        "vocab_size": trunk.vocab,
        "hidden_size": trunk.dim,
        "num_hidden_layers": len(trunk.stack.blocks),
        "num_attention_heads": block.mixer.heads,
        "intermediate_size": block.channel.inward.out_features,
        "hidden_act": activation_name(block.channel.activation),
        "hidden_dropout_prob": trunk.dropout,
        "attention_probs_dropout_prob": block.mixer.dropout,
        "max_position_embeddings": trunk.position.weight.shape[0],
        "type_vocab_size": trunk.segments,
        "layer_norm_eps": getattr(block.norms[0], "eps", None),
        "classifier_dropout": getattr(model, "dropout", None) if model is not trunk else None,
        "tie_word_embeddings": not isinstance(model, MaskedLM) or model.head is None,
        "pad_token_id": getattr(model, "pad", 0),
    }
    return config | (labels_config(model) if isinstance(model, SequenceClassifier | TokenClassifier) else {})


def _to_config(model: Any) -> dict[str, Any] | None:
    config = trunk_config(model)
    return None if config is None else {"model_type": "bert", **config}


BERT = Family(
    model_type="bert",
    title="BERT",
    heads={
        "BertForMaskedLM": "lm",
        "BertForPreTraining": "pretraining",
        "BertForNextSentencePrediction": "next_sentence",
        "BertForSequenceClassification": "sequence",
        "BertForTokenClassification": "tokens",
        "BertForQuestionAnswering": "spans",
        "BertModel": "trunk",
    },
    prefix="bert.",
    to_spec=_to_spec,
    trunk_names=trunk_names,
    head_names=_head_names,
    to_config=_to_config,
    # The first published checkpoints also hold position ids, the pooler, both heads and copies of the bias.
    unused=r"(bert\.)?(embeddings\.position_ids|pooler\.dense\.(weight|bias))|cls\.seq_relationship\.(weight|bias)"
    r"|cls\.predictions\.(bias|decoder\.bias)",
)
