"""ViT: patches, a class token, learned positions, pre-norm blocks. Paper: Dosovitskiy et al., 2021."""

from typing import Any

from wonderland.checkpoints.families.family import Family, Published, WeightsView, labels_config
from wonderland.checkpoints.families.images import head_names, image_classes, image_heads
from wonderland.checkpoints.families.options import Options, activation_name
from wonderland.core import Spec
from wonderland.models.vision.vit import ViT
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.attention import Attention


def _to_spec(options: Options, head: str, weights: WeightsView) -> Spec:
    options.require("qkv_bias", True)
    options.ignore("encoder_stride", "pooler_output_size", "pooler_act")
    return vit_spec(options, head, patch=16, eps=1e-12, hidden=options.integer("intermediate_size", 3072))


def vit_spec(options: Options, head: str, *, patch: int, eps: float, hidden: int, **more: Any) -> Spec:
    """The spec of a vision transformer from options that its relatives share."""
    dim, heads = options.integer("hidden_size", 768), options.integer("num_attention_heads", 12)
    if dim % heads:
        raise options.error("num_attention_heads", heads, f"a number of heads that divides hidden_size = {dim}")
    side = options.integer("image_size", 224)
    dropout = options.probability("attention_probs_dropout_prob", 0.0)
    activation = options.activation("hidden_act", "gelu")
    return ViT.spec(
        classes=image_classes(options, head),
        channels=options.integer("num_channels", 3),
        height=side,
        width=side,
        patch=options.integer("patch_size", patch),
        dim=dim,
        depth=options.depth("num_hidden_layers", 12),
        heads=heads,
        mixer=Attention.spec(heads=heads, causal=False, bias=True, dropout=dropout),
        channel=MLP.spec(hidden=hidden, activation=activation, bias=True),
        dropout=options.probability("hidden_dropout_prob", 0.0),
        eps=options.number("layer_norm_eps", eps),
        **more,
    )


def _trunk_names(model: Any) -> dict[str, Published | None]:
    block, theirs = "stack.blocks.#.", "encoder.layer.#."
    return vit_names() | {
        f"{block}norms.0.*": Published(f"{theirs}layernorm_before.*"),
        f"{block}norms.1.*": Published(f"{theirs}layernorm_after.*"),
        f"{block}channel.inward.*": Published(f"{theirs}intermediate.dense.*"),
        f"{block}channel.outward.*": Published(f"{theirs}output.dense.*"),
    }


def vit_names() -> dict[str, Published | None]:
    """The published names that vision transformers share."""
    block, theirs = "stack.blocks.#.", "encoder.layer.#."
    return {
        "pixels.*": None,
        "token.tokens": Published("embeddings.cls_token", unit_axes=(0,)),
        "positions": Published("embeddings.position_embeddings", unit_axes=(0,)),
        "patches.project.*": Published("embeddings.patch_embeddings.projection.*"),
        "stack.norm.*": Published("layernorm.*"),
        f"{block}mixer.project.*": Published(
            [f"{theirs}attention.attention.{part}.*" for part in ("query", "key", "value")]
        ),
        f"{block}mixer.out.*": Published(f"{theirs}attention.output.dense.*"),
    }


def _to_config(model: Any) -> dict[str, Any] | None:
    if not isinstance(model, ViT) or model.pool != "token" or model.registers is not None:
        return None
    config = vit_config(model)
    if config is None or model.stack.blocks[0].scales is not None:
        return None
    hidden = model.stack.blocks[0].channel.inward.out_features
    return config | {"model_type": "vit", "intermediate_size": hidden}


def vit_config(model: Any) -> dict[str, Any] | None:
    """The options that vision transformers share; None for mixers that transformers has not."""
    block = model.stack.blocks[0]
    if not isinstance(block.mixer, Attention) or not isinstance(block.channel, MLP) or model.grid[0] != model.grid[1]:
        return None
    return {
        "num_channels": model.pixels.channels,
        "image_size": model.grid[0] * model.patches.patch,
        "patch_size": model.patches.patch,
        "hidden_size": model.dim,
        "num_hidden_layers": len(model.stack.blocks),
        "num_attention_heads": block.mixer.heads,
        "hidden_act": activation_name(block.channel.activation),
        "hidden_dropout_prob": model.dropout,
        "attention_probs_dropout_prob": block.mixer.dropout,
        "layer_norm_eps": block.norms[0].eps,
        "qkv_bias": True,
    } | labels_config(model)


VIT = Family(
    model_type="vit",
    title="ViT",
    heads=image_heads("ViT"),
    prefix="vit.",
    to_spec=_to_spec,
    trunk_names=_trunk_names,
    head_names=head_names("classifier.*"),
    to_config=_to_config,
    unused=r"(vit\.)?pooler\.dense\.(weight|bias)",
)
