"""RegNet: stages of grouped bottlenecks, X without and Y with squeeze and excitation. Paper: Radosavovic et al., 2020."""

from typing import Any

from wonderland.checkpoints.families.family import Family, Published, WeightsView, labels_config
from wonderland.checkpoints.families.images import conv_norm, head_names, image_classes, image_heads
from wonderland.checkpoints.families.options import Options
from wonderland.core import Spec
from wonderland.models.vision.anynet import AnyNet
from wonderland.models.vision.regnet import RegNet


def _to_spec(options: Options, head: str, weights: WeightsView) -> Spec:
    options.require("hidden_act", "relu")
    options.require("downsample_in_first_stage", True)
    options.require("layer_type", "y", "x")
    return AnyNet.spec(
        classes=image_classes(options, head),
        channels=options.integer("num_channels", 3),
        dim=options.integer("embedding_size", 32),
        dims=options.sizes("hidden_sizes", [128, 192, 512, 1088]),
        depths=options.sizes("depths", [2, 6, 12, 2]),
        group_widths=[options.integer("groups_width", 64)],
        squeeze=0.25 if options.get("layer_type", "y") == "y" else None,
    )


def _trunk_names(model: Any) -> dict[str, Published | None]:
    names: dict[str, Published | None] = {"pixels.*": None} | conv_norm("stem", "embedder.embedder")
    for stage, blocks in enumerate(model.stages):
        for place, block in enumerate(blocks):
            ours, theirs = f"stages.{stage}.{place}", f"encoder.stages.{stage}.layers.{place}"
            last = 2 if block.squeeze is None else 3
            names |= conv_norm(f"{ours}.shortcut", f"{theirs}.shortcut")
            for index, number in enumerate((0, 1, last)):
                names |= conv_norm(f"{ours}.convs.{index}", f"{theirs}.layer.{number}")
            names[f"{ours}.squeeze.inward.*"] = Published(f"{theirs}.layer.2.attention.0.*")
            names[f"{ours}.squeeze.outward.*"] = Published(f"{theirs}.layer.2.attention.2.*")
    return names


def _to_config(model: Any) -> dict[str, Any] | None:
    if not isinstance(model, AnyNet | RegNet):
        return None
    blocks: Any = [stage[0] for stage in model.stages]  # pyright: ignore[reportIndexIssue]
    widest = blocks[-1].convs[1].conv
    return {
        "model_type": "regnet",
        "num_channels": model.pixels.channels,
        "embedding_size": model.stem.conv.out_channels,
        "hidden_sizes": [block.convs[-1].conv.out_channels for block in blocks],
        "depths": [len(stage) for stage in model.stages],  # pyright: ignore[reportArgumentType]
        "groups_width": widest.in_channels // widest.groups,
        "layer_type": "x" if blocks[0].squeeze is None else "y",
        "hidden_act": "relu",
        "downsample_in_first_stage": True,
    } | labels_config(model)


REGNET = Family(
    model_type="regnet",
    title="RegNet",
    heads=image_heads("RegNet"),
    prefix="regnet.",
    to_spec=_to_spec,
    trunk_names=_trunk_names,
    head_names=head_names("classifier.1.*"),
    to_config=_to_config,
)
