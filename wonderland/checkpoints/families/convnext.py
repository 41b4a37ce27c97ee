"""ConvNeXt: depthwise convolutions in blocks like those of transformers. Paper: Liu et al., 2022."""

from typing import Any

from wonderland.checkpoints.families.family import Family, Published, WeightsView, labels_config
from wonderland.checkpoints.families.images import head_names, image_classes, image_heads
from wonderland.checkpoints.families.options import Options
from wonderland.core import Spec
from wonderland.models.vision.convnext import ConvNeXt


def _to_spec(options: Options, head: str, weights: WeightsView) -> Spec:
    options.require("hidden_act", "gelu")
    options.ignore("stage_names", "out_features", "out_indices", "image_size")
    sizes = options.sizes("hidden_sizes", [96, 192, 384, 768])
    options.require("num_stages", len(sizes))
    scale = options.number("layer_scale_init_value", 1e-6)
    return ConvNeXt.spec(
        classes=image_classes(options, head),
        channels=options.integer("num_channels", 3),
        patch=options.integer("patch_size", 4),
        dims=sizes,
        depths=options.sizes("depths", [3, 3, 9, 3]),
        layer_scale=scale or None,
        drop_path=options.probability("drop_path_rate", 0.0),
        eps=options.number("layer_norm_eps", 1e-12),
    )


def _trunk_names(model: Any) -> dict[str, Published | None]:
    names: dict[str, Published | None] = {
        "pixels.*": None,
        "stem.0.*": Published("embeddings.patch_embeddings.*"),
        "stem.1.norm.*": Published("embeddings.layernorm.*"),
        "norm.*": Published("layernorm.*"),
    }
    for stage, blocks in enumerate(model.stages):
        theirs = f"encoder.stages.{stage}"
        if stage:
            names[f"downs.{stage - 1}.0.norm.*"] = Published(f"{theirs}.downsampling_layer.0.*")
            names[f"downs.{stage - 1}.1.*"] = Published(f"{theirs}.downsampling_layer.1.*")
        for place in range(len(blocks)):
            block, layer = f"stages.{stage}.{place}", f"{theirs}.layers.{place}"
            names |= {
                f"{block}.conv.*": Published(f"{layer}.dwconv.*"),
                f"{block}.norm.*": Published(f"{layer}.layernorm.*"),
                f"{block}.inward.*": Published(f"{layer}.pwconv1.*"),
                f"{block}.outward.*": Published(f"{layer}.pwconv2.*"),
                f"{block}.scale": Published(f"{layer}.layer_scale_parameter"),
            }
    return names


def _to_config(model: Any) -> dict[str, Any] | None:
    if not isinstance(model, ConvNeXt):
        return None
    last: Any = model.stages[-1][-1]  # pyright: ignore[reportIndexIssue]
    return {
        "model_type": "convnext",
        "num_channels": model.pixels.channels,
        "patch_size": model.stem[0].kernel_size[0],  # pyright: ignore
        "num_stages": len(model.stages),
        "hidden_sizes": [stage[0].conv.out_channels for stage in model.stages],  # pyright: ignore
        "depths": [len(stage) for stage in model.stages],  # pyright: ignore[reportArgumentType]
        "hidden_act": "gelu",
        "layer_norm_eps": model.norm.eps,
        "layer_scale_init_value": 0.0 if last.scale is None else 1e-6,
        "drop_path_rate": last.drop_path,
    } | labels_config(model)


CONVNEXT = Family(
    model_type="convnext",
    title="ConvNeXt",
    heads=image_heads("ConvNext"),
    prefix="convnext.",
    to_spec=_to_spec,
    trunk_names=_trunk_names,
    head_names=head_names("classifier.*"),
    to_config=_to_config,
)
