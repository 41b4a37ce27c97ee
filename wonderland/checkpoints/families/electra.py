"""ELECTRA: BERT whose embeddings may be narrower than its blocks, with heads of its own. Paper: Clark et al., 2020."""

from typing import Any

from wonderland.checkpoints.families.bert import trunk_config, trunk_names, trunk_spec
from wonderland.checkpoints.families.family import Family, Published, WeightsView, trunk_of
from wonderland.checkpoints.families.options import Options
from wonderland.core import Spec
from wonderland.models.heads import MaskedLM, SequenceClassifier, SpanFinder, TokenClassifier
from wonderland.nn.norms.norm import LayerNorm

DEFAULT = {"hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024}


def _to_spec(options: Options, head: str, weights: WeightsView) -> Spec:
    eps, dropout = options.number("layer_norm_eps", 1e-12), options.probability("hidden_dropout_prob", 0.1)
    tie = options.boolean("tie_word_embeddings", True)
    # Read by the head of multiple choice alone.
    options.ignore(*(f"summary_{name}" for name in ("type", "use_proj", "activation", "last_dropout")))
    trunk = trunk_spec(options, pooler=False, default=DEFAULT)
    width = options.integer("embedding_size", 128)
    if width != trunk.arguments["dim"]:
        trunk = trunk.changed(embed_dim=width)
    head_dropout = options.get("classifier_dropout", None)
    head_dropout = dropout if head_dropout is None else options.probability("classifier_dropout", 0.0)
    if head == "lm":
        tied = weights.tied(tie, "generator_lm_head.weight", "electra.embeddings.word_embeddings.weight")
        return MaskedLM.spec(trunk=trunk, activation="gelu", norm=LayerNorm.spec(eps=eps), tie=tied, pad=options.pad)
    if head == "sequence":
        return SequenceClassifier.spec(
            trunk=trunk, classes=options.classes, pool="first", hidden=trunk.arguments["dim"], activation="gelu",
            pad=options.pad, dropout=head_dropout,
        )  # fmt: skip
    if head == "tokens":
        return TokenClassifier.spec(trunk=trunk, classes=options.classes, pad=options.pad, dropout=head_dropout)
    if head == "spans":
        if options.classes != 2:
            raise options.error("num_labels", options.classes, "2: scores for the start and the end of a span")
        return SpanFinder.spec(trunk=trunk, pad=options.pad)
    return trunk


def _trunk_names(trunk: Any) -> dict[str, Published | None]:
    return trunk_names(trunk) | {"expand.*": Published("embeddings_project.*")}


def _head_names(model: Any, head: str) -> dict[str, Published]:
    if head == "lm":
        return {
            "transform.*": Published("generator_predictions.dense.*"),
            "norm.*": Published("generator_predictions.LayerNorm.*"),
            "bias": Published("generator_lm_head.bias"),
            "head.weight": Published("generator_lm_head.weight"),
        }
    if head == "sequence":
        return {"hidden.*": Published("classifier.dense.*"), "head.*": Published("classifier.out_proj.*")}
    return {"head.*": Published("qa_outputs.*" if head == "spans" else "classifier.*")}


def _to_config(model: Any) -> dict[str, Any] | None:
    config, trunk = trunk_config(model), trunk_of(model)
    if config is None or trunk.pooler is not None or trunk.position.offset:
        return None
    return {**config, "model_type": "electra", "embedding_size": trunk.embed_dim}


ELECTRA = Family(
    model_type="electra",
    title="ELECTRA",
    heads={
        "ElectraForMaskedLM": "lm",
        "ElectraForSequenceClassification": "sequence",
        "ElectraForTokenClassification": "tokens",
        "ElectraForQuestionAnswering": "spans",
        "ElectraModel": "trunk",
        "ElectraForPreTraining": "trunk",  # without the head that tells replaced tokens
    },
    prefix="electra.",
    to_spec=_to_spec,
    trunk_names=_trunk_names,
    head_names=_head_names,
    to_config=_to_config,
    unused=r"(electra\.)?embeddings\.position_ids|discriminator_predictions\.(dense|dense_prediction)\.(weight|bias)",
)
