"""LLaMA: a decoder with root-mean-square norms, gated networks, rotary positions and grouped keys."""

from typing import Any

import torch

from wonderland.checkpoints.families.family import Family, To, labels_config, trunk_of
from wonderland.checkpoints.families.options import Options, published
from wonderland.core import Spec
from wonderland.models.decoder import Decoder
from wonderland.models.heads import SequenceClassifier, SpanFinder, TokenClassifier
from wonderland.nn.channel.glu import GLU
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.norms.norm import RMSNorm
from wonderland.nn.positions import Rotary


def _describe(options: Options, head: str, file: Any) -> Spec:
    dim, heads = options.whole("hidden_size", 4096), options.whole("num_attention_heads", 32)
    if dim % heads:
        raise options.wrong("num_attention_heads", heads, f"heads that divide hidden_size = {dim}")
    kv_heads = options.whole("num_key_value_heads", heads)
    width = options.whole("head_dim", dim // heads)
    if heads % kv_heads:
        raise options.wrong("num_key_value_heads", kv_heads, f"heads of keys that divide the {heads} of queries")
    if width % 2:
        raise options.wrong("head_dim", width, "an even width, whose features turn in pairs")
    tie = options.yes("tie_word_embeddings", False)
    options.only("pretraining_tp", 1, None)
    # A text may be longer than what was trained on; rotary positions have no table that ends.
    options.ignore("max_position_embeddings", "is_llama_config")
    trunk = Decoder.spec(
        vocab=options.whole("vocab_size", 32000),
        dim=dim,
        depth=options.depth("num_hidden_layers", 32),
        mixer=Attention.spec(
            heads=heads,
            kv_heads=kv_heads,
            key_dim=width,
            value_dim=width,
            bias=options.yes("attention_bias", False),
            dropout=options.chance("attention_dropout", 0.0),
            position=_rotary(options),
        ),
        channel=GLU.spec(
            hidden=options.whole("intermediate_size", 11008),
            gate=options.activation("hidden_act", "silu"),
            bias=options.yes("mlp_bias", False),
        ),
        norm=RMSNorm.spec(eps=options.number("rms_norm_eps", 1e-6)),
        tie=head != "words" or file.tied(tie, "lm_head.weight", "model.embed_tokens.weight"),
    )
    if head == "sequence":
        return SequenceClassifier.spec(trunk=trunk, classes=options.labels, pool="last", bias=False, pad=options.pad)
    options.ignore("classifier_dropout", "hidden_dropout")
    if head == "tags":
        given = [options.config.get(name) for name in ("classifier_dropout", "hidden_dropout")]
        dropout = next((value for value in given if value is not None), 0.1)
        return TokenClassifier.spec(trunk=trunk, classes=options.labels, dropout=dropout, pad=options.pad)
    return SpanFinder.spec(trunk=trunk, pad=options.pad) if head == "spans" else trunk


def _rotary(options: Options) -> Spec:
    # As transformers has it: the older name goes before, and a base beside the table fills in for one in it.
    tables = {name: options.get(name, None) or {} for name in ("rope_parameters", "rope_scaling")}
    base = options.get("rope_theta", 10000.0)
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise options.wrong(name, table, "a table of options")
    options.only("rope_interleaved", False, None)
    inner = Options({"rope_theta": base, **(tables["rope_scaling"] or tables["rope_parameters"])}, options.title)
    inner.only("partial_rotary_factor", 1.0, None)
    kind = inner.get("rope_type", inner.get("type", "default"))
    inner.ignore("type")
    base = inner.number("rope_theta", 10000.0, least=1.0)
    if base <= 1:
        raise options.wrong("rope_theta", base, "a base above 1")
    if kind == "default":
        rotary = Rotary.spec(base=base)
        inner.ignore("factor", "original_max_position_embeddings")
    elif kind == "linear":
        rotary = Rotary.spec(base=base, stretch=inner.number("factor", None))
        inner.ignore("original_max_position_embeddings")
    elif kind == "llama3":
        low, high = inner.number("low_freq_factor", None), inner.number("high_freq_factor", None)
        length = inner.whole("original_max_position_embeddings")
        rotary = Rotary.spec(base=base, stretch=inner.number("factor", None), bands=(low, high, length))
    else:
        raise options.wrong("rope_type", kind, "default, linear or llama3")
    inner.finish()
    return rotary


def _names(trunk: Any) -> dict[str, To | None]:
    block, theirs = "stack.blocks.#.", "layers.#."
    attention, network = f"{theirs}self_attn.", f"{theirs}mlp."
    return {
        "embedding.weight": To("embed_tokens.weight"),
        "stack.norm.weight": To("norm.weight"),
        f"{block}norms.0.weight": To(f"{theirs}input_layernorm.weight"),
        f"{block}norms.1.weight": To(f"{theirs}post_attention_layernorm.weight"),
        f"{block}mixer.project.*": To([f"{attention}{part}_proj.*" for part in "qkv"]),
        f"{block}mixer.out.*": To(f"{attention}o_proj.*"),
        f"{block}mixer.position.frequencies": None,
        f"{block}channel.inward.*": To([f"{network}gate_proj.*", f"{network}up_proj.*"]),
        f"{block}channel.outward.*": To(f"{network}down_proj.*"),
    }


def _head_names(model: Any, head: str) -> dict[str, To]:
    return {"head.*": To({"sequence": "score.*", "tags": "score.*", "spans": "qa_outputs.*"}.get(head, "lm_head.*"))}


def _config(model: Any) -> dict[str, Any] | None:
    trunk = trunk_of(model)
    if not isinstance(trunk, Decoder):
        return None
    block = trunk.stack.blocks[0]
    mixer, channel = block.mixer, getattr(block, "channel", None)
    if not isinstance(mixer, Attention) or not isinstance(channel, GLU) or not isinstance(mixer.position, Rotary):
        return None
    turning: dict[str, Any] = {"rope_type": "default", "rope_theta": mixer.position.base}
    if mixer.position.bands is not None:
        low, high, length = mixer.position.bands
        turning |= {"rope_type": "llama3", "factor": mixer.position.stretch, "low_freq_factor": low}
        turning |= {"high_freq_factor": high, "original_max_position_embeddings": length}
    elif mixer.position.stretch != 1:
        turning |= {"rope_type": "linear", "factor": mixer.position.stretch}
    found = {
        "model_type": "llama",
        "vocab_size": trunk.vocab,
        "hidden_size": trunk.dim,
        "num_hidden_layers": len(trunk.stack.blocks),
        "num_attention_heads": mixer.heads,
        "num_key_value_heads": mixer.kv_heads,
        "head_dim": mixer.key_dim,
        "intermediate_size": channel.outward.in_features if channel.outward is not None else None,
        "hidden_act": published(channel.gate),
        "rms_norm_eps": getattr(block.norms[0], "eps", None),
        "attention_bias": mixer.out.bias is not None,
        "mlp_bias": channel.inward.bias is not None,
        "attention_dropout": mixer.dropout,
        "rope_parameters": turning,
        "tie_word_embeddings": trunk.head is None,
        "pad_token_id": getattr(model, "pad", None),
        "bos_token_id": None,
        "eos_token_id": None,
    }
    if isinstance(model, TokenClassifier) and not isinstance(model, SpanFinder):
        found["classifier_dropout"] = model.dropout
    return found | (labels_config(model) if isinstance(model, SequenceClassifier | TokenClassifier) else {})


def _finish(model: Any) -> None:
    """Turn exactly as far as the published code does, which computes its angles in single precision."""
    for module in model.modules():
        if isinstance(module, Rotary):
            speeds = module.speeds(module.frequencies.shape[0], torch.float32)
            module.frequencies.copy_(speeds)


LLAMA = Family(
    kind="llama",
    title="LLaMA",
    heads={
        "LlamaForCausalLM": "words",
        "LlamaForSequenceClassification": "sequence",
        "LlamaForTokenClassification": "tags",
        "LlamaForQuestionAnswering": "spans",
        "LlamaModel": "trunk",
    },
    prefix="model.",
    prefixes={"spans": "transformer."},
    describe=_describe,
    names=_names,
    head_names=_head_names,
    config=_config,
    spare=r"(model\.)?layers\.\d+\.self_attn\.rotary_emb\.inv_freq",
    finish=_finish,
)
