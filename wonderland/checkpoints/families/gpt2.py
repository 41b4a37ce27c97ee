"""GPT-2: a decoder with learned positions and biases everywhere."""

import math
from typing import Any

from wonderland.checkpoints.families.family import Family, To, labels_config, trunk_of
from wonderland.checkpoints.families.options import Options, published
from wonderland.core import Spec
from wonderland.models.decoder import Decoder
from wonderland.models.heads import SequenceClassifier, SpanFinder, TokenClassifier
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.norms.norm import LayerNorm
from wonderland.nn.positions import Learned


def _describe(options: Options, head: str, file: Any) -> Spec:
    dim, depth, heads = options.whole("n_embd", 768), options.depth("n_layer", 12), options.whole("n_head", 12)
    scaled = options.yes("scale_attn_weights", True)
    by_layer = options.yes("scale_attn_by_inverse_layer_idx", False)
    options.ignore(
        "reorder_and_upcast_attn", "summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels",
        "summary_first_dropout", "classifier_dropout", "hidden_dropout", "n_special", "predict_special_tokens",
    )  # fmt: skip
    if dim % heads:
        raise options.wrong("n_head", heads, f"heads that divide n_embd = {dim}")
    base = 1 / math.sqrt(dim // heads) if scaled else 1.0
    dropout = options.chance("attn_pdrop", 0.1)

    def attention(scale: float | None) -> Spec:
        return Attention.spec(heads=heads, bias=True, dropout=dropout, scale=scale)

    tie = options.yes("tie_word_embeddings", True)
    trunk = Decoder.spec(
        vocab=options.whole("vocab_size", 50257),
        dim=dim,
        depth=depth,
        mixer=[attention(base / (layer + 1)) for layer in range(depth)] if by_layer else attention(None if scaled else 1.0),
        channel=MLP.spec(
            hidden=options.whole("n_inner", 4 * dim), activation=options.activation("activation_function", "gelu_new"),
            bias=True,
        ),
        position=Learned.spec(length=options.whole("n_positions", 1024)),
        norm=LayerNorm.spec(eps=options.number("layer_norm_epsilon", 1e-5)),
        tie=head != "words" or file.tied(tie, "lm_head.weight", "transformer.wte.weight"),
        dropout=options.chance("resid_pdrop", 0.1),
        embed_dropout=options.chance("embd_pdrop", 0.1),
    )  # fmt: skip
    return _headed(trunk, head, options)


def _headed(trunk: Spec, head: str, options: Options) -> Spec:
    if head == "sequence":
        return SequenceClassifier.spec(trunk=trunk, classes=options.labels, pool="last", bias=False, pad=options.pad)
    if head == "tags":
        # Two options say it, the first that is there counts.
        given = [options.config.get(name) for name in ("classifier_dropout", "hidden_dropout")]
        dropout = next((value for value in given if value is not None), 0.1)
        return TokenClassifier.spec(trunk=trunk, classes=options.labels, dropout=dropout, pad=options.pad)
    return SpanFinder.spec(trunk=trunk, pad=options.pad) if head == "spans" else trunk


def _names(trunk: Any) -> dict[str, To | None]:
    block = "stack.blocks.#."
    return {
        "embedding.weight": To("wte.weight"),
        "position.weight": To("wpe.weight"),
        "stack.norm.*": To("ln_f.*"),
        f"{block}norms.0.*": To("h.#.ln_1.*"),
        f"{block}norms.1.*": To("h.#.ln_2.*"),
        f"{block}mixer.project.*": To("h.#.attn.c_attn.*", turned=True),
        f"{block}mixer.out.*": To("h.#.attn.c_proj.*", turned=True),
        f"{block}channel.inward.*": To("h.#.mlp.c_fc.*", turned=True),
        f"{block}channel.outward.*": To("h.#.mlp.c_proj.*", turned=True),
    }


def _head_names(model: Any, head: str) -> dict[str, To]:
    name = {"sequence": "score.*", "tags": "classifier.*", "spans": "qa_outputs.*"}.get(head, "lm_head.*")
    return {"head.*": To(name)}


def _config(model: Any) -> dict[str, Any] | None:
    trunk = trunk_of(model)
    if not isinstance(trunk, Decoder) or not isinstance(trunk.position, Learned):
        return None
    block = trunk.stack.blocks[0]
    mixer, channel = block.mixer, getattr(block, "channel", None)
    if not isinstance(mixer, Attention) or not isinstance(channel, MLP):
        return None
    full = 1 / math.sqrt(mixer.key_dim)
    scales = [getattr(getattr(one, "mixer", None), "scale", 0.0) for one in trunk.stack.blocks]
    found = {
        "model_type": "gpt2",
        "vocab_size": trunk.vocab,
        "n_embd": trunk.dim,
        "n_layer": len(trunk.stack.blocks),
        "n_head": mixer.heads,
        "n_inner": channel.inward.out_features,
        "n_positions": trunk.position.weight.shape[0],
        "activation_function": published(channel.activation),
        "layer_norm_epsilon": getattr(block.norms[0], "eps", None),
        "attn_pdrop": mixer.dropout,
        "resid_pdrop": block.dropout,
        "embd_pdrop": trunk.dropout,
        "scale_attn_weights": scales[0] == full,
        "scale_attn_by_inverse_layer_idx": len(scales) > 1 and scales[1] != scales[0],
        "tie_word_embeddings": trunk.head is None,
        "pad_token_id": getattr(model, "pad", None),
        "bos_token_id": None,
        "eos_token_id": None,
    }
    if isinstance(model, TokenClassifier) and not isinstance(model, SpanFinder):
        found["classifier_dropout"] = model.dropout
    return found | (labels_config(model) if isinstance(model, SequenceClassifier | TokenClassifier) else {})


GPT2 = Family(
    kind="gpt2",
    title="GPT-2",
    heads={
        "GPT2LMHeadModel": "words",
        "GPT2ForSequenceClassification": "sequence",
        "GPT2ForTokenClassification": "tags",
        "GPT2ForQuestionAnswering": "spans",
        "GPT2Model": "trunk",
    },
    prefix="transformer.",
    describe=_describe,
    names=_names,
    head_names=_head_names,
    config=_config,
    spare=r"(transformer\.)?h\.\d+\.attn\.(bias|masked_bias)",
)
