"""Mamba: a decoder of selective state space blocks. Paper: Gu and Dao, 2023."""

from typing import Any

from wonderland.checkpoints.families.family import Family, Published, WeightsView
from wonderland.checkpoints.families.options import Options
from wonderland.core import Spec
from wonderland.models.decoder import Decoder
from wonderland.nn.mixers.mamba import Mamba
from wonderland.nn.norms.norm import RMSNorm


def _to_spec(options: Options, head: str, weights: WeightsView) -> Spec:
    dim, expand = options.integer("hidden_size", 768), options.integer("expand", 2)
    options.require("intermediate_size", expand * dim, None)
    options.require("hidden_act", "silu", "swish")
    if options.get("time_step_rank", "auto") == "auto":
        rank = -(-dim // 16)
    else:
        rank = options.integer("time_step_rank", 1)
    tie = options.boolean("tie_word_embeddings", True)
    # Initial values of weights, and the choice between equivalent implementations.
    options.ignore(
        "time_step_scale", "time_step_min", "time_step_max", "time_step_init_scheme", "time_step_floor",
        "rescale_prenorm_residual", "residual_in_fp32", "use_mambapy", "use_associative_scan", "fused_add_norm", "rms_norm",
        "ssm_cfg", "d_model", "d_inner", "n_layer", "pad_vocab_size_multiple", "layer_types",
    )  # fmt: skip
    for name, value in (("rms_norm", True), ("ssm_cfg", {}), ("d_model", dim), ("d_inner", expand * dim)):
        options.require(name, value, None)
    return Decoder.spec(
        vocab=options.integer("vocab_size", 50280),
        dim=dim,
        depth=options.depth("num_hidden_layers", 32),
        mixer=Mamba.spec(
            state_size=options.integer("state_size", 16),
            expand=expand,
            width=options.integer("conv_kernel", 4),
            rank=rank,
            bias=options.boolean("use_bias", False),
            conv_bias=options.boolean("use_conv_bias", True),
        ),
        norm=RMSNorm.spec(eps=options.number("layer_norm_epsilon", 1e-5)),
        tie=head != "lm" or weights.tied(tie, "lm_head.weight", "backbone.embeddings.weight"),
    )


def _trunk_names(trunk: Any) -> dict[str, Published | None]:
    block, mixer = "stack.blocks.#.", "layers.#.mixer."
    return {
        "embedding.weight": Published("embeddings.weight"),
        "stack.norm.weight": Published("norm_f.weight"),
        f"{block}norms.0.weight": Published("layers.#.norm.weight"),
        f"{block}mixer.conv_weight": Published(f"{mixer}conv1d.weight", unit_axes=(1,)),
        f"{block}mixer.conv_bias": Published(f"{mixer}conv1d.bias"),
        **{f"{block}mixer.{name}": Published(f"{mixer}{name}") for name in ("A_log", "D")},
        **{
            f"{block}mixer.{name}.*": Published(f"{mixer}{name}.*")
            for name in ("in_proj", "x_proj", "dt_proj", "out_proj")
        },
    }


def _to_config(model: Any) -> dict[str, Any] | None:
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
    model_type="mamba",
    title="Mamba",
    heads={"MambaForCausalLM": "lm", "MambaModel": "trunk"},
    prefix="backbone.",
    to_spec=_to_spec,
    trunk_names=_trunk_names,
    head_names=lambda model, head: {"head.weight": Published("lm_head.weight")},
    to_config=_to_config,
)
