"""GPT-2: a decoder with learned positions and biases in every layer. Paper: Radford et al., 2019."""

import math
from typing import Any

from wonderland.checkpoints.families.family import Family, Published, WeightsView, labels_config, trunk_of
from wonderland.checkpoints.families.options import Options, activation_name
from wonderland.core import Spec
from wonderland.models.decoder import Decoder
from wonderland.models.heads import SequenceClassifier, SpanFinder, TokenClassifier
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.norms.norm import LayerNorm
from wonderland.nn.positions import Learned


def _to_spec(options: Options, head: str, weights: WeightsView) -> Spec:
    dim, depth, heads = options.integer("n_embd", 768), options.depth("n_layer", 12), options.integer("n_head", 12)
    scaled = options.boolean("scale_attn_weights", True)
    by_layer = options.boolean("scale_attn_by_inverse_layer_idx", False)
    options.ignore(
        "reorder_and_upcast_attn", "summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels",
        "summary_first_dropout", "classifier_dropout", "hidden_dropout", "n_special", "predict_special_tokens",
    )  # fmt: skip
    if dim % heads:
        raise options.error("n_head", heads, f"a number of heads that divides n_embd = {dim}")
    base = 1 / math.sqrt(dim // heads) if scaled else 1.0
    dropout = options.probability("attn_pdrop", 0.1)

    def attention(scale: float | None) -> Spec:
        return Attention.spec(heads=heads, bias=True, dropout=dropout, scale=scale)

    tie = options.boolean("tie_word_embeddings", True)
    trunk = Decoder.spec(
        vocab=options.integer("vocab_size", 50257),
        dim=dim,
        depth=depth,
        mixer=[attention(base / (layer + 1)) for layer in range(depth)] if by_layer else attention(None if scaled else 1.0),
        channel=MLP.spec(
            hidden=options.integer("n_inner", 4 * dim), activation=options.activation("activation_function", "gelu_new"),
            bias=True,
        ),
        position=Learned.spec(length=options.integer("n_positions", 1024)),
        norm=LayerNorm.spec(eps=options.number("layer_norm_epsilon", 1e-5)),
        tie=head != "lm" or weights.tied(tie, "lm_head.weight", "transformer.wte.weight"),
        dropout=options.probability("resid_pdrop", 0.1),
        embed_dropout=options.probability("embd_pdrop", 0.1),
    )  # fmt: skip
    return _with_head(trunk, head, options)


def _with_head(trunk: Spec, head: str, options: Options) -> Spec:
    if head == "sequence":
        return SequenceClassifier.spec(trunk=trunk, classes=options.classes, pool="last", bias=False, pad=options.pad)
    if head == "tokens":
        # transformers takes the first of the two that is set.
        given = [options.config.get(name) for name in ("classifier_dropout", "hidden_dropout")]
        dropout = next((value for value in given if value is not None), 0.1)
        return TokenClassifier.spec(trunk=trunk, classes=options.classes, dropout=dropout, pad=options.pad)
    return SpanFinder.spec(trunk=trunk, pad=options.pad) if head == "spans" else trunk


def _trunk_names(trunk: Any) -> dict[str, Published | None]:
    block = "stack.blocks.#."
    return {
        "embedding.weight": Published("wte.weight"),
        "position.weight": Published("wpe.weight"),
        "stack.norm.*": Published("ln_f.*"),
        f"{block}norms.0.*": Published("h.#.ln_1.*"),
        f"{block}norms.1.*": Published("h.#.ln_2.*"),
        f"{block}mixer.project.*": Published("h.#.attn.c_attn.*", transposed=True),
        f"{block}mixer.out.*": Published("h.#.attn.c_proj.*", transposed=True),
        f"{block}channel.inward.*": Published("h.#.mlp.c_fc.*", transposed=True),
        f"{block}channel.outward.*": Published("h.#.mlp.c_proj.*", transposed=True),
    }


def _head_names(model: Any, head: str) -> dict[str, Published]:
    name = {"sequence": "score.*", "tokens": "classifier.*", "spans": "qa_outputs.*"}.get(head, "lm_head.*")
    return {"head.*": Published(name)}


def _to_config(model: Any) -> dict[str, Any] | None:
    trunk = trunk_of(model)
    if not isinstance(trunk, Decoder) or not isinstance(trunk.position, Learned):
        return None
    block = trunk.stack.blocks[0]
    mixer, channel = block.mixer, getattr(block, "channel", None)
    if not isinstance(mixer, Attention) or not isinstance(channel, MLP):
        return None
    usual_scale = 1 / math.sqrt(mixer.key_dim)
    scales = [getattr(getattr(layer, "mixer", None), "scale", 0.0) for layer in trunk.stack.blocks]
    config = {
        "model_type": "gpt2",
        "vocab_size": trunk.vocab,
        "n_embd": trunk.dim,
        "n_layer": len(trunk.stack.blocks),
        "n_head": mixer.heads,
        "n_inner": channel.inward.out_features,
        "n_positions": trunk.position.weight.shape[0],
        "activation_function": activation_name(channel.activation),
        "layer_norm_epsilon": getattr(block.norms[0], "eps", None),
        "attn_pdrop": mixer.dropout,
        "resid_pdrop": block.dropout,
        "embd_pdrop": trunk.dropout,
        "scale_attn_weights": scales[0] == usual_scale,
        "scale_attn_by_inverse_layer_idx": len(scales) > 1 and scales[1] != scales[0],
        "tie_word_embeddings": trunk.head is None,
        "pad_token_id": getattr(model, "pad", None),
        "bos_token_id": None,
        "eos_token_id": None,
    }
    if isinstance(model, TokenClassifier) and not isinstance(model, SpanFinder):
        config["classifier_dropout"] = model.dropout
    return config | (labels_config(model) if isinstance(model, SequenceClassifier | TokenClassifier) else {})


GPT2 = Family(
    model_type="gpt2",
    title="GPT-2",
    heads={
        "GPT2LMHeadModel": "lm",
        "GPT2ForSequenceClassification": "sequence",
        "GPT2ForTokenClassification": "tokens",
        "GPT2ForQuestionAnswering": "spans",
        "GPT2Model": "trunk",
    },
    prefix="transformer.",
    to_spec=_to_spec,
    trunk_names=_trunk_names,
    head_names=_head_names,
    to_config=_to_config,
    unused=r"(transformer\.)?h\.\d+\.attn\.(bias|masked_bias)",
)
