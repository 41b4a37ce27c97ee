"""RoBERTa and XLM-RoBERTa: BERT with a table of positions that begins after the padding token, and other heads.

Papers: Liu et al., 2019; Conneau et al., 2020.
"""

from functools import partial
from typing import Any

from wonderland.checkpoints.families.bert import trunk_config, trunk_names, trunk_spec
from wonderland.checkpoints.families.family import Family, Published, WeightsView, trunk_of
from wonderland.checkpoints.families.options import Options
from wonderland.core import Spec, WonderlandError
from wonderland.models.heads import MaskedLM, SequenceClassifier, SpanFinder, TokenClassifier
from wonderland.nn.norms.norm import LayerNorm


def _to_spec(options: Options, head: str, weights: WeightsView) -> Spec:
    pad = options.integer("pad_token_id", 1, least=0)
    eps, dropout = options.number("layer_norm_eps", 1e-12), options.probability("hidden_dropout_prob", 0.1)
    tie = options.boolean("tie_word_embeddings", True)
    has_pooler = head == "trunk" and weights.has("pooler.dense.weight")
    trunk = trunk_spec(options, pooler=has_pooler, offset=pad + 1)
    head_dropout = options.get("classifier_dropout", None)
    head_dropout = dropout if head_dropout is None else options.probability("classifier_dropout", 0.0)
    if head == "lm":
        tied = weights.tied(tie, "lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight")
        if tied and not weights.equal("lm_head.decoder.bias", "lm_head.bias"):
            raise WonderlandError(
                "The head of this masked language model has two biases that differ, lm_head.bias and "
                "lm_head.decoder.bias, so it is not clear which one it uses."
            )
        return MaskedLM.spec(trunk=trunk, activation="gelu", norm=LayerNorm.spec(eps=eps), tie=tied, pad=pad)
    if head == "sequence":
        hidden = trunk.arguments["dim"]
        return SequenceClassifier.spec(
            trunk=trunk, classes=options.classes, pool="first", hidden=hidden, activation="tanh", pad=pad,
            dropout=head_dropout,
        )  # fmt: skip
    if head == "tokens":
        return TokenClassifier.spec(trunk=trunk, classes=options.classes, pad=pad, dropout=head_dropout)
    if head == "spans":
        if options.classes != 2:
            raise options.error("num_labels", options.classes, "2: scores for the start and the end of a span")
        return SpanFinder.spec(trunk=trunk, pad=pad)
    return trunk


def _head_names(model: Any, head: str) -> dict[str, Published]:
    if head == "lm":
        bias = Published("lm_head.bias")
        if model.head is not None:  # an untied output layer has a bias of its own
            bias = Published("lm_head.decoder.bias", copies=("lm_head.bias",))
        return {
            "transform.*": Published("lm_head.dense.*"),
            "norm.*": Published("lm_head.layer_norm.*"),
            "bias": bias,
            "head.weight": Published("lm_head.decoder.weight"),
        }
    if head == "sequence":
        return {"hidden.*": Published("classifier.dense.*"), "head.*": Published("classifier.out_proj.*")}
    return {"head.*": Published("qa_outputs.*" if head == "spans" else "classifier.*")}


def _to_config(model_type: str, model: Any) -> dict[str, Any] | None:
    config = trunk_config(model)
    offset = getattr(getattr(trunk_of(model), "position", None), "offset", 0)
    if config is None or not offset:
        return None
    return {**config, "model_type": model_type, "pad_token_id": offset - 1}


def _family(model_type: str, title: str, stem: str) -> Family:
    return Family(
        model_type=model_type,
        title=title,
        heads={
            f"{stem}ForMaskedLM": "lm",
            f"{stem}ForSequenceClassification": "sequence",
            f"{stem}ForTokenClassification": "tokens",
            f"{stem}ForQuestionAnswering": "spans",
            f"{stem}Model": "trunk",
        },
        prefix="roberta.",
        to_spec=_to_spec,
        trunk_names=trunk_names,
        head_names=_head_names,
        to_config=partial(_to_config, model_type),
        unused=r"(roberta\.)?(embeddings\.position_ids|pooler\.dense\.(weight|bias))|lm_head\.(bias|decoder\.(bias|weight))",
    )


ROBERTA = _family("roberta", "RoBERTa", "Roberta")
XLM_ROBERTA = _family("xlm-roberta", "XLM-RoBERTa", "XLMRoberta")
