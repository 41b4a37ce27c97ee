"""Mamba 2: a decoder of state spaces with one decay for each head. Paper: Dao and Gu, 2024."""

import math
from typing import Any

from wonderland.checkpoints.families.family import Family, Published, WeightsView
from wonderland.checkpoints.families.options import Options
from wonderland.core import Spec
from wonderland.models.decoder import Decoder
from wonderland.nn.mixers.mamba2 import Mamba2
from wonderland.nn.norms.norm import RMSNorm


def _to_spec(options: Options, head: str, weights: WeightsView) -> Spec:
    dim, expand = options.integer("hidden_size", 4096), options.integer("expand", 2)
    heads, width = options.integer("num_heads", 128), options.integer("head_dim", 64)
    groups = options.integer("n_groups", 8)
    if heads * width != expand * dim:
        raise options.error("num_heads", heads, f"num_heads * head_dim = expand * hidden_size = {expand * dim}")
    if heads % groups:
        raise options.error("n_groups", groups, f"a number of groups that divides the {heads} heads")
    options.require("hidden_act", "silu", "swish")
    options.require("rms_norm", True, None)
    tie, eps = options.boolean("tie_word_embeddings", False), options.number("layer_norm_epsilon", 1e-5)
    # Initial values of weights, the rank of a projection that there is none of, and the precision of sums.
    options.ignore(
        "time_step_rank", "time_step_min", "time_step_max", "time_step_floor", "rescale_prenorm_residual",
        "residual_in_fp32", "layer_types", "norm_before_gate",
    )  # fmt: skip
    return Decoder.spec(
        vocab=options.integer("vocab_size", 32768),
        dim=dim,
        depth=options.depth("num_hidden_layers", 64),
        mixer=Mamba2.spec(
            state_size=options.integer("state_size", 128),
            expand=expand,
            heads=heads,
            groups=groups,
            width=options.integer("conv_kernel", 4),
            bias=options.boolean("use_bias", False),
            conv_bias=options.boolean("use_conv_bias", True),
            limit=_limit(options),
            eps=eps,
            chunk=min(options.integer("chunk_size", 256), 64),
        ),
        norm=RMSNorm.spec(eps=eps),
        tie=head != "lm" or weights.tied(tie, "lm_head.weight", "backbone.embeddings.weight"),
    )


def _limit(options: Options) -> list[float | None] | None:
    """The least and the largest step; None for no limits. JSON has no infinity, so it is written as a word or an object."""
    given = options.get("time_step_limit", None)
    if given is None:
        return None
    if not isinstance(given, list) or len(given) != 2:
        raise options.error("time_step_limit", given, "the least and the largest step")
    numbers = [value.get("__float__") if isinstance(value, dict) else value for value in given]
    numbers = [math.inf if str(value).lower() in ("infinity", "inf") else value for value in numbers]
    if not all(isinstance(value, int | float) for value in numbers) or not 0 <= numbers[0] <= numbers[1]:
        raise options.error("time_step_limit", given, "the least and the largest step")
    return None if numbers == [0, math.inf] else [float(numbers[0]), None if numbers[1] == math.inf else numbers[1]]


def _trunk_names(trunk: Any) -> dict[str, Published | None]:
    block, mixer = "stack.blocks.#.", "layers.#.mixer."
    return {
        "embedding.weight": Published("embeddings.weight"),
        "stack.norm.weight": Published("norm_f.weight"),
        f"{block}norms.0.weight": Published("layers.#.norm.weight"),
        f"{block}mixer.conv_weight": Published(f"{mixer}conv1d.weight", unit_axes=(1,)),
        f"{block}mixer.conv_bias": Published(f"{mixer}conv1d.bias"),
        f"{block}mixer.norm_weight": Published(f"{mixer}norm.weight"),
        **{f"{block}mixer.{name}": Published(f"{mixer}{name}") for name in ("A_log", "D", "dt_bias")},
        **{f"{block}mixer.{name}.*": Published(f"{mixer}{name}.*") for name in ("in_proj", "out_proj")},
    }


def _to_config(model: Any) -> dict[str, Any] | None:
    mixer = getattr(model.stack.blocks[0], "mixer", None) if isinstance(model, Decoder) else None
    if not isinstance(mixer, Mamba2):
        return None
    block = model.stack.blocks[0]
    high = mixer.limit[1]
    return {
        "model_type": "mamba2",
        "vocab_size": model.vocab,
        "hidden_size": model.dim,
        "num_hidden_layers": len(model.stack.blocks),
        "num_heads": mixer.heads,
        "head_dim": mixer.inner // mixer.heads,
        "state_size": mixer.state_size,
        "expand": mixer.inner // model.dim,
        "n_groups": mixer.groups,
        "conv_kernel": mixer.width,
        "use_bias": mixer.in_proj.bias is not None,
        "use_conv_bias": mixer.conv_bias is not None,
        "time_step_limit": [mixer.limit[0], {"__float__": "Infinity"} if math.isinf(high) else high],
        "layer_norm_epsilon": getattr(block.norms[0], "eps", None),
        "chunk_size": mixer.chunk,
        "tie_word_embeddings": model.head is None,
        "pad_token_id": None,
        "bos_token_id": None,
        "eos_token_id": None,
    }


MAMBA2 = Family(
    model_type="mamba2",
    title="Mamba 2",
    heads={"Mamba2ForCausalLM": "lm", "Mamba2Model": "trunk"},
    prefix="backbone.",
    to_spec=_to_spec,
    trunk_names=_trunk_names,
    head_names=lambda model, head: {"head.weight": Published("lm_head.weight")},
    to_config=_to_config,
)
