"""Mamba: a decoder of selective state spaces."""

from typing import Any

from wonderland.checkpoints.families.family import Family, To
from wonderland.checkpoints.families.options import Options
from wonderland.core import Spec
from wonderland.models.decoder import Decoder
from wonderland.nn.mixers.mamba import Mamba
from wonderland.nn.norms.norm import RMSNorm


def _describe(options: Options, head: str, file: Any) -> Spec:
    dim, expand = options.whole("hidden_size", 768), options.whole("expand", 2)
    options.only("intermediate_size", expand * dim, None)
    options.only("hidden_act", "silu", "swish")
    if options.get("time_step_rank", "auto") == "auto":
        rank = -(-dim // 16)
    else:
        rank = options.whole("time_step_rank", 1)
    tie = options.yes("tie_word_embeddings", True)
    # How weights begin, and which of several equal programs computes.
    options.ignore(
        "time_step_scale", "time_step_min", "time_step_max", "time_step_init_scheme", "time_step_floor",
        "rescale_prenorm_residual", "residual_in_fp32", "use_mambapy", "use_associative_scan", "fused_add_norm", "rms_norm",
        "ssm_cfg", "d_model", "d_inner", "n_layer", "pad_vocab_size_multiple", "layer_types",
    )  # fmt: skip
    for name, value in (("rms_norm", True), ("ssm_cfg", {}), ("d_model", dim), ("d_inner", expand * dim)):
        options.only(name, value, None)
    return Decoder.spec(
        vocab=options.whole("vocab_size", 50280),
        dim=dim,
        depth=options.depth("num_hidden_layers", 32),
        mixer=Mamba.spec(
            state_size=options.whole("state_size", 16),
            expand=expand,
            width=options.whole("conv_kernel", 4),
            rank=rank,
            bias=options.yes("use_bias", False),
            conv_bias=options.yes("use_conv_bias", True),
        ),
        norm=RMSNorm.spec(eps=options.number("layer_norm_epsilon", 1e-5)),
        tie=head != "words" or file.tied(tie, "lm_head.weight", "backbone.embeddings.weight"),
    )


def _names(trunk: Any) -> dict[str, To | None]:
    block, mixer = "stack.blocks.#.", "layers.#.mixer."
    return {
        "embedding.weight": To("embeddings.weight"),
        "stack.norm.weight": To("norm_f.weight"),
        f"{block}norms.0.weight": To("layers.#.norm.weight"),
        f"{block}mixer.conv_weight": To(f"{mixer}conv1d.weight", lift=(1,)),
        f"{block}mixer.conv_bias": To(f"{mixer}conv1d.bias"),
        **{f"{block}mixer.{name}": To(f"{mixer}{name}") for name in ("A_log", "D")},
        **{f"{block}mixer.{name}.*": To(f"{mixer}{name}.*") for name in ("in_proj", "x_proj", "dt_proj", "out_proj")},
    }


def _config(model: Any) -> dict[str, Any] | None:
    if not isinstance(model, Decoder) or not isinstance(getattr(model.stack.blocks[0], "mixer", None), Mamba):
        return None
    block = model.stack.blocks[0]
    mixer = block.mixer
    return {
        "model_type": "mamba",
        "vocab_size": model.vocab,
        "hidden_size": model.dim,
        "num_hidden_layers": len(model.stack.blocks),
        "state_size": mixer.state_size,
        "expand": mixer.inner // model.dim,
        "conv_kernel": mixer.width,
        "time_step_rank": mixer.rank,
        "use_bias": mixer.in_proj.bias is not None,
        "use_conv_bias": mixer.conv_bias is not None,
        "layer_norm_epsilon": getattr(block.norms[0], "eps", None),
        "tie_word_embeddings": model.head is None,
        "pad_token_id": None,
        "bos_token_id": None,
        "eos_token_id": None,
    }


MAMBA = Family(
    kind="mamba",
    title="Mamba",
    heads={"MambaForCausalLM": "words", "MambaModel": "trunk"},
    prefix="backbone.",
    describe=_describe,
    names=_names,
    head_names=lambda model, head: {"head.weight": To("lm_head.weight")},
    config=_config,
)
