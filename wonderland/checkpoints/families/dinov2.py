"""DINOv2: a vision transformer with layer scale, read by its class token and the mean of its patches; with registers or not.

Papers: Oquab et al., 2024; Darcet et al., 2024 (registers).
"""

from typing import Any

import torch
from torch import Tensor

from wonderland.checkpoints.families.family import Family, Published, WeightsView
from wonderland.checkpoints.families.images import head_names, image_heads
from wonderland.checkpoints.families.options import Options
from wonderland.checkpoints.families.vit import vit_config, vit_names, vit_spec
from wonderland.core import Spec
from wonderland.models.vision.vit import ViT


def _to_spec(options: Options, head: str, weights: WeightsView) -> Spec:
    for name in ("qkv_bias", "apply_layernorm", "reshape_hidden_states"):
        options.require(name, True)
    options.require("use_swiglu_ffn", False)
    options.require("drop_path_rate", 0.0)
    options.require("hidden_dropout_prob", 0.0)
    options.ignore("stage_names", "out_features", "out_indices", "use_mask_token")
    hidden = options.integer("hidden_size", 768) * options.integer("mlp_ratio", 4)
    scale = options.number("layerscale_value", 1.0)
    registers = options.integer("num_register_tokens", 4, least=0) if "Registers" in options.title else 0
    patch = 16 if "Registers" in options.title else 14
    return vit_spec(
        options, head, patch=patch, eps=1e-6, hidden=hidden, layer_scale=scale, registers=registers, pool="both"
    )


def _trunk_names(model: Any) -> dict[str, Published | None]:
    block, theirs = "stack.blocks.#.", "encoder.layer.#."
    return vit_names() | {
        "registers.tokens": Published("embeddings.register_tokens", unit_axes=(0,)),
        f"{block}norms.0.*": Published(f"{theirs}norm1.*"),
        f"{block}norms.1.*": Published(f"{theirs}norm2.*"),
        f"{block}scales.0": Published(f"{theirs}layer_scale1.lambda1"),
        f"{block}scales.1": Published(f"{theirs}layer_scale2.lambda1"),
        f"{block}channel.inward.*": Published(f"{theirs}mlp.fc1.*"),
        f"{block}channel.outward.*": Published(f"{theirs}mlp.fc2.*"),
    }


def _to_config(model: Any) -> dict[str, Any] | None:
    if not isinstance(model, ViT) or model.pool != "both" or model.stack.blocks[0].scales is None:
        return None
    config = vit_config(model)
    if config is None or (hidden := model.stack.blocks[0].channel.inward.out_features) % model.dim:
        return None
    return config | {
        "mlp_ratio": hidden // model.dim,
        "layerscale_value": 1.0,
        "drop_path_rate": 0.0,
        "use_swiglu_ffn": False,
    }


def _plain(model: Any) -> dict[str, Any] | None:
    config = _to_config(model)
    return None if config is None or model.registers is not None else config | {"model_type": "dinov2"}


def _registered(model: Any) -> dict[str, Any] | None:
    config = _to_config(model)
    if config is None or model.registers is None:
        return None
    return config | {"model_type": "dinov2_with_registers", "num_register_tokens": model.registers.count}


def _mask_token(model: Any) -> dict[str, Tensor]:
    """The token that stands for hidden patches in pretraining, which nothing else reads."""
    return {"embeddings.mask_token": torch.zeros(1, model.dim)}


DINOV2 = Family(
    model_type="dinov2",
    title="DINOv2",
    heads=image_heads("Dinov2"),
    prefix="dinov2.",
    to_spec=_to_spec,
    trunk_names=_trunk_names,
    head_names=head_names("classifier.*"),
    to_config=_plain,
    unused=r"(dinov2\.)?embeddings\.mask_token",
    unread=_mask_token,
)
DINOV2_REGISTERS = Family(
    model_type="dinov2_with_registers",
    title="DINOv2 with Registers",
    heads=image_heads("Dinov2WithRegisters"),
    prefix="dinov2_with_registers.",
    to_spec=_to_spec,
    trunk_names=_trunk_names,
    head_names=head_names("classifier.*"),
    to_config=_registered,
    unused=r"(dinov2_with_registers\.)?embeddings\.mask_token",
    unread=_mask_token,
)
